"""The result table's columns are Talos's, in Talos's order; ours follow and collide with none."""

from __future__ import annotations

import pytest
from makers import record

from orchestrator.records.table import full_table, parameter_columns, talos_table

TIMES = ["start", "end", "duration", "execution_time", "round_epochs", "_warnings"]
IDENTITY = ["_trial_id", "_param_hash"]
OURS = ["row", "worker", "gpu", "attempt", "status", "cause"]


def values(one):
    return one.changed_params if one.changed_params is not None else one.params


def full(*records):
    return full_table(list(records), values)


def test_columns_are_times_metrics_identity_parameters_and_then_ours():
    table = full(record(0, params={"lr": 0.1, "a": 1}, metrics={"val_loss": 1, "loss": 2}))
    assert table.columns == [*TIMES, "val_loss", "loss", *IDENTITY, "lr", "a", *OURS]


def test_metrics_keep_the_order_in_which_the_model_gave_them():
    table = talos_table([record(0, metrics={"z": 1, "a": 2, "m": 3})], values)
    assert table.columns[len(TIMES) : len(TIMES) + 3] == ["z", "a", "m"]


def test_a_metric_that_comes_later_stands_at_the_end_of_talos_columns():
    table = talos_table([record(0, metrics={"loss": 1}), record(1, metrics={"loss": 1, "acc": 2})], values)
    assert table.columns == [*TIMES, "loss", *IDENTITY, "a", "acc"]


def test_a_parameter_named_as_a_metric_is_renamed():
    table = talos_table([record(0, params={"acc": 5, "b": 1}, metrics={"acc": 0.5})], values)
    assert table.parameter_columns == {"acc": "param__acc", "b": "b"}
    assert (table.rows[0]["acc"], table.rows[0]["param__acc"]) == (0.5, 5)


def test_the_rename_holds_for_all_rows_when_only_a_later_one_needs_it():
    table = talos_table(
        [record(0, params={"acc": 5}, metrics={"loss": 1}), record(1, params={"acc": 6}, metrics={"acc": 0.5})], values
    )
    assert [row["param__acc"] for row in table.rows] == [5, 6]
    assert "acc" not in table.rows[0]


@pytest.mark.parametrize("name", [*TIMES, *IDENTITY])
def test_a_parameter_with_the_name_of_a_column_is_renamed(name):
    assert parameter_columns([record(0, params={name: 1})], values) == {name: f"param__{name}"}


def test_a_rename_avoids_names_that_are_taken():
    names = parameter_columns([record(0, params={"acc": 1, "param__acc": 2}, metrics={"acc": 3})], values)
    assert names == {"acc": "param__param__acc", "param__acc": "param__acc"}


def test_a_failed_first_row_does_not_disturb_the_order_of_the_completed_ones():
    good = record(1, params={"a": 1}, metrics={"loss": 1})
    bad = record(0, status="failed", cause="exception", params={"z": 1, "a": 0})
    assert full(bad, good).columns == [*TIMES, "loss", *IDENTITY, "a", "z", *OURS]
    assert [row["status"] for row in full(bad, good).rows] == ["failed", "completed"]


@pytest.mark.parametrize("name", OURS)
def test_a_parameter_with_the_name_of_a_column_of_ours_keeps_its_own(name):
    table = full(record(3, params={name: "mine"}, worker=1))
    assert table.rows[0][name] == "mine"
    assert f"orch__{name}" in table.columns
    assert len(set(table.columns)) == len(table.columns)


def test_a_metric_with_the_name_of_a_column_of_ours_keeps_its_own():
    table = full(record(3, metrics={"row": 0.5}))
    assert (table.rows[0]["row"], table.rows[0]["orch__row"]) == (0.5, 3)


def test_what_was_asked_stands_beside_what_the_model_changed():
    changed = record(0, params={"a": 1, "b": 2}, changed_params={"a": 9, "b": 2, "new": 3})
    table = full(changed, record(1, params={"a": 1, "b": 2}))
    assert table.columns[-1] == "asked__a"
    assert [row.get("asked__a") for row in table.rows] == [1, None]
    assert (table.rows[0]["a"], table.rows[0]["new"]) == (9, 3)
    assert "asked__b" not in table.columns
    assert "asked__new" not in table.columns


def test_epochs_are_those_of_the_longest_series():
    assert full(record(0, history={"loss": [3, 2, 1], "lr": [1]})).rows[0]["round_epochs"] == 3
    assert full(record(0, history={})).rows[0]["round_epochs"] == 0


def test_no_records_are_no_rows():
    assert talos_table([], values).columns == []
    assert full().rows == []


@pytest.mark.backend
def test_renamed_columns_are_those_of_talos():
    pytest.importorskip("talos")
    from talos.experiment.runner import RunResult

    cases = [
        [
            ({"acc": 1, "b": 2}, {"loss": 1}),
            ({"acc": 1, "b": 2}, {"acc": 1}),
            ({"acc": 1, "b": 2}, {"b": 1, "loss": 2}),
        ],
        [({"acc": 1, "param__acc": 2}, {"acc": 3})],
        [({"start": 1, "loss": 2}, {"loss": 1, "param__loss": 4})],
    ]
    for case in cases:
        theirs = RunResult("run", {}, "case")
        for params, metrics in case:
            theirs._parameter_columns(metrics, params)
        ours = parameter_columns(
            [record(row, params=params, metrics=metrics) for row, (params, metrics) in enumerate(case)], values
        )
        assert ours == theirs.parameter_columns
