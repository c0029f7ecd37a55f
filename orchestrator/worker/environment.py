"""A writable, stable world around the user's code, whatever the image."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import Optional

from orchestrator.schema import Job

# Each backend or library writes below these; on a read-only root they must exist and be writable before any import.
WRITABLE = (
    "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KERAS_HOME", "TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH",
)  # fmt: skip


OPEN_FILES = 65536


def prepare(job: Job) -> None:
    """Make the folders that the environment names, and go to the script's working directory; OSError if neither can be."""
    for name in WRITABLE:
        path = os.environ.get(name)
        if path:
            os.makedirs(path, exist_ok=True)
    _allow_open_files()
    if job.share is not None and not job.isolated:
        _stay_on(job.share.get("cpuset"))
    os.chdir(job.workdir)


def _stay_on(cpuset: Optional[str]) -> None:
    """Keep a plain process to its CPUs, as an engine keeps a container."""
    if cpuset is not None:
        parts = [part.partition("-") for part in cpuset.split(",")]
        numbers = {number for first, _, last in parts for number in range(int(first), int(last or first) + 1)}
        os.sched_setaffinity(0, numbers)


def clear_shared_memory() -> None:
    """Delete what a dead trial process left in the container's own /dev/shm: it counts against the memory limit."""
    folder = "/dev/shm"  # noqa: S108 - the container's own
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def _allow_open_files() -> None:
    # Some engines start containers with 1,024, which data loaders use up. Up to the hard limit no privilege is needed,
    # and asking the engine for more than its own hard limit would keep the container from starting.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
