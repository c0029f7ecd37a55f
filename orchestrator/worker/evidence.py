"""Why a trial process ended: what the kernel's own counters and the exit status say."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from typing import Optional

from orchestrator.scan.memory import shm_is_full

# cgroup v2 first, then v1; inside a container its own group is the root of what it sees.
_OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_LIMIT_FILES = {
    "memory_bytes": ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "memory_and_swap_bytes": (
        "/sys/fs/cgroup/memory.swap.max",
        "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
    ),
    "cpu": ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    "cpuset": ("/sys/fs/cgroup/cpuset.cpus.effective", "/sys/fs/cgroup/cpuset/cpuset.effective_cpus"),
    "pids": ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
}
_PEAK_FILES = ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes")


def _read(path: str) -> Optional[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return None


def _first(paths: tuple[str, ...]) -> Optional[str]:
    return next((text for text in map(_read, paths) if text is not None), None)


def oom_kills() -> Optional[int]:
    """Count the processes that the kernel killed in this container for memory; None where it does not say."""
    match = re.search(r"^oom_kill (\d+)$", _first(_OOM_FILES) or "", re.MULTILINE)
    return int(match.group(1)) if match else None


def cgroup_limits() -> dict[str, Optional[str]]:
    """Read the limits in force as the kernel states them (bytes, microseconds per period, counts)."""
    return {name: _first(paths) for name, paths in _LIMIT_FILES.items()}


def has_ended(pid: int) -> bool:
    """Say whether a process is gone, or dead and not yet waited for; False where there is no ``/proc`` to tell."""
    text = _read(f"/proc/{pid}/stat")
    if text is None:
        return os.path.exists("/proc/self/stat")
    return text.rpartition(")")[2].split()[0] in ("Z", "X")


def peak_container_mib() -> Optional[float]:
    """Give the highest memory of the whole container so far, MiB."""
    text = _first(_PEAK_FILES)
    return round(int(text) / 1024 / 1024, 1) if text and text.isdigit() else None


@dataclass(frozen=True)
class Death:
    """``cause`` is one of the schema's causes, ``text`` one line for people."""

    cause: str
    text: str


def explain(status: int, oom_before: Optional[int], oom_after: Optional[int], limit: Optional[int]) -> Death:
    """Name the cause of a trial process's end from its exit status (negative: a signal) and the kernel's counters.

    ``limit`` is the memory limit in bytes, for the text.
    """
    rose = oom_before is not None and oom_after is not None and oom_after > oom_before
    if status == -signal.SIGKILL and rose:
        size = f" of {limit / 1024**2:.0f} MiB" if limit else ""
        return Death("host-oom", f"the trial process was killed at its memory limit{size}: give more with --memory")
    if status == -signal.SIGBUS:
        if shm_is_full():
            return Death("shm", "the trial process died of a bus error with /dev/shm full: give more with --shm-size")
        return Death("signal", "the trial process died of a bus error (SIGBUS)")
    if status < 0:
        name = signal.Signals(-status).name if -status in signal.valid_signals() else f"signal {-status}"
        return Death("signal", f"the trial process was ended by {name}")
    return Death("unknown", f"the trial process ended by itself with exit status {status}, in the middle of a trial")
