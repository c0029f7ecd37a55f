"""A list whose items are made when they are looked at, and which is a list in every other way."""

from __future__ import annotations

import copy
import pickle

import pytest

from orchestrator.scan.lazy import LazyList


@pytest.fixture
def made():
    return []


@pytest.fixture
def lazy(made):
    def make(position):
        made.append(position)
        return [position]

    return LazyList(4, make)


def test_an_item_is_made_once_and_is_the_same_object(lazy, made):
    assert (len(lazy), made) == (4, [])
    assert lazy[1] is lazy[1]
    assert lazy[-3] is lazy[1]
    lazy[1].append("mine")
    assert lazy[1] == [1, "mine"]
    assert made == [1]


def test_it_is_a_list(lazy):
    assert isinstance(lazy, list)
    assert lazy == [[0], [1], [2], [3]]
    assert lazy != [[0]]
    assert lazy == [[0], [1], [2], [3]]
    assert lazy + [5] == [[0], [1], [2], [3], 5]  # noqa: RUF005
    assert [5] + lazy == [5, [0], [1], [2], [3]]  # noqa: RUF005
    assert lazy + lazy == [*lazy, *lazy]
    assert [2] in lazy
    assert lazy.index([2]) == 2
    assert lazy.count([2]) == 1
    assert list(reversed(lazy)) == [[3], [2], [1], [0]]
    assert lazy[1:3] == [[1], [2]]
    assert sorted(lazy, reverse=True) == [[3], [2], [1], [0]]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda items: items.append("x"), [[0], [1], [2], [3], "x"]),
        (lambda items: items.__setitem__(0, "x"), ["x", [1], [2], [3]]),
        (lambda items: items.insert(0, "x"), ["x", [0], [1], [2], [3]]),
        (lambda items: items.pop(0), [[1], [2], [3]]),
        (lambda items: items.remove([1]), [[0], [2], [3]]),
        (lambda items: items.__delitem__(slice(1, 3)), [[0], [3]]),
        (lambda items: items.reverse(), [[3], [2], [1], [0]]),
        (lambda items: items.sort(reverse=True), [[3], [2], [1], [0]]),
        (lambda items: items.extend("xy"), [[0], [1], [2], [3], "x", "y"]),
        (lambda items: items.clear(), []),
    ],
)
def test_it_can_be_changed(lazy, change, left):
    change(lazy)
    assert lazy == left


def test_copies_are_plain_lists_of_all_items(lazy):
    for other in (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy)), lazy.copy()):  # noqa: S301
        assert type(other) is list
        assert other == [[0], [1], [2], [3]]


def test_to_be_shown_makes_nothing(lazy, made):
    assert repr(lazy) == "[<not loaded yet>, <not loaded yet>, <not loaded yet>, <not loaded yet>]"
    assert made == []
    assert lazy[0] == [0]
    assert repr(lazy).startswith("[[0], ")


@pytest.mark.parametrize("place", [4, -5])
def test_there_is_nothing_beyond_its_ends(lazy, place):
    with pytest.raises(IndexError, match=f"row {place} of 4"):
        lazy[place]
