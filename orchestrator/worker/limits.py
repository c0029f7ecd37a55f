"""A share, applied inside the container: to each backend the moment it has been imported, then read back.

Nothing here imports a backend; where the script does not, there is nothing to limit. What does not hold in the end stops the
worker: a limit that is only believed in would hurt the neighbours.
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
from orchestrator.worker.visible import visible_gpus

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS", "OMP_WAIT_POLICY", _VISIBLE, "XLA_PYTHON_CLIENT_MEM_FRACTION",
)  # fmt: skip
_MIB = 1024 * 1024
_CPU_ONLY = ("", "-1")


class BackendLimits:
    """The hooks of one job. A limit that a backend refuses is an error with a name, never a warning in a log."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._share = Share.from_json(job.share, "share") if job.share else None
        self._applied: dict[str, Any] = {}
        self._seen: Optional[dict[str, Optional[int]]] = None
        self._own_devices = os.environ.get(_VISIBLE)

    def check_devices(self) -> None:
        """See that the driver shows the share's GPUs; EnvironmentNotReadyError names what it does not show.

        An engine that does not know device requests starts a container all the same, without them or with every GPU.
        """
        if self._share is None or not self._share.gpus:
            return
        self._seen = visible_gpus()
        asked = ", ".join(self._share.gpus)
        if self._seen is None:
            raise EnvironmentNotReadyError(
                f"no NVIDIA driver answers in this worker, which has {asked}: the engine did not pass the devices on; "
                "install the NVIDIA Container Toolkit and restart the engine"
            )
        missing = [uuid for uuid in self._share.gpus if uuid not in self._seen]
        if missing:
            have = ", ".join(self._seen) or "none"
            raise EnvironmentNotReadyError(
                f"GPU {missing[0]} is not visible in this worker; visible are: {have}: the engine ignored the device request"
            )

    def hooks(self) -> dict[str, Hook]:
        """Give what to do after the import of each backend."""
        return {"tensorflow": self._tensorflow, "torch": self._torch, "jax": self._jax}

    def _keep_devices(self) -> None:
        """Undo what the script did to the list of devices, unless it wants none; before any device is looked at."""
        now = os.environ.get(_VISIBLE)
        if self._share is None or now == self._own_devices or now in _CPU_ONLY:
            return
        sys.stderr.write(f"talos-orch: the script sets {_VISIBLE}={now}: this worker's share stays\n")
        if self._own_devices is None:
            del os.environ[_VISIBLE]
        else:
            os.environ[_VISIBLE] = self._own_devices

    def _tensorflow(self, tf: ModuleType) -> None:
        seed_backend("tensorflow", at_import=True)
        self._keep_devices()
        if self._share is None or not self._share.gpus:
            return
        fraction = self._share.gpu_fraction
        try:
            for place, device in enumerate(tf.config.list_physical_devices("GPU")):
                if fraction is None:
                    tf.config.experimental.set_memory_growth(device, True)
                    continue
                limit = int(self._device_bytes(place) * fraction / _MIB)
                tf.config.set_logical_device_configuration(
                    device, [tf.config.LogicalDeviceConfiguration(memory_limit=limit)]
                )
                self._applied.setdefault("tensorflow_memory_limit_mib", []).append(limit)
        except (RuntimeError, ValueError) as error:
            raise EnvironmentNotReadyError(
                f"TensorFlow refused the GPU memory limit of this worker: {error}"
            ) from error

    def _device_bytes(self, place: int) -> int:
        """Give the memory of the device that backends count as ``place``: they follow the order of the share's UUIDs."""
        gpus = self._share.gpus if self._share is not None else []
        uuid = gpus[min(place, len(gpus) - 1)]  # one too many is refused when everything is read back
        size = (self._seen or {}).get(uuid)
        if size is None:
            raise EnvironmentNotReadyError(
                f"the memory of GPU {uuid} cannot be read in this worker: no limit can be set"
            )
        return size

    def _torch(self, torch: ModuleType) -> None:
        seed_backend("torch", at_import=True)
        self._keep_devices()
        if self._share is None:
            return
        torch.set_num_threads(self._share.threads)
        _set_interop_once(torch, self._share.threads)
        fraction = self._share.gpu_fraction
        if self._share.gpus and fraction is not None:
            # Now if the device is in use, else when it is first used: to set it takes the device, and a process that has taken
            # one cannot fork others that use it.
            later = getattr(torch.cuda, "_lazy_call", lambda do: do())
            for device in range(torch.cuda.device_count()):
                later(lambda device=device: torch.cuda.set_per_process_memory_fraction(fraction, device))
                self._applied.setdefault("torch_memory_fraction", []).append(fraction)

    def _jax(self, _jax: ModuleType) -> None:
        # It reads XLA_PYTHON_CLIENT_MEM_FRACTION, set before this process began, when it first looks for devices.
        self._keep_devices()

    def before_ready(self, line: Any) -> Any:
        """Give the line, wrapped so that what holds is written down and checked before the first ``ready`` is said."""
        return _ReadBack(line, self)

    def write(self) -> Optional[str]:
        """Write ``limits.json``: backends, devices, threads in force, the kernel's limits. What does not hold, if anything."""
        found = self._read()
        write_json(RunDir(self._job.run).limits, found)
        mismatch: Optional[str] = found["mismatch"]
        return mismatch

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "schema": 1,
            "python": sys.version.split()[0],
            "environment": {name: os.environ.get(name) for name in _VARIABLES},
            "cgroup": cgroup_limits() if self._job.limits_enforced else None,
            "not_enforced": [] if self._job.limits_enforced else ["memory", "cpus", "pids", "shm", "file system"],
            "affinity": sorted(os.sched_getaffinity(0)),
            "shm_bytes": _size_of("/dev/shm"),  # noqa: S108 - asked about, not written to
            "uid": os.getuid(),
            "gid": os.getgid(),
            "gpus": self._share.gpus if self._share is not None else [],
            "gpus_seen": list(self._seen) if self._seen is not None else None,
            "gpu_fraction": self._share.gpu_fraction if self._share is not None else None,
            "applied": self._applied,
            "backends": {},
        }
        for name in ("talos", "tensorflow", "keras", "torch", "jax"):
            module = sys.modules.get(name)
            if module is not None and hasattr(module, "__version__"):
                found["backends"][name] = {"version": str(module.__version__), **_state(name, module)}
        found["mismatch"] = self._mismatch(found["backends"])
        return found

    def _mismatch(self, backends: dict[str, Any]) -> Optional[str]:
        """Say what a backend has other than the share says, if anything."""
        share = self._share
        if share is None or os.environ.get(_VISIBLE) in _CPU_ONLY:
            return None  # a share without GPUs, or a script that wants none of them
        for name, state in backends.items():
            count = state.get("devices")
            if count is not None and count != len(share.gpus):
                return (
                    f"{name} {state['version']} sees {count} GPUs in this worker, whose share has {len(share.gpus)}: "
                    + ("is it a build without CUDA?" if count == 0 else "the engine shows more than it was asked for")
                )
            most = max(state.get("memory_fraction", []), default=0.0)
            if share.gpu_fraction is not None and most > share.gpu_fraction + 1e-6:
                return f"{name} may take {most:g} of a GPU in this worker, whose share is {share.gpu_fraction:g}"
        return None


