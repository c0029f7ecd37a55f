"""Limits: counts, order, and what is said when nothing is left."""

from __future__ import annotations

import json
import random
import sys
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ParamsTypeError, ParamsValueError
from orchestrator.space import Domain, ParamSpace, Selection, select
from orchestrator.space.sampling import LOCAL_METHODS, draw_unique

TEN = Domain.of({"a": list(range(10))})
HUGE = Domain.of({f"k{number}": list(range(10)) for number in range(42)})
LATIN = {"latin_improved", "latin_matrix", "latin_sudoku"}


@pytest.mark.parametrize("method", LOCAL_METHODS)
@given(total=st.integers(1, 60), data=st.data())
def test_every_method_draws_that_many_different_rows(method, total, data):
    count = data.draw(st.integers(1, total))
    found = select(Domain.of({"a": list(range(total))}), random_method=method, round_limit=count, seed=3)
    assert len(found) == len(set(found)) == count
    assert all(0 <= index < total for index in found)


@pytest.mark.parametrize("method", sorted(set(LOCAL_METHODS) - LATIN))
def test_a_few_rows_of_a_huge_grid_are_drawn_without_building_it(method):
    found = select(HUGE, random_method=method, round_limit=100, seed=1)
    assert len(set(found)) == 100
    assert all(0 <= index < 10**42 for index in found)


def test_latin_improved_works_up_to_64_bits():
    found = select(
        Domain.of({f"k{n}": list(range(10)) for n in range(18)}),
        random_method="latin_improved",
        round_limit=5,
        seed=1,
    )
    assert len(set(found)) == 5


@pytest.mark.parametrize("method", sorted(LATIN))
def test_a_grid_too_large_for_a_latin_method_is_refused_with_others_to_use(method):
    with pytest.raises(ParamsValueError, match="uniform_mersenne"):
        select(HUGE, random_method=method, round_limit=3)


@given(total=st.integers(10**6, sys.maxsize), count=st.integers(1, 60), seed=st.integers())
def test_drawing_from_a_huge_grid_continues_what_the_standard_library_does(total, count, seed):
    expected = random.Random(seed).sample(range(total), count)  # noqa: S311 - what Talos draws from
    assert list(draw_unique(random.Random(seed), total, count)) == expected  # noqa: S311 - as above


def test_more_rows_than_sys_maxsize_are_sampled_repeatably():
    first = ParamSpace({f"k{n}": list(range(10)) for n in range(19)}, round_limit=100, seed=1)
    again = ParamSpace({f"k{n}": list(range(10)) for n in range(19)}, round_limit=100, seed=1)
    assert first.selection == again.selection
    assert len(first) == 100
    assert first.dimensions == 10**19


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"round_limit": 3}, 3),
        ({"round_limit": 50}, 10),
        ({"round_limit": 0.5}, 5),
        ({"round_limit": 5.0}, 10),
        ({"fraction_limit": 0.39}, 3),
        ({"fraction_limit": 2}, 2),
        ({"fraction_limit": 1.0}, 10),
        ({"fraction_limit": 0.2, "round_limit": 9}, 2),
    ],
)
def test_a_float_is_a_fraction_and_an_integer_a_count_and_a_fraction_limit_wins(limits, count):
    assert len(select(TEN, seed=1, **limits)) == count


def test_fifty_rows_of_two_are_two():
    assert len(ParamSpace({"a": [1, 2]}, round_limit=50)) == 2


@pytest.mark.parametrize(
    "limits", [{"fraction_limit": 0.01}, {"round_limit": 0}, {"round_limit": -3}, {"fraction_limit": 0.0}]
)
def test_a_limit_that_leaves_no_row_shows_the_size_of_the_space_and_itself(limits):
    with pytest.raises(ParamsValueError) as caught:
        ParamSpace({"a": list(range(10))}, **limits)
    name, value = limits.popitem()
    assert f"{name}={value} of a space of 10 rows" in str(caught.value)


@pytest.mark.parametrize("limit", ["3", [3], 1j])
def test_a_limit_that_is_no_number_is_a_type_error(limit):
    with pytest.raises(ParamsTypeError, match="round_limit"):
        select(TEN, round_limit=limit)


@pytest.mark.parametrize("limit", [float("nan"), float("inf")])
def test_a_limit_that_is_not_finite_is_a_value_error(limit):
    with pytest.raises(ParamsValueError, match="round_limit"):
        select(TEN, round_limit=limit)


def test_a_fraction_limit_of_the_integer_one_is_one_row_and_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space = ParamSpace({"a": list(range(10))}, fraction_limit=1)
        assert len(space) == len(list(space.rows())) == 1
    assert [str(warning.message) for warning in caught] == ["fraction_limit=1 is a count, one row; 1.0 means all rows"]
    assert caught[0].filename == __file__


def test_a_full_grid_is_not_listed():
    assert select(HUGE).to_json() == {"kind": "all", "total": 10**42}


