"""What each worker may use: one share per worker out of one machine, so that together they fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import EnvironmentNotReadyError, InputError, SettingsError
from orchestrator.plan.sizes import GIB, MIB, show_size
from orchestrator.schema import Share

# Kept back for the host: its own processes, and the page cache that all workers read their data through.
HOST_RESERVE_SHARE = 0.15
HOST_RESERVE_LEAST = 1 * GIB
# A CUDA context with its libraries, outside of what any framework's own limit counts; measured values are 400 to 700.
CUDA_CONTEXT_MIB = 600
SMALLEST_MEMORY = 256 * MIB
SHM_SHARE = 0.25
PIDS_LEAST, PIDS_PER_CPU = 512, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device (or MIG instance) of the machine; ``memory`` in bytes."""

    uuid: str
    index: int
    name: str
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is to share; ``memory`` in bytes, as the engine reports it."""

    cpus: int
    memory: int
    gpus: tuple[Gpu, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRequest:
    """What was asked. None means: decide. ``gpus`` empty means CPU only; ``cpus`` and ``memory`` are per worker."""

    workers: int | None = None
    gpus: tuple[str, ...] = ()
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


def plan_shares(request: ShareRequest, machine: Machine) -> SharePlan:
    """Divide the machine. InputError or EnvironmentNotReadyError, with the numbers, where the request does not fit.

    Memory and cores are shared evenly between the workers, the driver counting as one more for memory, after a reserve
    for the host. Workers are spread over the devices evenly; the fractions on one device and their CUDA contexts sum to
    at most the whole device.
    """
    gpus = resolve_gpus(request.gpus, machine.gpus)
    count = request.workers if request.workers is not None else (len(gpus) or min(2, machine.cpus))
    if count < 1:
        raise SettingsError(f"--workers {count}: give at least 1")
    memory = _memory(request, machine, count)
    cpus = request.cpus if request.cpus is not None else machine.cpus / count
    if not 0 < cpus <= machine.cpus:  # also for NaN
        raise InputError(f"--cpus {cpus:g}: this engine has {machine.cpus}; give more than 0 and at most that")
    threads = request.threads if request.threads is not None else max(1, int(cpus))
    if threads < 1:
        raise SettingsError(f"--threads {threads}: give at least 1")
    shm = request.shm if request.shm is not None else int(memory * SHM_SHARE)
    per_device = Counter(index % len(gpus) for index in range(count)) if gpus else Counter[int]()
    common: dict[str, Any] = {
        "cpus": round(cpus, 3),
        "threads": threads,
        "memory": memory,
        "shm": shm,
        "pids": _pids(machine),
    }
    workers = []
    for number in range(count):
        place = number % len(gpus) if gpus else 0
        own = [gpus[place].uuid] if gpus else []
        fraction = gpu_fraction(gpus[place], per_device[place]) if gpus else None
        workers.append(Share(worker=number, gpus=own, gpu_fraction=fraction, **common))
    driver = Share(worker=-1, cpus=float(machine.cpus), threads=threads, memory=memory, shm=shm, pids=_pids(machine))
    return SharePlan(workers=tuple(workers), driver=driver, notes=_notes(count, machine, threads))


def enough_workers(request: ShareRequest, rows: int | None) -> tuple[ShareRequest, tuple[str, ...]]:
    """Ask for no more workers than there are rows, where their number is known; what was said about it, if anything."""
    if rows is None or request.workers is None or request.workers <= rows:
        return request, ()
    note = f"{request.workers} workers asked for and {rows} rows to run: {rows} workers are enough"
    return replace(request, workers=rows), (note,)


def resolve_gpus(asked: tuple[str, ...], known: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Turn indices, UUIDs, unique UUID prefixes or ``all`` into devices; ``none`` or nothing into no device."""
    if not asked or asked == ("none",):
        return ()
    if not known:
        raise EnvironmentNotReadyError(
            f"--gpus {','.join(asked)}: no NVIDIA GPU is visible on this machine: install its driver "
            "(nvidia-smi must work), or leave out --gpus to run on the CPU"
        )
    if asked == ("all",):
        return known
    found: list[Gpu] = []
    for one in asked:
        matches = [gpu for gpu in known if one == str(gpu.index) or gpu.uuid == one]
        matches = matches or [gpu for gpu in known if len(one) >= len("GPU-1234") and gpu.uuid.startswith(one)]
        if len(matches) != 1:
            have = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in known)
            raise InputError(f"--gpus {one}: no such GPU here; there are: {have}")
        if matches[0] in found:
            raise InputError(f"--gpus {','.join(asked)}: GPU {one} is named twice")
        found.append(matches[0])
    return tuple(found)


def gpu_fraction(gpu: Gpu, workers: int) -> float | None:
    """Give the share of a device's memory for each of ``workers`` on it; None for a worker that has it alone."""
    if workers == 1:
        return None
    room = gpu.memory - workers * CUDA_CONTEXT_MIB * MIB
    fraction = int(room / workers / gpu.memory * 1000) / 1000
    if fraction <= 0:
        raise InputError(
            f"{workers} workers do not fit on {gpu.name} ({show_size(gpu.memory)}): each needs "
            f"{CUDA_CONTEXT_MIB} MiB before its first tensor; give fewer --workers"
        )
    return fraction


def _memory(request: ShareRequest, machine: Machine, workers: int) -> int:
    reserve = max(HOST_RESERVE_LEAST, int(machine.memory * HOST_RESERVE_SHARE))
    room = machine.memory - reserve
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


def _pids(machine: Machine) -> int:
    return max(PIDS_LEAST, 64 + PIDS_PER_CPU * machine.cpus)


def _notes(workers: int, machine: Machine, threads: int) -> tuple[str, ...]:
    if workers * threads > machine.cpus:
        return (f"{workers} workers with {threads} thread(s) each share {machine.cpus} cores: they take turns",)
    return ()