def _set_interop_once(torch: Any, threads: int) -> None:
    """Set Torch's inter-op threads, which it allows once, and let a script that sets them too go on."""
    choose = torch.set_num_interop_threads

    def set_num_interop_threads(_count: int) -> None:
        sys.stderr.write(f"talos-orch: torch.set_num_interop_threads: this worker's share is {threads} and stays\n")

    choose(threads)
    torch.set_num_interop_threads = set_num_interop_threads


class _ReadBack:
    def __init__(self, line: Any, limits: BackendLimits) -> None:
        self._line, self._limits, self._said, self._again = line, limits, False, False
        self.receive, self.speak_here = line.receive, line.speak_here

    def send(self, message: dict[str, Any]) -> None:
        if not self._said and message["type"] == "ready":
            mismatch = self._limits.write()
            if mismatch is not None:
                message = {"type": "refuse", "error": mismatch, "status": EnvironmentNotReadyError.exit_code}
            self._said = True
        self._line.send(message)
        if not self._again and message["type"] == "done":
            self._again = True  # the first trial has used the device, and what holds on it can be read by now
            mismatch = self._limits.write()
            if mismatch is not None:
                self._line.send({"type": "notice", "text": mismatch})


def _state(name: str, module: Any) -> dict[str, Any]:
    """Read what a backend says of itself, without taking a device."""
    if name == "torch":
        state = {"intra": module.get_num_threads(), "inter": module.get_num_interop_threads()}
        state["devices"] = count = module.cuda.device_count()
        read = getattr(module.cuda, "get_per_process_memory_fraction", None)
        return (
            state if read is None or not count else {**state, "memory_fraction": [read(each) for each in range(count)]}
        )
    if name == "tensorflow" and hasattr(module, "config"):
        return _tensorflow_state(module)
    if name == "keras":
        return {"backend": module.config.backend() if hasattr(module, "config") else None}
    return {}


def _tensorflow_state(tf: Any) -> dict[str, Any]:
    devices = tf.config.list_physical_devices("GPU")
    # Its getters say 0 for threads that the variables have set.
    state: dict[str, Any] = {"devices": len(devices)}
    if devices:
        configured = [tf.config.get_logical_device_configuration(device) or [] for device in devices]
        state["memory_limit_mib"] = [[logical.memory_limit for logical in each] for each in configured]
    return state


def _size_of(folder: str) -> Optional[int]:
    try:
        usage = os.statvfs(folder)
    except OSError:
        return None
    return usage.f_blocks * usage.f_frsize
