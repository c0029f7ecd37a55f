"""Shards are disjoint, complete and near-equal, at any size."""

from __future__ import annotations

import itertools
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ParamsValueError
from orchestrator.space import DistributeParamSpace, Selection
from orchestrator.space.permutation import Permutation

GRID = {"a": list(range(10)), "b": list(range(10))}


def indices(distributed):
    return [list(shard.selection) for shard in distributed.param_spaces.values()]


@given(rows=st.integers(1, 40), machines=st.integers(1, 50), seed=st.none() | st.integers(0, 99))
def test_shards_are_disjoint_complete_and_near_equal(rows, machines, seed):
    shards = indices(DistributeParamSpace({"a": list(range(rows))}, machines=machines, seed=seed))
    sizes = [len(shard) for shard in shards]
    assert sorted(itertools.chain(*shards)) == list(range(rows))
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


def test_limits_are_applied_before_the_rows_are_dealt():
    distributed = DistributeParamSpace(GRID, round_limit=7, boolean_limit=lambda row: row["a"] > 0, machines=3, seed=1)
    rows = [row for shard in distributed.param_spaces.values() for row in shard.rows()]
    assert len(rows) <= 7
    assert all(row["a"] > 0 for row in rows)
    assert sum(shard.dimensions for shard in distributed.param_spaces.values()) == len(rows)


def test_a_shard_knows_its_number_its_rows_and_the_whole_domain():
    shard = DistributeParamSpace(GRID, machines=3, seed=1).param_spaces[1]
    assert shard.shard_id == 1
    assert shard.dimensions == len(shard) == 33
    assert shard.domain.total == 100
    assert shard.param_index == range(33)
    assert shard.row(2) == shard.domain.at(shard.selection[2])


def test_the_same_keys_in_another_order_have_other_namespaces():
    one = DistributeParamSpace({"a": [1, 2, 3], "b": [4, 5, 6]}, seed=1).param_spaces[0]
    other = DistributeParamSpace({"b": [4, 5, 6], "a": [1, 2, 3]}, seed=1).param_spaces[0]
    assert list(one.rows()) != list(other.rows())
    assert one.shard_namespace != other.shard_namespace


def test_rows_that_were_drawn_otherwise_have_other_namespaces():
    made = [DistributeParamSpace(GRID, random_method="uniform_crypto", round_limit=50, seed=1) for _ in range(2)]
    assert made[0].param_spaces[0].shard_namespace != made[1].param_spaces[0].shard_namespace


def test_a_namespace_is_repeatable_and_differs_between_shards():
    one, again = (DistributeParamSpace(GRID, machines=4, seed=1).param_spaces for _ in range(2))
    names = [shard.shard_namespace for shard in one.values()]
    assert names == [shard.shard_namespace for shard in again.values()]
    assert len(set(names)) == 4
    assert all(len(name) == 64 for name in names)


@pytest.mark.parametrize("machines", [0, -1, 2.0, "2", None])
def test_machines_is_a_positive_integer(machines):
    with pytest.raises(ParamsValueError, match="machines="):
        DistributeParamSpace(GRID, machines=machines)


@pytest.mark.parametrize("seed", [None, 5])
def test_shards_of_a_huge_grid_cover_what_they_must(seed):
    params = {f"k{number}": list(range(10)) for number in range(18)}
    shards = DistributeParamSpace(params, machines=3, seed=seed).param_spaces
    assert [shard.dimensions for shard in shards.values()] == [
        333333333333333334,
        333333333333333333,
        333333333333333333,
    ]
    seen = {shard.selection[position] for shard in shards.values() for position in range(200)}
    assert len(seen) == 600
    assert shards[2].row(-1) == shards[2].row(333333333333333332)


def test_shards_of_a_grid_just_above_the_shuffle_are_disjoint_and_complete():
    shards = DistributeParamSpace({"a": list(range(1001)), "b": list(range(1000))}, machines=2, seed=3).param_spaces
    seen = bytearray(1_001_000)
    for position in range(0, shards[0].size, 97):
        seen[shards[0].selection[position]] += 1
        seen[shards[1].selection[position]] += 1
    assert max(seen) == 1
    assert sum(shard.size for shard in shards.values()) == 1_001_000


def test_a_lazily_dealt_shard_comes_back_from_json():
    shard = DistributeParamSpace({f"k{n}": list(range(10)) for n in range(42)}, machines=2, seed=3).param_spaces[1]
    again = Selection.from_json(json.loads(json.dumps(shard.selection.to_json())))
    assert again == shard.selection
    assert [again[position] for position in range(5)] == list(shard.selection.indices[0:5])
    assert again.size == 10**42 // 2


def test_a_limited_huge_grid_is_sampled_and_then_dealt():
    params = {f"k{n}": list(range(10)) for n in range(42)}
    shards = DistributeParamSpace(params, round_limit=101, machines=4, seed=3).param_spaces
    assert [shard.size for shard in shards.values()] == [26, 25, 25, 25]


def test_a_shard_can_be_pickled():
    shard = DistributeParamSpace(GRID, machines=3, seed=1).param_spaces[1]
    again = pickle.loads(pickle.dumps(shard))  # noqa: S301 - its own bytes
    assert list(again.rows()) == list(shard.rows())


@settings(max_examples=50)
@given(size=st.integers(1, 700), key=st.text(max_size=5))
def test_the_permutation_is_a_bijection(size, key):
    assert sorted(map(Permutation(size, key), range(size))) == list(range(size))


def test_the_permutation_depends_on_its_key_and_refuses_what_is_outside():
    one, other = Permutation(1000, "1"), Permutation(1000, "2")
    assert list(map(one, range(1000))) != list(map(other, range(1000)))
    for position in (-1, 1000):
        with pytest.raises(IndexError):
            one(position)
