"""A row's parameters out of the plan alone, for rows whose trial process could not tell them any more."""

from __future__ import annotations

from typing import Any

from orchestrator.schema import StagePlan
from orchestrator.space import Domain, Selection


def planned_params(plan: StagePlan, row: int) -> dict[str, Any]:
    """Give a row's encoded parameters (callables by name); {} where the plan holds only digests of long candidate lists."""
    domain = Domain.described(plan.space)
    return domain.at(Selection.from_json(plan.selection)[row]) if domain is not None else {}
