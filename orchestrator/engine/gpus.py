"""Which NVIDIA devices this machine has and who uses their memory, from its driver. The one place that asks NVML."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from orchestrator.plan.devices import Gpu


def local_gpus() -> tuple[Gpu, ...]:
    """List the devices in the driver's order, a device that is cut into MIG instances as these; none without a driver."""
    with _nvml() as there:
        if not there:
            return ()
        return tuple(gpu for index in range(pynvml.nvmlDeviceGetCount()) for gpu in _devices(index))


def memory_by_process(uuids: list[str]) -> dict[str, dict[int, int]]:
    """Give for each device the bytes that each process (host pid) has on it; a device that does not say is left out."""
    found: dict[str, dict[int, int]] = {}
    with _nvml() as there:
        for uuid in uuids if there else ():
            with contextlib.suppress(pynvml.NVMLError):
                handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
                running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
                # None where the platform does not tell, as under WSL2.
                found[uuid] = {int(each.pid): int(each.usedGpuMemory) for each in running if each.usedGpuMemory}
    return found


def memory_by_member(uuids: list[str], member_of: Callable[[int], str | None]) -> dict[str, dict[str, int]]:
    """Give the bytes that each member has on each device, where ``member_of`` knows whose a process (host pid) is."""
    found: dict[str, dict[str, int]] = {}
    for uuid, processes in memory_by_process(uuids).items():
        for pid, used in processes.items():
            member = member_of(pid)
            if member is not None:
                own = found.setdefault(member, {})
                own[uuid] = own.get(uuid, 0) + used
    return found


@contextlib.contextmanager
def _nvml() -> Iterator[bool]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _devices(index: int) -> list[Gpu]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = str(pynvml.nvmlDeviceGetName(handle))
    instances = _instances(handle) if _is_cut(handle) else []
    exclusive = _is_exclusive(handle)
    if not instances:
        return [_gpu(handle, index, name, None, exclusive=exclusive)]
    return [_gpu(each, index, f"{name} MIG", number, exclusive=exclusive) for number, each in instances]


def _gpu(handle: Any, index: int, name: str, instance: int | None, *, exclusive: bool) -> Gpu:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)), index=index, name=name, memory=int(memory.total),
        used=int(memory.used), instance=instance, exclusive=exclusive,
    )  # fmt: skip


def _is_cut(handle: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except pynvml.NVMLError:  # most devices cannot be cut
        return False


def _instances(handle: Any) -> list[tuple[int, Any]]:
    found = []
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with contextlib.suppress(pynvml.NVMLError):  # not every place is taken
            found.append((number, pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)))
    return found


def _is_exclusive(handle: Any) -> bool:
    try:
        mode = pynvml.nvmlDeviceGetComputeMode(handle)
    except pynvml.NVMLError:
        return False
    return bool(mode == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
