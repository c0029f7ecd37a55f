"""Logical CPUs as the kernel lists them, odd machines among them."""

from __future__ import annotations

import pytest

from orchestrator.engine.topology import local_topology
from orchestrator.plan.cpus import Cpu
from orchestrator.scan.turns import same_but_for_time


@pytest.fixture
def machine(tmp_path):
    cpus, nodes = tmp_path / "cpu", tmp_path / "node"
    for number, siblings in ((0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")):
        (cpus / f"cpu{number}" / "topology").mkdir(parents=True)
        (cpus / f"cpu{number}" / "topology" / "thread_siblings_list").write_text(siblings + "\n")
    (cpus / "online").write_text("0-3\n")
    for node, numbers in ((0, "0,2"), (1, "1,3"), (2, "")):  # the last has memory alone
        (nodes / f"node{node}").mkdir(parents=True)
        (nodes / f"node{node}" / "cpulist").write_text(numbers + "\n")
    return cpus, nodes


def test_cores_and_nodes_are_read(machine):
    assert local_topology(*machine) == (
        Cpu(number=0, core=0, node=0), Cpu(number=1, core=1, node=1), Cpu(number=2, core=0, node=0),
        Cpu(number=3, core=1, node=1),
    )  # fmt: skip


def test_a_kernel_that_does_not_say_leaves_no_topology(tmp_path):
    assert local_topology(tmp_path, tmp_path) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("at-20301130-2101", "at-20301130-2102", True),
        ("run-3f2a9c1d77e0", "run-aa01bb02cc03", True),
        ("part-1", "part-2", False),
        ("fold-10", "fold-11", False),
    ],
)
def test_names_that_hold_the_time_are_one_name(one, other, same):
    assert same_but_for_time(one, other) is same
