"""Talos's device helpers: what they set, what they refuse, and that a mirrored model trains as one on one device does."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from orchestrator import devices
from orchestrator.devices import force_cpu, multi_gpu, parallel_gpu_jobs

GIB = 1024**3


@pytest.fixture
def fake_torch(monkeypatch):
    set_to = {}
    module = SimpleNamespace(
        cuda=SimpleNamespace(
            device_count=lambda: 3,
            set_per_process_memory_fraction=lambda fraction, device: set_to.__setitem__(device, fraction),
        ),
        nn=SimpleNamespace(DataParallel=lambda model, device_ids: ("parallel", device_ids)),
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return set_to


@pytest.fixture
def fake_tensorflow(monkeypatch):
    limits, growth = {}, {}
    module = SimpleNamespace(
        config=SimpleNamespace(
            list_physical_devices=lambda kind: ["GPU:0", "GPU:1"],
            list_logical_devices=lambda kind: [SimpleNamespace(name="GPU:0")],
            LogicalDeviceConfiguration=lambda memory_limit: memory_limit,
            set_logical_device_configuration=limits.__setitem__,
            set_visible_devices=lambda shown, kind: limits.__setitem__(kind, shown),
            experimental=SimpleNamespace(set_memory_growth=growth.__setitem__),
        )
    )
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    return limits, growth


@pytest.fixture
def driver(monkeypatch):
    shown = {"GPU-a": 24 * GIB, "GPU-b": 48 * GIB, "GPU-c": 96 * GIB}
    monkeypatch.setattr(devices, "visible_gpus", lambda: shown)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return shown


def test_torch_is_limited_on_every_device(fake_torch):
    parallel_gpu_jobs(0.4, backend="torch")
    assert fake_torch == {0: 0.4, 1: 0.4, 2: 0.4}


@pytest.mark.parametrize(
    ("visible", "limits"),
    [(None, [12288, 24576]), ("1,2", [24576, 49152]), ("GPU-c,GPU-a", [49152, 12288]), ("2,GPU-a", [49152, 12288])],
)
def test_tensorflow_is_limited_on_every_device_by_its_own_size(fake_tensorflow, driver, monkeypatch, visible, limits):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    parallel_gpu_jobs(0.5)
    assert fake_tensorflow[0] == {"GPU:0": [limits[0]], "GPU:1": [limits[1]]}


def test_memory_that_the_driver_does_not_tell_is_no_limit_that_was_set(fake_tensorflow, driver):
    driver.clear()
    with pytest.raises(RuntimeError, match="no limit can be set"):
        parallel_gpu_jobs(0.5)
    assert fake_tensorflow[0] == {}


def test_growth_is_what_a_whole_device_gets(fake_tensorflow, driver):
    parallel_gpu_jobs(allow_growth=True, fraction=1)
    assert fake_tensorflow[1] == {"GPU:0": True, "GPU:1": True}


@pytest.mark.parametrize("fraction", [0, -1, 1.5, float("nan")])
def test_what_is_no_part_is_refused(fraction):
    with pytest.raises(ValueError, match="more than 0 and at most 1"):
        parallel_gpu_jobs(fraction)


def test_in_a_worker_the_share_stays(fake_torch, monkeypatch, capsys):
    monkeypatch.setattr(devices, "in_worker", lambda: True)
    parallel_gpu_jobs(0.9, backend="torch")
    assert fake_torch == {}
    assert "this worker's share is in force already and stays" in capsys.readouterr().err


def test_one_device_leaves_the_model_as_it_is(fake_tensorflow):
    model = object()
    assert multi_gpu(model) is model


@pytest.mark.parametrize(("gpus", "ids"), [(None, [0, 1, 2]), (2, [0, 1]), ([0, 2], [0, 2]), ([0, 7], None)])
def test_a_torch_model_is_spread_over_the_devices_that_there_are(fake_torch, gpus, ids):
    model = SimpleNamespace(state_dict=dict)
    assert multi_gpu(model, gpus) == (("parallel", ids) if ids else model)


def test_the_cpu_can_be_forced(fake_tensorflow):
    assert force_cpu(backend="torch") == "cpu"
    assert force_cpu() is None
    assert fake_tensorflow[0] == {"GPU": []}


MIRRORED = """
import os
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
import numpy as np
import tensorflow as tf
from orchestrator.devices import mirrored, multi_gpu
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
x = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], "float32")
tf.keras.utils.set_random_seed(3)
one = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
assert multi_gpu(one) is one, "no GPU here: as it was"
one.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
one.fit(x, y, batch_size=16, epochs=1, shuffle=False, verbose=0)  # so that the optimizer has a state
two = mirrored(one, ["CPU:0", "CPU:1"])
assert two.optimizer.iterations.numpy() == 4
first = one.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
second = two.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0).history
assert set(first) == set(second) == {"loss", "mae"}, (first, second)
np.testing.assert_allclose(first["loss"], second["loss"], rtol=1e-4)
print("equal", len(two.distribute_strategy.extended.worker_devices) if hasattr(two, "distribute_strategy") else 2)
"""


@pytest.mark.backend
def test_a_mirrored_model_trains_as_one_on_one_device_does():
    done = subprocess.run([sys.executable, "-c", MIRRORED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("equal 2")
