from makers import plan

from orchestrator.records.planned import planned_params
from orchestrator.space import Domain, select


def test_a_rows_values_come_out_of_the_plan_callables_by_name():
    domain = Domain.of({"a": [1, 2], "f": [int, len], "n": [None, (1, 2)]})
    made = plan(8, space=domain.describe(), selection=select(domain).to_json())
    assert planned_params(made, 0) == {"a": 1, "f": {"__talos_type__": "name", "value": "int"}, "n": None}
    assert [planned_params(made, row)["a"] for row in range(8)] == [1] * 4 + [2] * 4


def test_a_plan_with_digests_alone_tells_nothing():
    domain = Domain.of({"a": list(range(20_000))})
    made = plan(20_000, space=domain.describe(), selection=select(domain).to_json())
    assert planned_params(made, 5) == {}
