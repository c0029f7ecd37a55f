"""Talos's own reducers on the rows that all workers have finished so far.

A reducer sees what it sees in Talos (a scan-like object with ``data``, ``param_object`` and the reduction settings) and
takes pending rows away; which ones is all that leaves this module.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Callable

from orchestrator.errors import EnvironmentNotReadyError, InputError
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import StageDir
from orchestrator.records.table import talos_table
from orchestrator.scan.trial import Trials
from orchestrator.schema import COMPLETED, TrialRecord
from orchestrator.space.removal import RowRemoval

# A reducer walks over every pending row by name.
LARGEST_PENDING = 1_000_000


class PendingRows(RowRemoval):
    """Stands in for Talos's ParamSpace: the rows that nobody has begun, and the verbs that take some of them away."""

    def __init__(self, trials: Trials, pending: Sequence[int], rounds: int) -> None:
        self._trials = trials
        self.param_keys = list(trials.domain.keys)
        self.params = {key: list(values) for key, values in zip(trials.domain.keys, trials.domain.values)}
        self.p = self.params
        self.param_index = list(pending)
        self.round_counter = rounds
        self.param_space = _Rows(trials)

    def _round_parameters_todict(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.param_keys, values))

    def _keep(self, condition: Callable[[dict[str, Any]], Any]) -> None:
        self.param_index = [row for row in self.param_index if condition(self._trials.params(row))]


class _Rows:
    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    def __getitem__(self, row: int) -> list[Any]:
        return list(self._trials.params(row).values())

    def __len__(self) -> int:
        return int(self._trials.selection.size)


class Reducer:
    """One Scan's reducer. ``settings`` are the Scan's arguments; the object that a reducer is given lives as long as this."""

    def __init__(self, trials: Trials, settings: dict[str, Any]) -> None:
        self._trials = trials
        own = {
            "performance_target": None,
            "_param_dict_keys": list(trials.domain.keys),
            "_experiment_id": "gamify",  # names the file in which gamify lets a person switch values off
        }
        self._scan = SimpleNamespace(**{**settings, **own})
        self._scan.x_train, self._scan.y_train, self._scan.x_val, self._scan.y_val = trials.data
        self._records: list[TrialRecord] = []

    def check(self) -> None:
        """Import what reducing needs, before the first trial waits for it; raises as ``reduce`` does."""
        rows = int(self._trials.selection.size)
        if rows > LARGEST_PENDING:
            raise InputError(f"reduction_method on {rows} rows: give round_limit, at most {LARGEST_PENDING}")
        _reduce_run(self._scan.reduction_method)
        if self._scan.reduction_method == "gamify":
            os.makedirs(str(self._scan.experiment_name), exist_ok=True)

    def reduce(self, records: Sequence[TrialRecord], gone: set[int]) -> list[int]:
        """Look at the ``records`` so far, those that completed; the pending rows to drop.

        ``gone`` are rows dropped before. InputError carries what the reducer raised.
        """
        rows = int(self._trials.selection.size)
        # In row order, as Talos has them, whoever was done first.
        completed = sorted((record for record in records if record.status == COMPLETED), key=lambda record: record.row)
        begun = {record.row for record in records} | gone
        pending = [row for row in range(rows) if row not in begun]
        space = PendingRows(self._trials, pending, len(records))
        self._show(completed, space)
        self._scan.param_object.round_counter = self._round_counter(len(records))
        self._run()
        return sorted(set(pending) - set(self._scan.param_object.param_index))

    def _round_counter(self, rows: int) -> int:
        # The coordinator decides when it is time; Talos's own test of the interval has to agree.
        interval = int(self._scan.reduction_interval)
        return max(interval, rows - rows % interval)

    def _show(self, completed: list[TrialRecord], space: PendingRows) -> None:
        import pandas as pd

        table = talos_table(completed, lambda record: self._trials.params(record.row))
        scan = self._scan
        scan.param_object = space
        scan.data = pd.DataFrame(table.rows, columns=table.columns or None)
        scan.result = [list(scan.data.columns), *scan.data.to_numpy().tolist()]
        scan.parameter_columns = table.parameter_columns
        scan.round_history = [record.history for record in completed]
        if completed:
            scan.round_params = self._trials.params(completed[-1].row)
            scan.model_history = SimpleNamespace(history=completed[-1].history)

    def _run(self) -> None:
        method = self._scan.reduction_method
        try:
            _reduce_run(method)(self._scan)
        except EnvironmentNotReadyError:
            raise
        except Exception as error:
            raise InputError(f"reduction_method {method!r} raised {type(error).__name__}: {error}") from error


class RemovedRows:
    """The rows that a stage's reducer has taken away so far, by its answers; every row that runs now comes after these."""

    def __init__(self, stage: StageDir) -> None:
        self._stage = stage
        self._looks = 0
        self._rows: list[int] = []

    def place(self, row: int) -> int:
        """Give how many rows run before ``row``."""
        while os.path.exists(path := self._stage.reduction(self._looks + 1, "answer.json")):
            self._looks += 1
            self._rows = sorted({*self._rows, *(int(each) for each in read_json(path).get("removed", []))})
        return row - bisect_left(self._rows, row)


def _reduce_run(method: Any) -> Callable[[Any], Any]:
    """Give Talos's own dispatcher; EnvironmentNotReadyError where the image has no Talos."""
    try:
        import pandas  # noqa: F401 - every reducer needs it, and importing it takes a while
        from talos.reducers.reduce_run import reduce_run
    except ImportError as error:
        raise EnvironmentNotReadyError(
            f"reduction_method {method!r} needs Talos in the worker image: pip install talos"
        ) from error
    found: Callable[[Any], Any] = reduce_run
    return found
