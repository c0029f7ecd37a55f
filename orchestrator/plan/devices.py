"""GPUs: which are meant, which worker has which, and how much of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import EnvironmentNotReadyError, InputError, SettingsError
from orchestrator.plan.sizes import MIB, show_size

# A CUDA context with its libraries, outside of what any framework's own limit counts; measured values are 400 to 700.
CUDA_CONTEXT_MIB = 600
_SHORTEST_UUID = len("GPU-1234")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device, or one MIG instance of a device.

    ``memory`` and ``used`` in bytes, ``used`` by whoever, before the sweep; ``instance`` is a MIG instance's number on its
    device; ``exclusive`` says that the device takes one process at a time.
    """

    uuid: str
    index: int
    name: str
    memory: int
    used: int = 0
    instance: int | None = None
    exclusive: bool = False

    @property
    def label(self) -> str:
        """How people name it: ``0``, or ``0:1`` for a MIG instance."""
        return str(self.index) if self.instance is None else f"{self.index}:{self.instance}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """What was asked of GPUs. None means: decide. ``fraction`` of each device, ``memory`` in bytes on each."""

    gpus: tuple[str, ...] = ()
    per_worker: int = 1
    fraction: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Devices in groups, each of which one or more workers use; ``request`` is what was asked."""

    groups: tuple[tuple[Gpu, ...], ...]
    request: DeviceRequest
    notes: tuple[str, ...] = ()

    @property
    def most_workers(self) -> int:
        """How many workers fit with the fraction or memory that was asked for; one for each group without."""
        return sum(_room(group, self.request) for group in self.groups)

    def of(self, workers: int) -> list[tuple[list[str], float | None]]:
        """Give each worker its devices' UUIDs, and its fraction of each: None for one that has them alone.

        Workers go to the groups in turn. InputError, with the numbers, where they do not fit.
        """
        if not self.groups:
            return [([], None)] * workers
        together = Counter(number % len(self.groups) for number in range(workers))
        fractions = [_fraction(group, together[place], self.request) for place, group in enumerate(self.groups)]
        places = [number % len(self.groups) for number in range(workers)]
        return [([gpu.uuid for gpu in self.groups[place]], fractions[place]) for place in places]


def group_devices(request: DeviceRequest, known: tuple[Gpu, ...]) -> Groups:
    """Find the devices that are meant and group them; InputError and its kin say what cannot be."""
    gpus = resolve_gpus(request.gpus, known)
    each = request.per_worker
    if each < 1:
        raise SettingsError(f"--gpus-per-worker {each}: give at least 1")
    for option, value in (("--gpu-fraction", request.fraction), ("--gpu-memory", request.memory)):
        if value is not None and not gpus:
            raise SettingsError(f"{option}: there is no GPU to share; name some with --gpus")
    if request.fraction is not None and request.memory is not None:
        raise SettingsError("--gpu-fraction and --gpu-memory: give one of the two")
    if request.fraction is not None and not 0 < request.fraction <= 1:  # also for NaN
        raise SettingsError(f"--gpu-fraction {request.fraction:g}: give a part of each GPU, more than 0 and at most 1")
    if each > 1 and not gpus:
        raise SettingsError(f"--gpus-per-worker {each}: name the GPUs with --gpus")
    if each > len(gpus) > 0:
        raise InputError(f"--gpus-per-worker {each}: --gpus names {len(gpus)}")
    if each > 1 and any(gpu.instance is not None for gpu in gpus):
        raise InputError(f"--gpus-per-worker {each}: a process can use only one MIG instance")
    groups = tuple(tuple(gpus[place : place + each]) for place in range(0, len(gpus) - each + 1, each)) if gpus else ()
    spare = gpus[len(groups) * each :]
    notes = [f"GPU {gpu.label} is not used: --gpus-per-worker {each} of {len(gpus)} leaves it over" for gpu in spare]
    notes += [
        f"GPU {gpu.label} has {show_size(gpu.used)} of {show_size(gpu.memory)} in use by others"
        for group in groups
        for gpu in group
        if gpu.used > gpu.memory // 20
    ]
    return Groups(groups=groups, request=request, notes=tuple(notes))


