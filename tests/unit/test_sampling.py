"""GPU memory as the driver counts it: whose it is, and who has more than his share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from makers import GIB, share

from orchestrator.coordinator.sampling import GpuUse
from orchestrator.engine import gpus
from orchestrator.engine.process import ProcessEngine, _parent

MIB = 1024**2


@pytest.fixture
def use():
    shares = {0: share(0, gpus=["GPU-1"], gpu_fraction=0.25, gpu_bytes=6 * GIB), 1: share(1, gpus=["GPU-1"])}
    return GpuUse(shares)


def test_a_worker_over_its_share_and_context_is_told_once(use):
    assert use.take({0: {"GPU-1": 6 * GIB + 500 * MIB}}) == []
    (said,) = use.take({0: {"GPU-1": 7 * GIB}, 1: {"GPU-1": 20 * GIB}})
    assert said.startswith("worker 0 has 7.0 GiB on GPU GPU-1, over its share of 6.0 GiB and 600 MiB of context")
    assert use.take({0: {"GPU-1": 8 * GIB}}) == []
    assert use.mib == {0: 8192.0}


def test_there_is_nothing_to_look_at_without_gpus():
    assert not GpuUse({0: share(0)}).devices


@pytest.fixture
def driver(monkeypatch):
    """NVML with processes on two devices, one of which does not tell how much (WSL2)."""
    running = {"GPU-1": [(10, 3 * GIB), (11, GIB), (12, None)], "GPU-2": [(10, 2 * GIB)]}

    class Refusal(Exception):  # noqa: N818 - a stand-in
        """As NVML's."""

    def handle(uuid):
        if uuid not in running:
            raise Refusal
        return uuid

    stand_in = SimpleNamespace(
        NVMLError=Refusal, nvmlInit=lambda: None, nvmlShutdown=lambda: None, nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetComputeRunningProcesses=lambda uuid: [
            SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in running[uuid]
        ],
    )  # fmt: skip
    monkeypatch.setattr(gpus, "pynvml", stand_in)
    return stand_in


def test_processes_are_counted_with_their_members(driver):
    member_of = {10: "w00", 11: "w00", 12: "w01"}.get
    assert gpus.memory_by_member(["GPU-1", "GPU-2", "GPU-9"], member_of) == {
        "w00": {"GPU-1": 4 * GIB, "GPU-2": 2 * GIB}
    }


def test_a_stranger_is_nobodys_member(driver):
    assert gpus.memory_by_member(["GPU-1"], lambda pid: None) == {}


def test_a_plain_process_belongs_to_the_member_that_it_descends_from(driver, monkeypatch):
    with subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys; subprocess.run(['sleep', '60'])"], start_new_session=True
    ) as root:
        try:
            children = []
            while not children:
                children = Path(f"/proc/{root.pid}/task/{root.pid}/children").read_text().split()
            child = int(children[0])
            assert _parent(child) == root.pid
            engine = ProcessEngine({})
            monkeypatch.setattr(engine, "_known", lambda folder: [("run", {"pid": root.pid, "member": "w03"})])
            running = [
                SimpleNamespace(pid=child, usedGpuMemory=GIB),
                SimpleNamespace(pid=os.getpid(), usedGpuMemory=GIB),
            ]
            driver.nvmlDeviceGetComputeRunningProcesses = lambda uuid: running
            assert engine.gpu_memory("folder", ["GPU-1"]) == {"w03": {"GPU-1": GIB}}
        finally:
            os.killpg(root.pid, 9)
