"""The logical CPUs of this machine, as the kernel lists them."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.errors import SettingsError
from orchestrator.plan.cpus import Cpu, parse_cpuset

_CPUS, _NODES = Path("/sys/devices/system/cpu"), Path("/sys/devices/system/node")


def local_topology(cpus: Path = _CPUS, nodes: Path = _NODES) -> tuple[Cpu, ...]:
    """List the CPUs that are online and that this process may use; none where the kernel does not say."""
    try:
        online = parse_cpuset((cpus / "online").read_text().strip())
    except (OSError, SettingsError):
        return ()
    allowed = os.sched_getaffinity(0) if cpus == _CPUS else set(online)
    node_of = _nodes(nodes)
    return tuple(
        Cpu(number=number, core=_core(cpus / f"cpu{number}", number), node=node_of.get(number, 0))
        for number in online
        if number in allowed
    )


def _core(cpu: Path, number: int) -> int:
    """Name a core by the lowest CPU among its hardware threads: core ids repeat from package to package."""
    try:
        return parse_cpuset((cpu / "topology" / "thread_siblings_list").read_text().strip())[0]
    except (OSError, SettingsError):
        return number


def _nodes(nodes: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for folder in nodes.glob("node[0-9]*"):
        try:
            numbers = parse_cpuset((folder / "cpulist").read_text().strip())
        except (OSError, SettingsError):  # a node without CPUs has an empty list
            continue
        found.update(dict.fromkeys(numbers, int(folder.name[4:])))
    return found
