"""The same rows, shards and hashes as the installed Talos."""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ParamsTypeError, ParamsValueError
from orchestrator.space import DistributeParamSpace, ParamSpace, encode, expand_range, param_hash, trial_id

pytestmark = pytest.mark.backend

SEEDED = [
    "uniform_mersenne",
    "korobov_matrix",
    "latin_improved",
    "latin_matrix",
    "latin_sudoku",
    "sobol",
    "halton",
]

number = st.integers(-20, 20) | st.floats(-5, 5, allow_nan=False).map(lambda value: round(value, 2))
value_lists = st.lists(st.sampled_from([None, True, 1, 1.0, "x", 0.5]), min_size=1, max_size=5)
ranges = st.tuples(number, number, st.integers(1, 12)).filter(lambda given: given[0] != given[1])
spaces = st.dictionaries(st.sampled_from("abcd"), value_lists | ranges, min_size=1, max_size=4)
limits = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"round_limit": st.integers(1, 40) | st.floats(0.01, 1.5)}),
    st.fixed_dictionaries({"fraction_limit": st.floats(0.01, 1.0) | st.integers(2, 9), "round_limit": st.just(3)}),
)


def module_level(x, y=2):
    return x + y


def made(by):
    return lambda x: x * by


def exact(rows):
    return [[(type(value), value) for value in row] for row in rows]


def theirs_or_none(kind, *arguments, **options):
    from talos.utils.exceptions import TalosDataError

    try:
        return kind(*arguments, **options)
    except TalosDataError:
        return None


@given(params=spaces, limit=limits, method=st.sampled_from(SEEDED), seed=st.integers(0, 2**32))
def test_rows_and_their_order_are_taloss(params, limit, method, seed):
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    theirs = theirs_or_none(Theirs, params, random_method=method, seed=seed, **limit)
    if theirs is None:
        with pytest.raises(ParamsValueError, match="fewer than 1 row"):
            ParamSpace(params, random_method=method, seed=seed, **limit)
        return
    ours = ParamSpace(params, random_method=method, seed=seed, **limit)
    assert ours.p == theirs.p
    assert ours.dimensions == theirs.dimensions
    assert exact(ours.param_space) == exact(theirs.param_space.tolist())
    assert list(ours.param_index) == theirs.param_index


@settings(max_examples=60)
@given(total=st.integers(1, 5000), data=st.data(), method=st.sampled_from(SEEDED), seed=st.integers(0, 2**32))
def test_sampled_indices_are_taloss(total, data, method, seed):
    from talos.reducers.sample_reducer import sample_reducer

    count = data.draw(st.integers(1, min(total, 300)))
    ours = ParamSpace({"a": list(range(total))}, random_method=method, round_limit=count, seed=seed)
    assert list(ours.selection) == sample_reducer(count, total, method, seed)


@pytest.mark.parametrize("method", SEEDED)
def test_sampled_indices_of_a_million_are_taloss(method):
    from talos.reducers.sample_reducer import sample_reducer

    count = 3 if method == "latin_improved" else 1000
    ours = ParamSpace({"a": list(range(1000)), "b": list(range(1111))}, random_method=method, round_limit=count, seed=9)
    assert list(ours.selection) == sample_reducer(count, 1_111_000, method, 9)


@given(params=spaces, limit=limits, machines=st.integers(1, 9), seed=st.integers(-99, 2**40))
def test_shards_are_taloss(params, limit, machines, seed):
    from talos.parameters.DistributeParamSpace import DistributeParamSpace as Theirs

    theirs = theirs_or_none(Theirs, params, machines=machines, seed=seed, **limit)
    if theirs is None:
        return
    ours = DistributeParamSpace(params, machines=machines, seed=seed, **limit)
    assert list(ours.param_spaces) == list(theirs.param_spaces)
    for worker, shard in ours.param_spaces.items():
        other = theirs.param_spaces[worker]
        assert exact(shard.param_space) == exact(other.param_space.tolist())
        assert shard.shard_id == other.shard_id
        assert shard.dimensions == other.dimensions
        assert list(shard.param_index) == other.param_index


