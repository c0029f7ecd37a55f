"""What a user may write for a parameter, and what is said when it is something else."""

from __future__ import annotations

import fractions

import numpy as np
import pytest

from orchestrator.errors import InputError, ParamsTypeError, ParamsValueError
from orchestrator.space import DistributeParamSpace, Domain, ParamSpace, expand_range

RESERVED = [
    "_id",
    "_trial_id",
    "_param_hash",
    "_round_index",
    "_injected",
    "_generation_index",
    "_search_strategy",
]


def refusal(params, kind=InputError, **options):
    with pytest.raises(kind) as caught:
        ParamSpace(params, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (5, "'a': 5 -> 'a': [5]"),
        ("relu", "'a': 'relu' -> 'a': ['relu']"),
        (None, "'a': None -> 'a': [None]"),
        (len, "'a': len -> 'a': [len]"),
        (range(0, 10, 2), "list(range(0, 10, 2))"),
        ({1, 2}, "sorted("),
        (iter([1]), "list("),
        ("two\nlines", r"'two\nlines'"),
        (np.zeros((2, 2)), "one-dimensional"),
        (np.float64(3.0), "one-dimensional"),
    ],
)
def test_a_value_that_is_no_list_is_refused_with_the_forms_and_a_way_out(value, hint):
    text = refusal({"fine": [1], "a": value}, ParamsTypeError)
    assert "'a'" in text
    assert "a list of alternatives like [1, 2], or a range (start, end, steps)" in text
    assert hint in text


@pytest.mark.parametrize(
    "value",
    [
        (1, 2, 3, 4),
        (1, 2),
        (),
        (1, 1, 3),
        (0, 1, 0),
        (0, 1, -2),
        (0, float("nan"), 3),
        (0, float("inf"), 2),
        (0, 1, 10**9),
        (0, 2**70, 5),
    ],
)
def test_a_malformed_tuple_names_the_key_and_the_form(value):
    text = refusal({"a": value}, ParamsValueError)
    assert "'a'" in text
    assert "a range (start, end, steps)" in text


@pytest.mark.parametrize("value", [("relu", "tanh", "elu"), (1, 2, None), (1j, 2, 3)])
def test_a_tuple_of_three_that_are_no_numbers_is_a_type_error_that_suggests_a_list(value):
    text = refusal({"a": value}, ParamsTypeError)
    assert "'a'" in text
    assert "-> 'a': [" in text


@pytest.mark.parametrize("params", [None, [], 5, "a", [("a", [1])]])
def test_params_that_are_no_dict_are_a_type_error(params):
    assert "params is" in refusal(params, ParamsTypeError)


def test_an_empty_dict_has_nothing_to_sweep():
    assert "nothing to sweep" in refusal({}, ParamsValueError)
    assert "nothing to sweep" in refusal({"a": [1]}, ParamsValueError, param_keys=[])


@pytest.mark.parametrize("value", [[], np.array([])])
def test_no_candidates_is_an_error_that_names_the_key(value):
    assert "'b'" in refusal({"a": [1], "b": value}, ParamsValueError)


@pytest.mark.parametrize("key", RESERVED)
def test_the_names_that_talos_keeps_for_itself_are_refused(key):
    assert repr(key) in refusal({key: [1]}, ParamsValueError)


def test_a_name_that_is_no_string_is_refused():
    assert "'5'" in refusal({5: [1]}, ParamsTypeError)


def test_param_keys_choose_and_order_the_parameters():
    space = ParamSpace({"a": [1, 2], "b": [3], "c": 5}, param_keys=["b", "a"])
    assert list(space.rows()) == [{"b": 3, "a": 1}, {"b": 3, "a": 2}]
    assert space.param_keys == ["b", "a"]


def test_param_keys_that_are_unknown_repeated_or_one_string_are_refused():
    assert "'c'" in refusal({"a": [1]}, ParamsValueError, param_keys=["c"])
    assert "'a'" in refusal({"a": [1]}, ParamsValueError, param_keys=["a", "a"])
    assert "'a'" in refusal({"a": [1]}, ParamsTypeError, param_keys="a")


def test_an_unknown_keyword_is_pythons_own_type_error():
    for kind in (ParamSpace, DistributeParamSpace):
        with pytest.raises(TypeError, match="grid_downsample"):
            kind({"a": [1]}, grid_downsample=0.5)


def test_a_vector_is_the_list_of_its_numpy_scalars():
    values = ParamSpace({"a": np.arange(0.1, 0.35, 0.1)}).p["a"]
    assert [type(value) for value in values] == [np.float64] * 3
    assert values == list(np.arange(0.1, 0.35, 0.1))


def test_lists_are_taken_verbatim_with_their_duplicates_and_kinds():
    values = [
        len,
        int,
        [1],
        (1, 2),
        {"k": 1},
        None,
        True,
        np.int64(3),
        "x" * 100_000,
        'é\n"',
        b"\0",
        {1},
        1,
        1,
    ]
    domain = Domain.of({"a": values})
    assert domain.total == len(values)
    assert all(own is given for own, given in zip(domain.values[0], values, strict=True))


def test_the_space_does_not_follow_a_list_that_is_changed_later():
    values = [1, 2]
    params = {"a": values}
    space = ParamSpace(params)
    values.append(3)
    params["b"] = [1, 2]
    assert list(space.rows()) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((2, 10, 30), [2, 3, 4, 5, 6, 7, 8, 9]),
        ((10, 1, 3), [4, 7, 10]),
        ((0, 1, 10), [0]),
        ((1, 4, 10), [1, 2, 3]),
        ((-5, 2, 5), [-5, -3, -2, 0]),
        ((1, 5, 2.5), [1, 2, 4]),
        ((0.0, 2.1, 7), [0.0, 0.3, 0.6, 0.8999999999999999, 1.2, 1.5, 1.7999999999999998, 2.1]),
        ((np.int64(1), np.int64(5), 2), [1.0, 3.0]),
        ((False, True, 2), [0]),
        ((fractions.Fraction(1, 2), 2, 3), [0.5, 1.0, 1.5]),
    ],
)
def test_a_range_expands_as_in_talos(given, expected):
    found = expand_range("a", given)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
