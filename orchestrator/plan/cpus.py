"""CPU sets: which logical CPUs each worker may run on, such that no two share one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.errors import InputError, SettingsError

_PART = re.compile(r"(\d+)(?:-(\d+))?$")
_MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One logical CPU: its number, the core it is a hardware thread of, and its NUMA node."""

    number: int
    core: int
    node: int = 0


def cut_cpus(cpus: Iterable[Cpu], workers: int, size: int) -> list[list[int]] | None:
    """Give each worker ``size`` CPUs of its own; None where there are not enough.

    A worker's CPUs lie in one NUMA node as far as that goes, and hardware threads of one core stay together.
    """
    free: dict[int, list[Cpu]] = defaultdict(list)
    for cpu in sorted(cpus, key=lambda each: (each.node, each.core, each.number)):
        free[cpu.node].append(cpu)
    if size < 1 or workers * size > sum(map(len, free.values())):
        return None
    sets = []
    for _ in range(workers):
        own: list[int] = []
        while len(own) < size:
            # A node that can hold the rest, with most room; where none can, the fullest of those left.
            node = max(free, key=lambda each: (len(free[each]), -each))
            taken = free[node][: size - len(own)]
            free[node] = free[node][len(taken) :]
            own += [cpu.number for cpu in taken]
        sets.append(sorted(own))
    return sets


def parse_cpuset(text: str) -> list[int]:
    """Read ``0-3,8`` as the kernel writes it; SettingsError for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first = int(match.group(1)) if match else 0
        last = int(match.group(2) or first) if match else -1
        if last < first or last > _MOST:
            raise SettingsError(f"--cpuset {text!r}: give CPU numbers such as 0-3,8, or auto, or none")
        found.update(range(first, last + 1))
    return sorted(found)


def show_cpuset(numbers: Sequence[int]) -> str:
    """Write CPU numbers as the kernel does: ``0-3,8``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def chosen_cpus(cpus: tuple[Cpu, ...], asked: str) -> tuple[Cpu, ...]:
    """Give the CPUs that ``--cpuset`` names; InputError for one that is not there."""
    numbers = parse_cpuset(asked)
    known = {cpu.number: cpu for cpu in cpus}
    missing = [number for number in numbers if number not in known]
    if missing:
        raise InputError(f"--cpuset {asked}: this machine has no CPU {missing[0]}; it has {show_cpuset(list(known))}")
    return tuple(known[number] for number in numbers)
