"""Containers through the Docker SDK. The only place, with its neighbours in this package, that knows ``docker``."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import docker
from docker.errors import APIError, NotFound
from docker.types import DeviceRequest, LogConfig, Mount

from orchestrator.engine.base import LABEL, Ended, EngineInfo
from orchestrator.engine.gpus import memory_by_member
from orchestrator.engine.kinds import describe, gpu_trouble, ignored_limits, notes
from orchestrator.engine.translate import engine_errors
from orchestrator.errors import EngineError, ViewRefusedError
from orchestrator.plan.cpus import Cpu
from orchestrator.plan.devices import Gpu
from orchestrator.plan.shares import Machine
from orchestrator.plan.specs import ContainerSpec, View
from orchestrator.version import __version__

if TYPE_CHECKING:
    from docker.models.containers import Container

_CONNECTIONS = 32  # workers are started side by side over one client
# With the first, what a deleted and re-made folder hides can be read by its owner and not by root alone (Linux 5.11).
_OVERLAY_OPTIONS = (",userxattr", "")
_TMPFS = "rw,nosuid,nodev,exec,mode=1777"


class DockerEngine:
    """The endpoint that ``environ`` names (DOCKER_HOST and its kin), else this machine's."""

    isolated = True

    def __init__(self, environ: Mapping[str, str], gpus: tuple[Gpu, ...] = (), topology: tuple[Cpu, ...] = ()) -> None:
        with engine_errors("connect to Docker"):
            self.client = docker.from_env(environment=dict(environ), max_pool_size=_CONNECTIONS)
        self._gpus, self._topology = gpus, topology

    def info(self) -> EngineInfo:
        """Ask the daemon what it is and has."""
        with engine_errors("ask Docker for its state"):
            about, version = self.client.info(), self.client.version()
        hook = shutil.which("nvidia-container-runtime-hook") is not None and self._is_local
        return EngineInfo(
            name="docker",
            endpoint=str(self.client.api.base_url),
            version=describe(version, self.client.api.api_version),
            machine=self._machine(about),
            gpu_trouble=gpu_trouble(about, version, hook=hook),
            data_root=about.get("DockerRootDir"),
            not_enforced=ignored_limits(about),
            notes=notes(about),
        )

    def _machine(self, about: dict[str, Any]) -> Machine:
        # An engine elsewhere, or in a virtual machine, has other CPUs than those seen here.
        same = self._is_local and len(self._topology) == int(about["NCPU"]) and about.get("CPUSet", True)
        topology = self._topology if same else ()
        return Machine(
            cpus=int(about["NCPU"]), memory=int(about["MemTotal"]), gpus=self._gpus, topology=topology
        )  # fmt: skip

    @property
    def _is_local(self) -> bool:
        return str(self.client.api.base_url).startswith("http+docker://")

    def start(self, spec: ContainerSpec) -> None:
        """Create and start one container; its leftovers are gone if either fails."""
        overlay = spec.view is not None and not spec.view.copied
        for options in _OVERLAY_OPTIONS if overlay else ("",):
            try:
                self._create_and_start(spec, options)
            except EngineError as error:
                if not overlay or not _is_mount_trouble(error):
                    raise
                refusal = error
            else:
                return
        raise ViewRefusedError(str(refusal)) from refusal

    def _create_and_start(self, spec: ContainerSpec, options: str) -> None:
        with engine_errors(f"start {spec.member} of {spec.sweep}"):
            mounts = [_bind(bind.source, bind.target, read_only=bind.read_only) for bind in spec.binds]
            if spec.view is not None and spec.view.copied:
                mounts.append(_bind(spec.view.upper, spec.view.target))
            elif spec.view is not None:
                mounts.append(self._overlay(spec, spec.view, options))
            container = self._create(spec, mounts)
            started = False
            try:
                container.start()
                started = True
            finally:
                if not started:
                    with contextlib.suppress(APIError):
                        container.remove(force=True)
                    self._remove_volume(_volume_name(spec))

    def _create(self, spec: ContainerSpec, mounts: list[Mount]) -> Container:
        arguments = container_arguments(spec)
        return self.client.containers.create(mounts=mounts, **arguments)

    def _overlay(self, spec: ContainerSpec, view: View, extra: str) -> Mount:
        os.makedirs(view.upper, exist_ok=True)
        os.makedirs(view.scratch, exist_ok=True)
        paths = (view.project, view.upper, view.scratch)
        if any(mark in path for path in paths for mark in ",:\\"):
            raise EngineError(f"mount: a comma, colon or backslash in {view.project} or the run folder")
        options = f"lowerdir={view.project},upperdir={view.upper},workdir={view.scratch}{extra}"
        self._remove_volume(_volume_name(spec))
        self.client.volumes.create(
            name=_volume_name(spec),
            driver="local",
            driver_opts={"type": "overlay", "device": "overlay", "o": options},
            labels=_labels(spec),
        )
        return Mount(target=view.target, source=_volume_name(spec), type="volume", no_copy=True)

    def ended(self, folder: str) -> list[Ended]:
        """List what has ended, from the daemon's own state; a stream's end would prove nothing."""
        found = []
        with engine_errors("look at the sweep's containers"):
            for summary in self._list(folder):
                if summary["State"] in ("running", "restarting", "paused"):
                    continue
                with contextlib.suppress(NotFound):
                    found.append(_ended(self.client.api.inspect_container(summary["Id"])))
        return found

    def members(self, folder: str) -> list[str]:
        """List the sweep's containers by their label."""
        with engine_errors("look at the sweep's containers"):
            return sorted(summary["Labels"][f"{LABEL}.member"] for summary in self._list(folder))

    def folders(self) -> set[str]:
        """Name the folders of all sweeps that have a container or a volume on this engine."""
        key = f"{LABEL}.folder"
        with engine_errors("look for containers of any sweep"):
            labels = [each["Labels"] for each in self.client.api.containers(all=True, filters={"label": [key]})]
            labels += [
                volume.attrs.get("Labels") or {} for volume in self.client.volumes.list(filters={"label": [key]})
            ]
        return {found[key] for found in labels if key in found}

    def gpu_memory(self, folder: str, uuids: list[str]) -> dict[str, dict[str, int]]:
        """Ask this machine's driver, and tell processes apart by the container that their control group names."""
        with engine_errors("look at the sweep's containers"):
            members = {summary["Id"]: summary["Labels"][f"{LABEL}.member"] for summary in self._list(folder)}

        def member_of(pid: int) -> str | None:
            try:
                with open(f"/proc/{pid}/cgroup", encoding="ascii", errors="replace") as stream:
                    text = stream.read()
            except OSError:  # it has ended meanwhile
                return None
            return next((member for identity, member in members.items() if identity in text), None)

        return memory_by_member(uuids, member_of) if self._is_local else {}

    def stop(self, folder: str, members: list[str] | None = None, *, grace: float = 10.0) -> None:
        """Signal all at once, then see each one's end."""
        with engine_errors("stop the sweep's containers"):
            running = [each for each in self._list(folder, members) if each["State"] in ("running", "restarting")]
            for summary in running:
                with contextlib.suppress(APIError):
                    self.client.api.kill(summary["Id"], signal="SIGTERM" if grace > 0 else "SIGKILL")
            for summary in running:
                with contextlib.suppress(NotFound):
                    self.client.api.stop(summary["Id"], timeout=int(grace))

    def remove(self, folder: str, members: list[str] | None = None) -> None:
        """Remove containers, then their volumes; what cannot be removed is an EngineError."""
        with engine_errors("remove the sweep's containers"):
            for summary in self._list(folder, members):
                with contextlib.suppress(NotFound):
                    self.client.api.remove_container(summary["Id"], force=True, v=True)
            filters = {"label": [f"{LABEL}.folder={folder}"]}
            for volume in self.client.volumes.list(filters=filters):
                labels = volume.attrs.get("Labels") or {}
                if members is None or labels.get(f"{LABEL}.member") in members:
                    self._remove_volume(volume.name)

    def _list(self, folder: str, members: list[str] | None = None) -> list[dict[str, Any]]:
        every = self.client.api.containers(all=True, filters={"label": [f"{LABEL}.folder={folder}"]})
        return [each for each in every if members is None or each["Labels"].get(f"{LABEL}.member") in members]

    def _remove_volume(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            self.client.api.remove_volume(name, force=True)

    def erase_as_root(self, image: str, parent: str, names: list[str]) -> None:
        """Delete root-owned folders ``names`` under ``parent`` with a short container that may; for a caller who may not."""
        with engine_errors("delete the kernel's work folders"):
            self.client.containers.run(
                image,
                ["rm", "-rf", "--", *(f"/erase/{name}" for name in names)],
                user="0:0",
                network_mode="none",
                mounts=[_bind(parent, "/erase")],
                remove=True,
                labels={f"{LABEL}.role": "eraser"},
            )


def container_arguments(spec: ContainerSpec) -> dict[str, Any]:
    """Turn a spec into the SDK's arguments; pure, so that what a container gets can be tested without one."""
    arguments: dict[str, Any] = {
        "image": spec.image,
        "command": list(spec.command),
        "entrypoint": [],
        "name": container_name(spec),
        "hostname": spec.member,
        "labels": _labels(spec),
        "environment": spec.environment,
        "user": f"{spec.uid}:{spec.gid}",
        "working_dir": spec.workdir,
        "init": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "read_only": True,
        "tmpfs": dict.fromkeys(spec.tmpfs, _TMPFS),
        "pids_limit": spec.pids,
        "mem_limit": spec.memory,
        "memswap_limit": spec.memory,
        "nano_cpus": int(spec.cpus * 1e9),
        "shm_size": spec.shm,
        "log_config": LogConfig(type="json-file", config={"max-size": "10m", "max-file": "3"}),
        "network_mode": spec.network,
        "restart_policy": {"Name": "no"},
    }
    if spec.cpuset is not None:
        arguments["cpuset_cpus"] = spec.cpuset
    if spec.gpus:
        # One request with all ids: of two requests the last would win.
        request = DeviceRequest(device_ids=list(spec.gpus), capabilities=[["gpu", "compute", "utility"]])
        arguments["device_requests"] = [request]
    return arguments


def container_name(spec: ContainerSpec) -> str:
    """Name a container by sweep, folder, member and attempt: the name is what makes a second start impossible."""
    place = hashlib.sha256(spec.folder.encode()).hexdigest()[:6]
    again = f"-{spec.attempt}" if spec.attempt > 1 else ""
    return f"{LABEL}-{spec.sweep}-{place}-{spec.member}{again}"


def _volume_name(spec: ContainerSpec) -> str:
    return container_name(spec)


def _labels(spec: ContainerSpec) -> dict[str, str]:
    values = {
        "sweep": spec.sweep,
        "folder": spec.folder,
        "role": spec.role,
        "member": spec.member,
        "worker": str(spec.worker),
        "attempt": str(spec.attempt),
        "version": __version__,
    }
    return {f"{LABEL}.{key}": value for key, value in values.items()}


def _bind(source: str, target: str, *, read_only: bool = False) -> Mount:
    # Mount, not the short form: it takes any character in a path and refuses a missing source instead of making it.
    return Mount(target=target, source=source, type="bind", read_only=read_only)


def _ended(attributes: dict[str, Any]) -> Ended:
    state, labels = attributes["State"], attributes["Config"]["Labels"]
    return Ended(
        member=labels[f"{LABEL}.member"],
        attempt=int(labels[f"{LABEL}.attempt"]),
        exit_code=int(state["ExitCode"]),
        oom=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
    )


def _is_mount_trouble(error: EngineError) -> bool:
    return "mount" in str(error).lower()
