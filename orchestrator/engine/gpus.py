"""Which NVIDIA devices this machine has, from its driver."""

from __future__ import annotations

import pynvml

from orchestrator.plan.shares import Gpu


def local_gpus() -> tuple[Gpu, ...]:
    """List the devices in the driver's order; none where there is no driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
    memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    return Gpu(uuid=str(uuid), index=index, name=str(name), memory=memory)