@given(params=spaces, seed=st.integers(0, 99))
def test_boolean_limits_filter_as_in_talos(params, seed):
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    def keep(row):
        return len(str(row)) % 2

    theirs = Theirs(params, round_limit=20, boolean_limit=keep, seed=seed)
    if not len(theirs.param_space):
        with pytest.warns(UserWarning, match="keeps none"):
            assert list(ParamSpace(params, round_limit=20, boolean_limit=keep, seed=seed).rows()) == []
        return
    ours = ParamSpace(params, round_limit=20, boolean_limit=keep, seed=seed)
    assert exact(ours.param_space) == exact(theirs.param_space.tolist())


@settings(max_examples=400)
@given(ranges | st.tuples(number, number, st.floats(0.1, 30)).filter(lambda given: given[0] != given[1]))
def test_ranges_expand_as_in_talos_with_or_without_numpy(given):
    from talos.parameters.ParamSpace import _expand_range

    from orchestrator.space.ranges import _arange_without_numpy

    start, end, steps = given
    whole = isinstance(start, int) and isinstance(end, int)
    expected = _expand_range(given).tolist()
    assert exact([expand_range("a", given)]) == exact([expected])
    assert exact([_arange_without_numpy(start, end, (end - start) / steps, whole=whole)]) == exact([expected])


VALUES = [
    None, True, 1, 1.0, -0.0, 10**30, "relu", 'é\n"', float("nan"), float("inf"), 1 + 2j, b"x", (1, (2,)), [1, [2]], {"a": {"b": 1}},
    {1: 2, "b": (3,)}, {"__talos_type__": 1}, {3, 1, 2}, frozenset("ab"), Path("/x"), np.float64(0.1), np.float32(0.1), np.int64(3),
    np.bool_(1), np.str_("s"), np.datetime64("2020-01-01"), np.longdouble(1.5), np.arange(4), np.eye(2), np.array([None, "x"], dtype=object),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), len, int, json.dumps, math.sin, np.sin, np.float32, np.mean, OrderedDict,
    OrderedDict.fromkeys, module_level, Path, functools.partial(module_level, 1, y=3), made(2), made("x"), lambda x, n=2: x * n,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(type(value).__name__))
def test_values_encode_and_hash_as_in_talos(value):
    from talos.experiment.serialization import content_hash
    from talos.experiment.serialization import encode as theirs

    assert encode(value) == theirs(value)
    assert param_hash({"a": value, "b": [value]}) == content_hash({"a": value, "b": [value]})


@given(params=spaces)
def test_hashes_and_trial_ids_of_a_scan_are_taloss(params):
    from talos.experiment.msq import MSQ
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    ours, theirs = ParamSpace(params, round_limit=6, seed=1), Theirs(params, round_limit=6, seed=1)
    for position, combination in enumerate(MSQ(theirs.strategy, theirs.strategy.domain)):
        row = ours.row(position)
        assert param_hash(row) == combination["_id"]
        assert trial_id(param_hash(row), position) == combination["_trial_id"]


def test_trial_ids_of_a_shard_are_taloss_for_the_same_namespace():
    from talos.experiment.serialization import content_hash

    expected = content_hash({"parameters": "h", "occurrence": 3, "shard_namespace": "n"})
    assert trial_id("h", 3, "n") == expected


@pytest.mark.parametrize("value", [5, "relu", None, range(3), {1}])
def test_what_talos_refuses_is_refused(value):
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    with pytest.raises(TypeError):
        Theirs({"a": value})
    with pytest.raises(ParamsTypeError):
        ParamSpace({"a": value})


def test_a_grid_that_overflows_talos_is_sampled():
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    params = {f"k{n}": list(range(10)) for n in range(19)}
    with pytest.raises(OverflowError):
        Theirs(params, round_limit=100)
    assert len(ParamSpace(params, round_limit=100)) == 100


def test_fraction_limit_one_is_one_row_as_in_talos():
    from talos.parameters.ParamSpace import ParamSpace as Theirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = ParamSpace({"a": list(range(10))}, fraction_limit=1, seed=4)
    assert list(ours.param_space) == Theirs({"a": list(range(10))}, fraction_limit=1, seed=4).param_space.tolist()
