"""A GPU share inside a worker, against stand-ins for driver and backends: what is set, what is read back, what is refused."""

from __future__ import annotations

import ctypes
import json
import os
import stat
import sys
from types import SimpleNamespace

import pytest

from orchestrator.errors import EnvironmentNotReadyError
from orchestrator.schema import Job, Share
from orchestrator.worker import limits as limits_module
from orchestrator.worker import visible
from orchestrator.worker.limits import BackendLimits

GIB = 1024**3
TWO = ["GPU-aaaa", "GPU-bbbb"]


@pytest.fixture
def job(tmp_path):
    def make(gpus=TWO, fraction=0.4):
        share = Share(
            worker=0, cpus=1.0, threads=1, memory=GIB, shm=GIB, pids=64, gpus=list(gpus), gpu_fraction=fraction
        )
        return Job(
            role="worker", sweep="s", script="a.py", arguments=[], workdir="/", run=str(tmp_path), driver=str(tmp_path),
            seed=0, keep_models="none", share=share.to_json(), limits_enforced=False,
        )  # fmt: skip

    return make


@pytest.fixture
def driver(monkeypatch):
    """What the driver shows."""
    shown = dict.fromkeys(TWO, 80 * GIB)
    monkeypatch.setattr(limits_module, "visible_gpus", lambda: shown)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(TWO))
    return shown


class FakeTensorFlow:
    """Devices that take one configuration each, as TensorFlow's do."""

    __version__ = "2.99"

    def __init__(self, count):
        self.devices = [f"GPU:{number}" for number in range(count)]
        self.limits, self.growth = {}, {}
        self.random = SimpleNamespace(set_seed=lambda seed: None)
        self.config = SimpleNamespace(
            list_physical_devices=lambda kind: list(self.devices),
            LogicalDeviceConfiguration=lambda memory_limit: SimpleNamespace(memory_limit=memory_limit),
            set_logical_device_configuration=self.limits.__setitem__,
            get_logical_device_configuration=self.limits.get,
            experimental=SimpleNamespace(set_memory_growth=self.growth.__setitem__),
        )


class FakeTorch:
    __version__ = "2.99"

    def __init__(self, count, ignores_limit=False):
        self.fractions = dict.fromkeys(range(count), 1.0)

        def limit(fraction, device):
            if not ignores_limit:
                self.fractions[device] = fraction

        self.cuda = SimpleNamespace(
            device_count=lambda: count, set_per_process_memory_fraction=limit,
            get_per_process_memory_fraction=self.fractions.get,
        )  # fmt: skip
        self.set_num_threads = self.set_num_interop_threads = lambda count: None
        self.get_num_threads = self.get_num_interop_threads = lambda: 1
        self.manual_seed = lambda seed: None


