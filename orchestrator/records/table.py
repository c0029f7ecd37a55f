"""From trial records to the rows and columns of the result table: Talos's columns in Talos's order, then ours.

Pure and without pandas, so that the driver container and the host build the same table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

from orchestrator.schema import COMPLETED, TrialRecord

BOOKKEEPING = ("start", "end", "duration", "execution_time", "round_epochs", "_warnings")
IDENTITY = ("_trial_id", "_param_hash")
OURS = ("row", "worker", "gpu", "attempt", "status", "cause")

Values = Callable[[TrialRecord], "dict[str, Any]"]


@dataclass(frozen=True)
class Table:
    """``columns`` in order; ``rows`` as dictionaries that may lack columns. ``parameter_columns``: key → column."""

    columns: list[str]
    rows: list[dict[str, Any]]
    parameter_columns: dict[str, str]


def parameter_columns(records: Iterable[TrialRecord], values: Values) -> dict[str, str]:
    """Name each parameter's column: its own key, or ``param__KEY`` once a metric has that name (Talos's rule)."""
    names: dict[str, str] = {}
    reserved = set(BOOKKEEPING) | set(IDENTITY)
    for record in records:
        params = values(record)
        taken = set(params) | set(record.metrics) | reserved | set(names.values())
        for key in params:
            if names.setdefault(key, key) in record.metrics or names[key] in reserved:
                name = "param__" + key
                while name in taken:
                    name = "param__" + name
                names[key] = name
                taken.add(name)
    return names


def talos_table(records: list[TrialRecord], values: Values) -> Table:
    """Build Talos's own table of these records, in the order given.

    ``values`` gives the parameters of a record as they are to stand in the table (objects, or text).
    """
    names = parameter_columns(records, values)
    rows = [_talos_row(record, values(record), names) for record in records]
    return Table(_columns_of(rows), rows, names)


def full_table(records: list[TrialRecord], values: Values) -> Table:
    """Build the merged table of all records: Talos's columns as completed rows alone give them, then ours."""
    names = parameter_columns(records, values)
    rows = [_talos_row(record, values(record), names) for record in records]
    completed = [row for row, record in zip(rows, records) if record.status == COMPLETED]
    columns = _columns_of(completed + rows)
    ours = {name: name if name not in columns else "orch__" + name for name in OURS}
    changed: list[str] = []
    for row, record in zip(rows, records):
        own = (record.row, record.worker, record.device, record.attempt, record.status, record.cause)
        row.update(zip(ours.values(), own))
        for key in record.changed_params or {}:
            if key in record.params and record.changed_params[key] != record.params[key]:  # type: ignore[index]
                row["asked__" + key] = record.params[key]
                changed.append("asked__" + key)
    return Table([*columns, *ours.values(), *dict.fromkeys(changed)], rows, names)


def _talos_row(record: TrialRecord, params: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    epochs = max((len(series) for series in record.history.values()), default=0)
    row = {
        "start": record.start,
        "end": record.end,
        "duration": record.duration,
        "execution_time": record.duration,
        "round_epochs": epochs,
        "_warnings": json.dumps(record.warnings, sort_keys=True, separators=(",", ":")),
    }
    row.update(record.metrics)
    row.update(zip(IDENTITY, (record.trial_id, record.param_hash)))
    row.update((names[key], value) for key, value in params.items())
    return row


def _columns_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    # In order of first appearance, which is what pandas does with a list of dictionaries.
    return list(dict.fromkeys(key for row in rows for key in row))
