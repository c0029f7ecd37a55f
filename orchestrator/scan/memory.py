"""Peak memory of one trial, as the kernel counted it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Optional

_MIB = 1024.0


class PeakMemory:
    """Counts from its construction to ``read``; MiB of this process, and of all visible CUDA devices through Torch."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
            stream.write("5")  # the kernel's word for: forget the highest resident size
        torch = _cuda()
        if torch is not None:
            for device in range(torch.cuda.device_count()):
                torch.cuda.reset_peak_memory_stats(device)

    def read(self) -> dict[str, Optional[float]]:
        """Give ``peak_host_mib`` and ``peak_gpu_mib``; None where it cannot be known."""
        torch = _cuda()
        gpu = None
        if torch is not None:
            peaks = [torch.cuda.max_memory_allocated(device) for device in range(torch.cuda.device_count())]
            gpu = sum(peaks) / _MIB / _MIB
        return {"peak_host_mib": _highest_resident(), "peak_gpu_mib": gpu}


def _highest_resident() -> Optional[float]:
    with (
        contextlib.suppress(OSError),
        open("/proc/self/status", encoding="ascii", errors="replace") as stream,
    ):
        for line in stream:
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / _MIB, 1)
    return None


def _cuda() -> Any:
    torch = sys.modules.get("torch")
    # Asking is_initialized does not initialise: counting must not be what takes the device.
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        return torch
    return None


def shm_is_full() -> bool:
    """Say whether less than a fiftieth of /dev/shm is free."""
    try:
        usage = os.statvfs("/dev/shm")  # noqa: S108 - asked about, not written to
    except OSError:
        return False
    return bool(usage.f_blocks) and usage.f_bavail / usage.f_blocks < 0.02
