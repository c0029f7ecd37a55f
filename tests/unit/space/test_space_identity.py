"""Values as JSON, their hashes and their labels."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import json
import math
import secrets
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestrator.space
from orchestrator.errors import ParamsValueError
from orchestrator.space import decode, encode, is_plain, label, param_hash, trial_id

ROOT = Path(orchestrator.space.__file__).parents[2]

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


class Color(enum.IntEnum):
    RED = 1


class Instance:
    pass


class Loud:
    def __repr__(self):
        raise RuntimeError


def multiplied(by):
    return lambda x: x * by


TAGGED = [
    float("inf"),
    -math.inf,
    1 + 2j,
    b"\x00\xff",
    (1, (2, [3])),
    {1, 2},
    frozenset({"a"}),
    {1: "x", (2, 3): "y"},
    {"__talos_type__": "mine"},
    dt.date(2020, 1, 2),
    dt.datetime(2020, 1, 2, 3, 4, tzinfo=dt.timezone.utc),
    dt.time(5, 6),
    dt.timedelta(1, 2, 3),
    Path("/data/x"),
    len,
    json.dumps,
    np.float32,
    Instance,
]


@given(PLAIN)
def test_plain_values_encode_to_themselves(value):
    assert is_plain(value) == ("__talos_type__" not in str(value))
    assert encode(value) == value
    assert decode(json.loads(json.dumps(encode(value), allow_nan=False))) == value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        (1,),
        {1: 2},
        np.float64(1),
        Color.RED,
        b"x",
        {1},
        [(1,)],
        {"a": {2}},
        len,
        Instance(),
    ],
)
def test_what_json_would_change_is_not_plain(value):
    assert not is_plain(value)


@pytest.mark.parametrize("value", TAGGED, ids=label)
def test_tagged_values_come_back(value):
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.1),
        np.int8(3),
        np.bool_(1),
        np.str_("é"),
        np.datetime64("2020-01-01", "D"),
        np.longdouble(1),
        np.complex64(1j),
    ],
)
def test_numpy_scalars_come_back_with_their_class(value):
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6).reshape(2, 3),
        np.array([1.5, np.nan]),
        np.array(["a", "b"]),
        np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    ],
    ids=str,
)
def test_numpy_arrays_come_back_with_shape_and_dtype(value):
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert again.dtype == value.dtype
    assert again.shape == value.shape
    assert str(again) == str(value)


@pytest.mark.parametrize("value", [lambda x: x, Instance(), functools.partial(len), multiplied(2)])
def test_what_was_only_described_cannot_be_decoded(value):
    with pytest.raises(ParamsValueError, match="description only"):
        decode(encode(value))


def test_a_recorded_callable_that_is_gone_or_changed_is_an_error():
    record = encode(json.dumps)
    with pytest.raises(ParamsValueError, match="cannot be imported"):
        decode({**record, "qualname": "dumpsterfire"})
    with pytest.raises(ParamsValueError, match="source"):
        decode({**record, "source_hash": "0" * 64})


def test_no_hash_or_record_depends_on_an_address():
    values = [
        Instance(),
        Instance().__init__,
        lambda: 1,
        functools.partial(Instance),
        np.array([Instance()], dtype=object),
        Loud(),
    ]
    assert "0x" not in json.dumps(encode(values))
    assert param_hash({"a": Instance()}) == param_hash({"a": Instance()})
    assert param_hash({"a": multiplied(2)}) == param_hash({"a": multiplied(2)})


def test_closures_over_different_numbers_are_different_values():
    assert param_hash({"a": multiplied(2)}) != param_hash({"a": multiplied(3)})


def test_a_closure_over_a_dict_that_changes_keeps_its_hash():
    config = {"epochs": 1}
    before = param_hash({"a": multiplied(config)})
    config["epochs"] = 2
    function = multiplied(config)
    assert param_hash({"a": function}) == before


def test_what_a_script_defines_hashes_alike_in_every_process():
    code = (
        "from orchestrator.space import param_hash\n"
        "class Mine:\n    def f(self): return {'a', 'b'}\n"
        "def make(n):\n    return lambda x: x in {'p', 'q', n}\n"
        "print(param_hash({'a': [Mine, Mine(), Mine().f, make(1)], 'b': {'x', 'y'}}))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_one_one_point_zero_and_true_are_three_values():
    assert len({param_hash({"a": value}) for value in (1, 1.0, True, np.int64(1), "1")}) == 5


def test_equal_rows_share_a_hash_and_key_order_and_metadata_do_not_count():
    assert param_hash({"a": 1, "b": 2}) == param_hash({"b": 2, "a": 1, "_id": "x", "_round_index": 4})
    assert param_hash({"a": 1, "_mine": 2}) != param_hash({"a": 1})


def test_a_trial_id_depends_on_hash_position_and_shard():
    found = {trial_id("h", 0), trial_id("h", 1), trial_id("g", 0), trial_id("h", 0, "shard")}
    assert len(found) == 4
    assert all(len(each) == 64 for each in found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (len, "len"),
        (int, "int"),
        (json.dumps, "json.dumps"),
        (OrderedDict, "collections.OrderedDict"),
        (np.float32, "numpy.float32"),
        (functools.partial(json.dumps, 1, indent=2), "functools.partial(json.dumps, 1, indent=2)"),
        (None, "None"),
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        ("0xdeadbeef at 0xdeadbeef", "0xdeadbeef at 0xdeadbeef"),
        ([1, "a", len], "[1, 'a', len]"),
        ((1,), "(1,)"),
        ((), "()"),
        ({"k": [int]}, "{'k': [int]}"),
        ({"b", "a"}, "{'a', 'b'}"),
        (set(), "set()"),
        (frozenset({1}), "frozenset({1})"),
        (b"x", "b'x'"),
        (np.arange(3), "[0 1 2]"),
        (Loud(), "<test_space_identity.Loud object>"),
    ],
)
def test_labels_say_what_a_value_is(value, text):
    assert label(value) == text


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        Instance(),
        Instance().__init__,
        multiplied(2),
        secrets.SystemRandom().random,
        [Instance()],
        Color.RED,
        np.add,
    ],
)
def test_labels_show_no_address(value):
    assert "0x" not in label(value)
    assert label(value)