def resolve_gpus(asked: tuple[str, ...], known: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Turn indices, UUIDs, their unique beginnings or ``all`` into devices; ``none`` or nothing into no device."""
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
        matches = [gpu for gpu in known if one in (gpu.label, gpu.uuid)]
        matches = matches or [gpu for gpu in known if len(one) >= _SHORTEST_UUID and gpu.uuid.startswith(one)]
        if len(matches) != 1:
            have = ", ".join(f"{gpu.label} ({gpu.uuid})" for gpu in known)
            raise InputError(f"--gpus {one}: no such GPU here; there are: {have}")
        if matches[0] in found:
            raise InputError(f"--gpus {','.join(asked)}: GPU {one} is named twice")
        found.append(matches[0])
    return tuple(found)


def _asked_part(gpu: Gpu, request: DeviceRequest) -> float | None:
    """Give the part of a device that was asked for, if any was."""
    if request.memory is None:
        return request.fraction
    if request.memory > gpu.memory:
        raise InputError(
            f"--gpu-memory {show_size(request.memory)}: {gpu.name} (GPU {gpu.label}) has {show_size(gpu.memory)}"
        )
    return request.memory / gpu.memory


def _room(group: Sequence[Gpu], request: DeviceRequest) -> int:
    room = []
    for gpu in group:
        part = _asked_part(gpu, request)
        taken = gpu.memory if part is None else part * gpu.memory + CUDA_CONTEXT_MIB * MIB
        room.append(1 if gpu.exclusive else max(1, int(gpu.memory / taken)))
    return min(room)


def _fraction(group: Sequence[Gpu], workers: int, request: DeviceRequest) -> float | None:
    """Give the part of each device of a group for each of its workers, such that all fit with their contexts."""
    parts = {_part(gpu, workers, request) for gpu in group}
    if len(parts) > 1 and request.memory is not None:
        raise InputError("--gpu-memory: the GPUs of one worker differ in memory; give --gpu-fraction instead")
    return min((part for part in parts if part is not None), default=None)


def _part(gpu: Gpu, workers: int, request: DeviceRequest) -> float | None:
    if workers > 1 and gpu.exclusive:
        raise InputError(
            f"{workers} workers on GPU {gpu.label}: its compute mode lets one process in at a time; give fewer --workers, "
            "or have an administrator run nvidia-smi -c DEFAULT"
        )
    asked = _asked_part(gpu, request)
    if asked is None:
        return None if workers <= 1 else _even_part(gpu, workers)
    if workers <= 1 and asked == 1:
        return None
    taken = workers * (asked * gpu.memory + CUDA_CONTEXT_MIB * MIB)
    if taken > gpu.memory and not (workers <= 1 and request.memory is None):
        option = f"--gpu-fraction {asked:g}" if request.memory is None else f"--gpu-memory {show_size(request.memory)}"
        raise InputError(
            f"{option}: {workers} worker(s) on {gpu.name} would take {show_size(int(taken))} with "
            f"{CUDA_CONTEXT_MIB} MiB of context each, and it has {show_size(gpu.memory)}; "
            f"give less, or at most {_room((gpu,), request)} worker(s) for each such GPU"
        )
    most = (gpu.memory - workers * CUDA_CONTEXT_MIB * MIB) / workers / gpu.memory
    return _down(min(asked, most))


def _even_part(gpu: Gpu, workers: int) -> float:
    fraction = _down((gpu.memory - workers * CUDA_CONTEXT_MIB * MIB) / workers / gpu.memory)
    if fraction <= 0:
        raise InputError(
            f"{workers} workers do not fit on {gpu.name} ({show_size(gpu.memory)}): each needs "
            f"{CUDA_CONTEXT_MIB} MiB before its first tensor; give fewer --workers"
        )
    return fraction


def _down(fraction: float) -> float:
    return int(fraction * 1000) / 1000
