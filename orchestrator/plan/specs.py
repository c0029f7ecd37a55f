"""One container, described whole: what an engine is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A folder or file of the host, seen inside at ``target``."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A private view of ``project`` at ``target``: changes land in ``upper``; ``scratch`` is the kernel's.

    ``copied`` says that ``upper`` holds a whole copy of the project already, which is then what is seen.
    """

    project: str
    target: str
    upper: str
    scratch: str
    copied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """All of one container. ``memory``, ``shm`` in bytes, ``cpus`` in cores; ``gpus`` are UUIDs, ``tmpfs`` inside paths.

    ``folder`` is the sweep's folder: the identity by which containers are found again. ``run`` is the role's own
    run directory on the host.
    """

    sweep: str
    folder: str
    role: str
    worker: int
    attempt: int
    image: str | None
    command: tuple[str, ...]
    environment: dict[str, str]
    workdir: str
    run: str
    uid: int
    gid: int
    binds: tuple[Bind, ...]
    memory: int
    shm: int
    cpus: float
    pids: int
    cpuset: str | None = None
    view: View | None = None
    tmpfs: tuple[str, ...] = ("/tmp",)  # noqa: S108 - inside the container
    gpus: tuple[str, ...] = ()
    network: str = "bridge"

    @property
    def member(self) -> str:
        """``driver``, or ``w00`` and so on: unique within a sweep."""
        return self.member_name(self.role, self.worker)

    @staticmethod
    def member_name(role: str, worker: int) -> str:
        """Name a member without its spec."""
        return role if role == "driver" else f"w{worker:02d}"
