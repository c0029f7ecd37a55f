"""Records come back as they were written, and what is no record is refused by name."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import plan, record, share, sweep_file

from orchestrator.errors import RecordError
from orchestrator.schema import (
    CAUSES,
    STATUSES,
    Job,
    Share,
    StagePlan,
    StageResult,
    SweepFile,
    SweepState,
    TrialRecord,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
BY_HINT = {
    "int": st.integers(0, 10**18),
    "float": st.floats(allow_nan=False),
    "str": st.text(max_size=8),
    "bool": st.booleans(),
    "list[str]": st.lists(st.text(max_size=4), max_size=3),
    "list[Any]": st.lists(json_values, max_size=3),
    "list[dict[str, Any]]": st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=2), max_size=2),
    "dict[str, Any]": st.dictionaries(st.text(max_size=4), json_values, max_size=3),
    "dict[str, float]": st.dictionaries(st.text(max_size=4), st.floats(allow_nan=False), max_size=3),
}
CLOSED = {
    (TrialRecord, "status"): st.sampled_from(STATUSES),
    (TrialRecord, "cause"): st.none() | st.sampled_from(CAUSES),
}
CLASSES = [TrialRecord, StagePlan, StageResult, Share, Job, SweepFile, SweepState]


def any_of(kind):
    """Anything that the field types of a record allow."""
    fields = {}
    for entry in dataclasses.fields(kind):
        hint = entry.type if isinstance(entry.type, str) else str(entry.type)
        inner = hint.removeprefix("Optional[").removesuffix("]") if hint.startswith("Optional[") else hint
        strategy = BY_HINT[inner]
        fields[entry.name] = CLOSED.get((kind, entry.name), strategy if inner == hint else st.none() | strategy)
    return st.builds(kind, **fields)


@pytest.mark.parametrize("kind", CLASSES)
@given(data=st.data())
def test_a_record_comes_back_through_json(kind, data):
    one = data.draw(any_of(kind))
    text = json.dumps(one.to_json())
    assert kind.from_json(json.loads(text), "here") == one


EXAMPLES = [
    record(3), plan(4), StageResult(1, "complete", 4, 3, 1, 0), share(1, gpus=["GPU-1"], gpu_fraction=0.4),
    sweep_file("/p"), SweepState("running", "now", 12),
    Job("worker", "s", "/p/a.py", [], "/p", "/run", "/driver", 0, "all"),
]  # fmt: skip


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: type(one).__name__)
class TestEveryRecord:
    def test_carries_the_schema_number(self, one):
        assert one.to_json()["schema"] == 1

    @pytest.mark.parametrize("number", [0, 2, "1", None])
    def test_of_another_schema_is_refused(self, one, number):
        with pytest.raises(RecordError, match=r"^file:7: schema .* is not 1"):
            type(one).from_json({**one.to_json(), "schema": number}, "file:7")

    def test_without_a_needed_field_is_refused_by_its_name(self, one):
        for entry in dataclasses.fields(one):
            needed = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
            data = one.to_json()
            del data[entry.name]
            if needed:
                with pytest.raises(RecordError, match=rf"^here: '{entry.name}' is missing"):
                    type(one).from_json(data, "here")
            else:
                type(one).from_json(data, "here")

    def test_takes_no_notice_of_a_field_of_a_later_version(self, one):
        assert type(one).from_json({**one.to_json(), "later": 1}, "here") == one

    @pytest.mark.parametrize("data", [None, [], "x", 3])
    def test_is_an_object(self, one, data):
        with pytest.raises(RecordError, match=r"^here: expected an object"):
            type(one).from_json(data, "here")

    def test_is_frozen(self, one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.schema = 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("row", -1), ("row", "3"), ("row", True), ("row", 1.0), ("status", "done"), ("status", None), ("cause", "magic"),
        ("params", None), ("metrics", []), ("history", 3), ("model", "x.pkl"), ("changed_params", []), ("worker", "0"),
        ("attempt", None),
    ],
)  # fmt: skip
def test_a_trial_with_a_wrong_value_is_refused_by_its_name(field, value):
    with pytest.raises(RecordError, match=rf"^log:3: {field}"):
        TrialRecord.from_json({**record().to_json(), field: value}, "log:3")


@pytest.mark.parametrize("rows", [-1, "4", None])
def test_a_plan_has_a_count_of_rows(rows):
    with pytest.raises(RecordError, match=r"rows .* is not a count"):
        StagePlan.from_json({**plan(4).to_json(), "rows": rows}, "plan.json")


def test_a_shares_device_is_its_uuids():
    assert share().device == "cpu"
    assert share(gpus=["GPU-1", "GPU-2"]).device == "GPU-1,GPU-2"


def test_every_record_class_is_tested_here():
    from orchestrator import schema

    own = [each for each in vars(schema).values() if isinstance(each, type) and dataclasses.is_dataclass(each)]
    assert set(own) == set(CLASSES)
    assert typing.get_type_hints(Share)