def test_selections_come_back_from_json():
    for made in (
        select(HUGE),
        select(TEN, round_limit=4, seed=1),
        select(TEN, boolean_limit=lambda row: row["a"] > 7),
    ):
        again = Selection.from_json(json.loads(json.dumps(made.to_json())))
        assert again == made
        assert again[1] == made[1]
    assert select(TEN, boolean_limit=lambda row: row["a"] > 7).to_json() == {
        "kind": "list",
        "indices": [8, 9],
    }


def test_a_selection_of_an_unknown_kind_is_refused():
    with pytest.raises(ParamsValueError, match="'odd'"):
        Selection.from_json({"kind": "odd"})


def test_a_position_outside_the_selection_is_an_index_error():
    for made in (select(TEN), select(TEN, round_limit=3)):
        with pytest.raises(IndexError):
            made[10]


def test_a_boolean_limit_filters_the_rows_that_were_sampled():
    sampled = select(TEN, round_limit=6, seed=1)
    kept = select(TEN, round_limit=6, seed=1, boolean_limit=lambda row: row["a"] % 2)
    assert list(kept) == [index for index in sampled if index % 2]


def test_a_boolean_limit_that_keeps_every_row_keeps_the_whole_grid():
    assert select(TEN, boolean_limit=lambda _row: True).to_json() == {"kind": "all", "total": 10}


def test_a_boolean_limit_that_keeps_nothing_leaves_no_row_as_in_talos_and_says_so():
    with pytest.warns(UserWarning, match="keeps none of the 10 rows"):
        assert len(select(TEN, boolean_limit=lambda _row: False)) == 0


def test_a_boolean_limit_over_a_huge_grid_asks_for_a_round_limit():
    with pytest.raises(ParamsValueError, match="add round_limit"):
        select(HUGE, boolean_limit=lambda _row: True)
    assert len(select(HUGE, boolean_limit=lambda _row: True, round_limit=5)) == 5


def test_a_boolean_limit_that_is_no_function_is_a_type_error():
    with pytest.raises(ParamsTypeError, match="boolean_limit"):
        select(TEN, boolean_limit="a > 1")


def test_a_limit_that_leaves_too_many_rows_to_list_is_refused():
    with pytest.raises(ParamsValueError, match=str(10**7)):
        select(HUGE, fraction_limit=0.5)


def test_a_limit_that_keeps_all_of_a_huge_grid_keeps_grid_order():
    assert select(HUGE, fraction_limit=1.0) == select(HUGE)
    odd = Domain.of({f"k{number}": [0, 1, 2] for number in range(40)})
    assert select(odd, round_limit=1.0).size == 3**40


def test_an_unknown_method_is_refused_with_the_names():
    with pytest.raises(ParamsValueError) as caught:
        select(TEN, random_method="mersenne", round_limit=1)
    assert all(method in str(caught.value) for method in LOCAL_METHODS)


@pytest.mark.parametrize("method", ["quantum", "ambience", "mersenne"])
def test_a_method_that_draws_nothing_is_not_asked_for_anything(method):
    with pytest.warns(UserWarning, match=f"random_method='{method}' is not used: every row is visited"):
        assert select(TEN, random_method=method) == select(TEN)


@pytest.mark.parametrize("method", ["quantum", "ambience"])
def test_a_method_that_asks_a_network_service_is_refused_with_local_ones(method):
    with pytest.raises(ParamsValueError) as caught:
        select(TEN, random_method=method, round_limit=1)
    assert "network" in str(caught.value)
    assert "'uniform_mersenne'" in str(caught.value)
    assert "'uniform_crypto'" in str(caught.value)


def test_a_seed_is_an_integer_and_not_negative_for_numpys_generator():
    with pytest.raises(ParamsTypeError, match="seed"):
        select(TEN, seed="x")
    with pytest.raises(ParamsValueError, match="seed=-1"):
        select(TEN, random_method="latin_matrix", round_limit=2, seed=-1)


def test_a_time_limit_has_taloss_format():
    assert ParamSpace({"a": [1]}, time_limit="2030-01-31 18:00").time_limit == "2030-01-31 18:00"
    with pytest.raises(ParamsValueError, match="time_limit"):
        ParamSpace({"a": [1]}, time_limit="tomorrow")


def test_without_a_seed_rows_are_drawn_once_for_one_space():
    space = ParamSpace({"a": list(range(1000))}, round_limit=50)
    assert list(space.rows()) == list(space.rows())
    assert len(ParamSpace({"a": [1, 1, 2]})) == 3


def test_rounds_come_one_by_one_and_then_false():
    space = ParamSpace({"a": [1, 2], "b": ["x"]})
    assert space.param_index == range(2)
    assert space.round_parameters() == [1, "x"]
    assert space.param_index == range(1, 2)
    assert space._round_parameters_todict(space.round_parameters()) == {"a": 2, "b": "x"}
    assert space.round_parameters() is False


def test_the_row_view_is_a_sequence():
    view = ParamSpace({"a": [1, 2], "b": [3, 4]}).param_space
    assert len(view) == 4
    assert list(view) == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert view[-1] == [2, 4]
    assert view[1:3] == [[1, 4], [2, 3]]
    with pytest.raises(IndexError):
        view[4]
