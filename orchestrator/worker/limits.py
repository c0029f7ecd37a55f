"""A share, applied inside the container: to each backend the moment it has been imported, then read back.

Nothing here imports a backend; where the script does not, there is nothing to limit.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any, Optional

from orchestrator.errors import EnvironmentNotReadyError
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import RunDir
from orchestrator.scan.hooks import Hook
from orchestrator.scan.seeding import seed_backend
from orchestrator.schema import Job, Share
from orchestrator.worker.evidence import cgroup_limits

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
                     "TF_NUM_INTEROP_THREADS", "OMP_WAIT_POLICY")  # fmt: skip


class BackendLimits:
    """The hooks of one job. A limit that a backend refuses is an error with a name, never a warning in a log."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._share = Share.from_json(job.share, "share") if job.share else None
        self._applied: dict[str, Any] = {}

    def hooks(self) -> dict[str, Hook]:
        """Give what to do after the import of each backend."""
        return {"tensorflow": self._tensorflow, "torch": self._torch}

    def _tensorflow(self, tf: ModuleType) -> None:
        seed_backend("tensorflow")
        if self._share is None or not self._share.gpus:
            return
        fraction = self._share.gpu_fraction
        try:
            for device in tf.config.list_physical_devices("GPU"):
                if fraction is None:
                    tf.config.experimental.set_memory_growth(device, True)
                    continue
                limit = int(_device_mib(tf.config.list_physical_devices("GPU").index(device)) * fraction)
                tf.config.set_logical_device_configuration(
                    device, [tf.config.LogicalDeviceConfiguration(memory_limit=limit)]
                )
                self._applied["tensorflow_memory_limit_mib"] = limit
        except (RuntimeError, ValueError) as error:
            raise EnvironmentNotReadyError(
                f"TensorFlow refused the GPU memory limit of this worker: {error}"
            ) from error

    def _torch(self, torch: ModuleType) -> None:
        seed_backend("torch")
        if self._share is None:
            return
        torch.set_num_threads(self._share.threads)
        _set_interop_once(torch, self._share.threads)
        fraction = self._share.gpu_fraction
        if self._share.gpus and fraction is not None:
            for device in range(torch.cuda.device_count()):
                torch.cuda.set_per_process_memory_fraction(fraction, device)
            self._applied["torch_memory_fraction"] = fraction

    def before_ready(self, line: Any) -> Any:
        """Give the line, wrapped so that ``limits.json`` is written before the first ``ready`` is said."""
        return _ReadBack(line, self)

    def write(self) -> None:
        """Write down what holds now: backends, threads in force, the kernel's limits."""
        write_json(RunDir(self._job.run).limits, self._read())

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "schema": 1,
            "python": sys.version.split()[0],
            "environment": {name: os.environ.get(name) for name in _THREAD_VARIABLES},
            "cgroup": cgroup_limits() if self._job.limits_enforced else None,
            "not_enforced": [] if self._job.limits_enforced else ["memory", "cpus", "pids", "shm", "file system"],
            "affinity": sorted(os.sched_getaffinity(0)),
            "uid": os.getuid(),
            "gid": os.getgid(),
            "applied": self._applied,
            "backends": {},
        }
        for name in ("talos", "tensorflow", "keras", "torch", "jax"):
            module = sys.modules.get(name)
            if module is not None and hasattr(module, "__version__"):
                found["backends"][name] = {"version": str(module.__version__), **_threads(name, module)}
        return found


def _set_interop_once(torch: Any, threads: int) -> None:
    """Set Torch's inter-op threads, which it allows once, and let a script that sets them too go on."""
    choose = torch.set_num_interop_threads

    def set_num_interop_threads(_count: int) -> None:
        sys.stderr.write(f"talos-orch: torch.set_num_interop_threads: this worker's share is {threads} and stays\n")

    choose(threads)
    torch.set_num_interop_threads = set_num_interop_threads


class _ReadBack:
    def __init__(self, line: Any, limits: BackendLimits) -> None:
        self._line, self._limits, self._said = line, limits, False
        self.receive, self.speak_here = line.receive, line.speak_here

    def send(self, message: dict[str, Any]) -> None:
        if not self._said and message["type"] == "ready":
            self._limits.write()
            self._said = True
        self._line.send(message)


def _threads(name: str, module: ModuleType) -> dict[str, Optional[int]]:
    if name == "torch":
        return {"intra": module.get_num_threads(), "inter": module.get_num_interop_threads()}
    return {}


def _device_mib(index: int) -> float:
    import pynvml

    pynvml.nvmlInit()
    total: float = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).total
    return total / 1024 / 1024