def applied(monkeypatch, tmp_path, limits, **modules):
    for name in ("tensorflow", "torch", "keras", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        limits.hooks()[name](module)
    mismatch = limits.write()
    return mismatch, json.loads((tmp_path / "limits.json").read_text())


class TestApplied:
    def test_every_visible_device_is_limited_in_both_backends(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        tf, torch = FakeTensorFlow(2), FakeTorch(2)
        mismatch, found = applied(monkeypatch, tmp_path, limits, tensorflow=tf, torch=torch)
        assert mismatch is None
        assert found["backends"]["tensorflow"]["memory_limit_mib"] == [[32768], [32768]]
        assert torch.fractions == {0: 0.4, 1: 0.4}
        assert found["backends"]["torch"]["memory_fraction"] == [0.4, 0.4]
        assert (found["gpus"], found["gpus_seen"]) == (TWO, TWO)

    def test_a_worker_with_a_device_alone_lets_memory_grow(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job(fraction=None))
        limits.check_devices()
        tf, torch = FakeTensorFlow(2), FakeTorch(2)
        mismatch, _ = applied(monkeypatch, tmp_path, limits, tensorflow=tf, torch=torch)
        assert mismatch is None
        assert tf.growth == {"GPU:0": True, "GPU:1": True}
        assert (tf.limits, torch.fractions) == ({}, {0: 1.0, 1: 1.0})

    def test_devices_of_different_sizes_have_limits_of_their_own(self, job, driver, monkeypatch, tmp_path):
        driver["GPU-bbbb"] = 40 * GIB
        limits = BackendLimits(job())
        limits.check_devices()
        tf = FakeTensorFlow(2)
        applied(monkeypatch, tmp_path, limits, tensorflow=tf)
        assert [each[0].memory_limit for each in tf.limits.values()] == [32768, 16384]

    def test_what_a_script_sets_before_the_import_does_not_widen_the_share(
        self, job, driver, monkeypatch, tmp_path, capfd
    ):
        limits = BackendLimits(job())
        limits.check_devices()
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
        mismatch, found = applied(monkeypatch, tmp_path, limits, torch=FakeTorch(2))
        assert mismatch is None
        assert found["environment"]["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa,GPU-bbbb"
        assert "this worker's share stays" in capfd.readouterr().err

    def test_a_script_may_do_without_its_gpus(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        mismatch, found = applied(monkeypatch, tmp_path, limits, torch=FakeTorch(0))
        assert mismatch is None
        assert found["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"


class TestRefused:
    def test_an_engine_that_passes_no_device_on(self, job, driver, monkeypatch):
        monkeypatch.setattr(limits_module, "visible_gpus", lambda: None)
        with pytest.raises(
            EnvironmentNotReadyError, match="no NVIDIA driver answers in this worker, which has GPU-aaaa"
        ):
            BackendLimits(job()).check_devices()

    def test_a_device_that_is_not_the_shares(self, job, driver):
        del driver["GPU-bbbb"]
        with pytest.raises(
            EnvironmentNotReadyError, match="GPU GPU-bbbb is not visible in this worker; visible are: GPU-aaaa"
        ):
            BackendLimits(job()).check_devices()

    def test_a_build_without_cuda(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        mismatch, found = applied(monkeypatch, tmp_path, limits, torch=FakeTorch(0))
        assert mismatch == ("torch 2.99 sees 0 GPUs in this worker, whose share has 2: is it a build without CUDA?")
        assert found["mismatch"] == mismatch

    def test_more_devices_than_the_share_has(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job(gpus=TWO[:1]))
        limits.check_devices()
        mismatch, _ = applied(monkeypatch, tmp_path, limits, tensorflow=FakeTensorFlow(4))
        assert "sees 4 GPUs in this worker, whose share has 1: the engine shows more" in mismatch

    def test_a_limit_that_did_not_take(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        mismatch, _ = applied(monkeypatch, tmp_path, limits, torch=FakeTorch(2, ignores_limit=True))
        assert mismatch == "torch may take 1 of a GPU in this worker, whose share is 0.4"

    def test_devices_that_were_initialised_before(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        tf = FakeTensorFlow(1)

        def refuse(*_):
            raise RuntimeError("Virtual devices cannot be modified after being initialized")

        tf.config.set_logical_device_configuration = refuse
        with pytest.raises(EnvironmentNotReadyError, match="TensorFlow refused the GPU memory limit"):
            limits.hooks()["tensorflow"](tf)

    def test_memory_that_nobody_knows_cannot_be_limited(self, job, driver):
        driver["GPU-aaaa"] = None
        limits = BackendLimits(job())
        limits.check_devices()
        with pytest.raises(EnvironmentNotReadyError, match="the memory of GPU GPU-aaaa cannot be read"):
            limits.hooks()["tensorflow"](FakeTensorFlow(1))

    def test_a_refusal_takes_the_place_of_ready(self, job, driver, monkeypatch, tmp_path):
        limits = BackendLimits(job())
        limits.check_devices()
        monkeypatch.setitem(sys.modules, "torch", FakeTorch(0))
        said = []
        line = limits.before_ready(SimpleNamespace(send=said.append, receive=None, speak_here=None))
        line.send({"type": "notice", "text": "x"})
        line.send({"type": "ready", "stage": 1})
        assert [each["type"] for each in said] == ["notice", "refuse"]
        assert said[1]["status"] == 5


class TestVisible:
    def test_nvidia_smi_is_asked_where_its_library_is_not(self, tmp_path, monkeypatch):
        tool = tmp_path / "nvidia-smi"
        tool.write_text(
            "#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1a-2b)'\necho '  MIG 1g.18gb Device 0: (UUID: MIG-3c-4d)'\n"
        )
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(visible, "_load", lambda: None)
        assert visible.visible_gpus() == {"GPU-1a-2b": None, "MIG-3c-4d": None}

    def test_without_either_nobody_knows(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(visible, "_load", lambda: None)
        assert visible.visible_gpus() is None

    def test_the_library_lists_devices_and_their_instances(self, monkeypatch):
        monkeypatch.setattr(visible, "_load", FakeLibrary)
        assert visible.visible_gpus() == {"GPU-0": 80 * GIB, "MIG-0-0": 20 * GIB, "GPU-1": 80 * GIB}


class FakeLibrary:  # the names are the driver's
    """The driver's C interface: two devices, the first of which is cut."""

    names = {  # noqa: RUF012
        1: (b"GPU-0", 80),
        2: (b"GPU-1", 80),
        10: (b"MIG-0-0", 20),
    }

    def nvmlDeviceGetCount_v2(self, count):  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetUUID(self, handle, text, size):  # noqa: N802
        text.value = self.names[handle.value][0]
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):  # noqa: N802
        memory._obj.total = self.names[handle.value][1] * GIB
        return 0

    def nvmlDeviceGetMaxMigDeviceCount(self, handle, most):  # noqa: N802
        most._obj.value = 7 if handle.value == 1 else 0
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, number, instance):  # noqa: N802
        instance._obj.value = 10
        return 0 if number == 0 else 6  # NVML_ERROR_NOT_FOUND

    def nvmlShutdown(self):  # noqa: N802
        assert ctypes
        return 0
