"""What each worker may use: one share per worker out of one machine, so that together they fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import InputError, SettingsError
from orchestrator.plan.cpus import Cpu, chosen_cpus, cut_cpus, show_cpuset
from orchestrator.plan.devices import CUDA_CONTEXT_MIB, DeviceRequest, Gpu, Groups, group_devices
from orchestrator.plan.sizes import GIB, MIB, show_size
from orchestrator.schema import Share

# Kept back for the host: its own processes, and the page cache that all workers read their data through.
HOST_RESERVE_SHARE = 0.15
HOST_RESERVE_LEAST = 1 * GIB
SMALLEST_MEMORY = 256 * MIB
# What --workers auto gives each worker at least: a backend with its libraries and some data.
COMFORTABLE_MEMORY = 2 * GIB
SHM_SHARE = 0.25
PIDS_LEAST, PIDS_PER_CPU = 512, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is to share; ``memory`` in bytes, as the engine reports it.

    ``topology`` has the logical CPUs where the engine's machine is this one, else nothing.
    """

    cpus: int
    memory: int
    gpus: tuple[Gpu, ...] = ()
    topology: tuple[Cpu, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRequest:
    """What was asked. None means: decide. ``workers`` may be ``auto``; ``cpus`` and ``memory`` are per worker.

    ``cpuset`` names the CPUs that all workers together may use; ``none`` asks for no CPU sets, ``auto`` for sets in any case.
    """

    workers: int | str | None = None
    devices: DeviceRequest = field(default_factory=DeviceRequest)
    cpuset: str | None = None
    cpus: float | None = None
    memory: int | None = None
    shm: int | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlan:
    """``driver`` has no GPU; ``notes`` are sentences for the plan's reader."""

    workers: tuple[Share, ...]
    driver: Share
    notes: tuple[str, ...] = field(default=())

    def gpu_parts(self, machine: Machine) -> dict[str, float]:
        """Give the part of each device that all workers together take, their contexts included; by UUID."""
        sizes = {gpu.uuid: gpu.memory for gpu in machine.gpus}
        parts: dict[str, float] = {}
        for share in self.workers:
            for uuid in share.gpus:
                part = 1.0
                if share.gpu_fraction is not None and uuid in sizes:
                    part = share.gpu_fraction + CUDA_CONTEXT_MIB * MIB / sizes[uuid]
                parts[uuid] = min(1.0, parts.get(uuid, 0.0) + part)
        return parts


def plan_shares(request: ShareRequest, machine: Machine, rows: int | None = None) -> SharePlan:
    """Divide the machine. InputError or EnvironmentNotReadyError, with the numbers, where the request does not fit.

    Memory and cores are shared evenly between the workers, the driver counting as one more for memory, after a reserve
    for the host. Workers are spread over the devices evenly; the fractions on one device and their CUDA contexts sum to
    at most the whole device. There are no more workers than ``rows``, where their number is known.
    """
    groups = group_devices(request.devices, machine.gpus)
    count, notes = _enough(request, _count(request, machine, groups), rows)
    memory = _memory(request, machine, count)
    usable = _usable(request, machine)
    cores = len(usable) if usable and request.cpuset not in (None, "auto") else machine.cpus
    cpus = request.cpus if request.cpus is not None else cores / count
    if not 0 < cpus <= machine.cpus:  # also for NaN
        raise InputError(f"--cpus {cpus:g}: this engine has {machine.cpus}; give more than 0 and at most that")
    sets = _cpu_sets(request, usable, count, cpus)
    cpus = float(int(cpus)) if sets else cpus
    threads = request.threads if request.threads is not None else max(1, int(cpus))
    if threads < 1:
        raise SettingsError(f"--threads {threads}: give at least 1")
    shm = request.shm if request.shm is not None else int(memory * SHM_SHARE)
    common: dict[str, Any] = {
        "cpus": round(cpus, 3),
        "threads": threads,
        "memory": memory,
        "shm": shm,
        "pids": _pids(machine),
    }
    sizes = {gpu.uuid: gpu.memory for gpu in machine.gpus}
    workers = tuple(
        Share(
            worker=number,
            gpus=gpus,
            gpu_fraction=fraction,
            gpu_bytes=None if fraction is None else int(fraction * max(sizes[uuid] for uuid in gpus)),
            cpuset=sets[number] if sets else None,
            **common,
        )
        for number, (gpus, fraction) in enumerate(groups.of(count))
    )
    driver = Share(worker=-1, cpus=float(machine.cpus), threads=threads, memory=memory, shm=shm, pids=_pids(machine))
    return SharePlan(workers=workers, driver=driver, notes=(*notes, *groups.notes, *_notes(count, machine, threads)))


def _count(request: ShareRequest, machine: Machine, groups: Groups) -> int:
    """Say how many workers: as asked; by default one for each group of devices, or two."""
    if request.workers == "auto":
        if groups.groups:
            return groups.most_workers
        cores = len({(cpu.node, cpu.core) for cpu in machine.topology}) or machine.cpus
        room = machine.memory - _reserve(machine)
        each = request.memory or COMFORTABLE_MEMORY
        whole = cores if request.cpus is None else int(machine.cpus / request.cpus)
        return max(1, min(whole, room // each - 1))
    if request.workers is None:
        return len(groups.groups) or min(2, machine.cpus)
    if int(request.workers) < 1:
        raise SettingsError(f"--workers {request.workers}: give at least 1")
    return int(request.workers)


def _enough(request: ShareRequest, count: int, rows: int | None) -> tuple[int, tuple[str, ...]]:
    """Take no more workers than there are rows, where their number is known; what is to be said about it, if anything."""
    if rows is None or count <= rows or request.workers is None or rows < 1:
        return count, ()
    if request.workers == "auto":
        return rows, ()
    return rows, (f"{count} workers asked for and {rows} rows to run: {rows} workers are enough",)


def _usable(request: ShareRequest, machine: Machine) -> tuple[Cpu, ...]:
    if request.cpuset in (None, "auto", "none"):
        return machine.topology
    if not machine.topology:
        raise InputError(f"--cpuset {request.cpuset}: the CPUs of this engine's machine cannot be seen from here")
    return chosen_cpus(machine.topology, str(request.cpuset))


def _cpu_sets(request: ShareRequest, usable: tuple[Cpu, ...], count: int, cpus: float) -> list[str] | None:
    """Cut the CPUs into sets of whole ones, where every worker has at least one.

    Not unasked where the workers leave CPUs unused: another sweep beside this one would then be bound to the same ones.
    """
    size = int(cpus)
    if request.cpuset == "none" or (request.cpuset is None and (request.cpus is not None or not usable)):
        return None
    sets = cut_cpus(usable, count, size)
    if sets is None and request.cpuset is not None:
        raise InputError(
            f"--cpuset {request.cpuset}: {count} workers with {cpus:g} cores each cannot have whole CPUs of their own "
            f"out of {len(usable)}; give fewer --workers, or --cpuset none"
        )
    return [show_cpuset(each) for each in sets] if sets else None


def _memory(request: ShareRequest, machine: Machine, workers: int) -> int:
    room = machine.memory - _reserve(machine)
    if request.memory is not None:
        if request.memory < SMALLEST_MEMORY:
            raise InputError(
                f"--memory {show_size(request.memory)}: a backend needs at least {show_size(SMALLEST_MEMORY)}"
            )
        if request.memory * workers > room:
            raise InputError(
                f"--memory {show_size(request.memory)} for {workers} workers is {show_size(request.memory * workers)}, "
                f"and {show_size(room)} of {show_size(machine.memory)} can be given out; lower one of the two"
            )
        return request.memory
    share = room // (workers + 1)
    if share < SMALLEST_MEMORY:
        raise InputError(
            f"--workers {workers}: each would have {show_size(max(share, 0))} of this engine's "
            f"{show_size(machine.memory)}; give fewer workers"
        )
    return share // MIB * MIB


def _reserve(machine: Machine) -> int:
    return max(HOST_RESERVE_LEAST, int(machine.memory * HOST_RESERVE_SHARE))


def _pids(machine: Machine) -> int:
    return max(PIDS_LEAST, 64 + PIDS_PER_CPU * machine.cpus)


def _notes(workers: int, machine: Machine, threads: int) -> tuple[str, ...]:
    if workers * threads > machine.cpus:
        return (f"{workers} workers with {threads} thread(s) each share {machine.cpus} cores: they take turns",)
    return ()
