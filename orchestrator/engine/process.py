"""The same driver and workers as plain processes of this machine: no Docker, and no wall but the user's own account."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import time

from orchestrator.engine.base import Ended, EngineInfo
from orchestrator.engine.gpus import memory_by_member
from orchestrator.errors import EngineError, ViewRefusedError
from orchestrator.plan.cpus import Cpu
from orchestrator.plan.devices import Gpu
from orchestrator.plan.shares import Machine
from orchestrator.plan.specs import ContainerSpec
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import RunDir, SweepDir

_PID = "pid.json"
_KEEP = ("PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "VIRTUAL_ENV")


class ProcessEngine:
    """Each member is a process group, found again by ``pid.json`` in its run directory."""

    isolated = False

    def __init__(self, environ: dict[str, str], gpus: tuple[Gpu, ...] = (), topology: tuple[Cpu, ...] = ()) -> None:
        self._environ = {name: environ[name] for name in _KEEP if name in environ}
        self._gpus, self._topology = gpus, topology
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def info(self) -> EngineInfo:
        """Say what this machine has, and that nothing is enforced."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return EngineInfo(
            name="process",
            endpoint="this machine",
            version=f"Python {platform.python_version()}",
            machine=Machine(cpus=len(os.sched_getaffinity(0)), memory=memory, gpus=self._gpus, topology=self._topology),
            not_enforced=("memory", "cpus", "pids", "shm", "file system", "network"),
            notes=("engine process: memory, cores, processes, files and network are not limited; threads are",),
        )

    def start(self, spec: ContainerSpec) -> None:
        """Start one process group with the spec's environment; a view has to be a copy that is there."""
        if spec.view is not None and not spec.view.copied:
            raise ViewRefusedError("plain processes have no views of their own")
        with open(os.path.join(spec.run, "boot.txt"), "ab") as boot:
            try:
                process = subprocess.Popen(
                    spec.command,
                    cwd=spec.workdir,
                    env={**self._environ, **spec.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=boot,
                    start_new_session=True,
                )
            except OSError as error:
                raise EngineError(f"cannot start {spec.member}: {error}") from error
        self._started[spec.run] = process
        identity = {
            "pid": process.pid,
            "born": _born(process.pid),
            "attempt": spec.attempt,
            "member": spec.member,
        }
        write_json(os.path.join(spec.run, _PID), identity)

    def ended(self, folder: str) -> list[Ended]:
        """List members whose process is gone; a status is known only to the coordinator that started it."""
        found = []
        for run, pid in self._known(folder):
            process = self._started.get(run)
            status = process.poll() if process is not None else (None if _alive(pid) else 1)
            if status is not None:
                code = status if status >= 0 else 128 - status
                found.append(Ended(member=str(pid["member"]), attempt=int(str(pid["attempt"])), exit_code=code))
        return found

    def members(self, folder: str) -> list[str]:
        """List members by their pid files."""
        return [str(pid["member"]) for _, pid in self._known(folder)]

    def gpu_memory(self, folder: str, uuids: list[str]) -> dict[str, dict[str, int]]:
        """Ask the driver, and tell processes apart by the member that they descend from."""
        roots = {int(str(pid["pid"])): str(pid["member"]) for _, pid in self._known(folder)}

        def member_of(pid: int) -> str | None:
            while pid > 1 and pid not in roots:
                pid = _parent(pid)
            return roots.get(pid)

        return memory_by_member(uuids, member_of)

    def stop(self, folder: str, members: list[str] | None = None, *, grace: float = 10.0) -> None:
        """SIGTERM to each group, then SIGKILL."""
        chosen = [pid for _, pid in self._known(folder) if members is None or pid["member"] in members]
        steps = [(signal.SIGTERM, grace), (signal.SIGKILL, 5.0)]
        for number, patience in steps if grace > 0 else steps[1:]:
            deadline = time.monotonic() + patience
            left = [pid for pid in chosen if self._alive_here(pid)]
            for pid in left:
                _signal(int(str(pid["pid"])), number)
            while any(self._alive_here(pid) for pid in left) and time.monotonic() < deadline:
                time.sleep(0.02)

    def remove(self, folder: str, members: list[str] | None = None) -> None:
        """Forget ended members."""
        for run, pid in self._known(folder):
            if members is not None and pid["member"] not in members:
                continue
            self._started.pop(run, None)
            for name in (_PID, "boot.txt"):
                path = os.path.join(run, name)
                if os.path.exists(path) and (name == _PID or os.path.getsize(path) == 0):
                    os.unlink(path)

    def _alive_here(self, pid: dict[str, object]) -> bool:
        for process in self._started.values():
            if process.pid == pid["pid"]:
                return process.poll() is None
        return _alive(pid)

    @staticmethod
    def _known(folder: str) -> list[tuple[str, dict[str, object]]]:
        sweep = SweepDir(folder)
        runs: list[RunDir] = [sweep.driver, *(sweep.worker(number) for number in sweep.workers())]
        found = []
        for run in runs:
            path = os.path.join(run.path, _PID)
            if os.path.exists(path):
                found.append((run.path, read_json(path)))
        return found


def _born(pid: int) -> str:
    """Give the kernel's start time of a process, so that a reused number is not taken for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(pid: dict[str, object]) -> bool:
    born = _born(int(str(pid["pid"])))
    return bool(born) and born == pid["born"]


def _signal(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _parent(pid: int) -> int:
    """Give a process's parent; 0 for one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
            return int(stream.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
