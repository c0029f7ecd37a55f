"""The object that ``Scan`` leaves behind: the merged table and what Talos scripts use next."""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

from orchestrator.errors import EnvironmentNotReadyError
from orchestrator.records.table import Table, full_table, talos_table
from orchestrator.records.talos_run import safe_experiment
from orchestrator.scan.call import ScanCall, StageOutcome
from orchestrator.scan.kept import KeptModels
from orchestrator.scan.lazy import LazyList
from orchestrator.scan.objective import choose_metric, lower_is_better
from orchestrator.schema import COMPLETED, TrialRecord
from orchestrator.space import decode


class ScanResult:
    """Talos's result attributes.

    ``data`` has one row per completed trial, in Talos's order and columns; ``failures`` one per trial that failed or was
    lost, with its error. ``models``, ``saved_models`` and ``saved_weights`` have an item per row of ``data``, loaded when
    asked for, None where none was kept.
    """

    def _settle(self, call: ScanCall, outcome: StageOutcome) -> None:
        call = call if outcome.trials is None else replace(call, trials=outcome.trials)
        self._call, self._outcome = call, outcome
        self._records = [record for record in outcome.records if record.status == COMPLETED]
        self._failed = [record for record in outcome.records if record.status != COMPLETED]
        self.status = outcome.status
        self.run_dir = Path(publish_run(call.experiment_name, outcome))
        self._experiment_id = self.run_dir.name
        self._experiment_log = os.path.join(self.run_dir, "results.csv")
        self._saved_models_path = os.path.join(self.run_dir, "models")
        self.round_history = [record.history for record in self._records]
        self.metadata: dict[str, Any] = {"experiment_name": call.experiment_name}
        if self._records:
            self.round_params = self._values(self._records[-1])
            self.model_history = SimpleNamespace(history=self._records[-1].history)
        self._ended_at = datetime.datetime.now(datetime.timezone.utc).isoformat()
        count = len(self._records)
        self._kept = kept = KeptModels(call, outcome, self._records, _tell)
        self.models = LazyList(count, kept.model)
        self.artifacts = LazyList(count, kept.artifact)
        self.saved_models = LazyList(count, kept.saved_model)
        self.saved_weights = LazyList(count, kept.saved_weights)
        self._param_dict_keys = list(call.trials.domain.keys)
        self.objective = {"metric": call.objective, "direction": "min" if call.minimize else "max"}
        if self._failed:
            first = self._failed[0]
            _tell(
                f"{len(self._failed)} of {outcome.rows} trials did not complete and are not in .data (see .failures); "
                f"the first is row {first.row}: {first.error}"
            )
        if outcome.status == "paused":
            _tell(f"stopped with {outcome.rows - len(outcome.records)} of {outcome.rows} rows not run")

    @cached_property
    def _table(self) -> Table:
        return talos_table(self._records, self._values)

    @property
    def parameter_columns(self) -> dict[str, str]:
        """Name the column of each parameter: its own key, or ``param__KEY`` beside a metric of that name."""
        return self._table.parameter_columns

    @cached_property
    def data(self) -> Any:
        """Give the table; a DataFrame that is made once and is then the caller's own to change."""
        return _pandas().DataFrame(self._table.rows, columns=self._table.columns or None)

    @cached_property
    def failures(self) -> Any:
        """Give the rows that did not complete, with cause and error."""
        table = full_table(self._failed, self._values)
        frame = _pandas().DataFrame(table.rows, columns=table.columns or None)
        frame["error"] = [record.error for record in self._failed]
        return frame

    @cached_property
    def round_times(self) -> Any:
        """Give start, end and duration of each row."""
        times = ["start", "end", "duration"]
        return self.data[times].copy() if self._records else _pandas().DataFrame(columns=times)

    @property
    def result(self) -> list[list[Any]]:
        """Give the table as a list of lists, the header first."""
        return [self._table.columns, *([row.get(name) for name in self._table.columns] for row in self._table.rows)]

    @cached_property
    def details(self) -> Any:
        """Give what the scan was, as a Series."""
        return _pandas().Series(self._make_details())

    def _make_details(self) -> dict[str, Any]:
        own = vars(self)
        details = {
            "experiment_name": self._call.experiment_name,
            "experiment_id": self._experiment_id,
            "run_dir": str(self.run_dir),
            "status": self._outcome.status,
            "rounds": len(self._records),
            "seed": self._call.seed,
            "complete_time": self._ended_at,
        }
        for name in ("random_method", "reduction_method", "reduction_metric", "reduction_interval", "reduction_window",
                     "reduction_threshold", "minimize_loss"):  # fmt: skip
            details[name] = own.get(name)
        details["x_shape"] = getattr(own.get("x"), "shape", "multi-input")
        details["y_shape"] = getattr(own.get("y"), "shape", "multi-output")
        return details

    def _values(self, record: TrialRecord) -> dict[str, Any]:
        if record.changed_params is None:
            return self._call.trials.params(record.row)
        own = self._call.trials.params(record.row)
        return {
            key: own[key] if key in own and record.params.get(key) == value else decode(value)
            for key, value in record.changed_params.items()
        }

    @property
    def learning_entropy(self) -> Any:
        """Give the entropy of each row's training series (against validation where there is one), one row per trial."""
        from orchestrator.scan.entropy import series_entropy

        return _pandas().DataFrame([series_entropy(history) for history in self.round_history])

    @property
    def experiment_log(self) -> Any:
        """Give the table, under the name that Talos's run result has for it."""
        return self.data

    def best_model(
        self,
        metric: Optional[str] = "val_acc",
        asc: Optional[bool] = None,
        saved: bool = False,  # noqa: ARG002 - Talos's argument; here every kept model is on disk
        custom_objects: Any = None,  # noqa: ARG002 - the script's own classes are known
        **_: Any,
    ) -> Any:
        """Give the model of the best row by ``metric``: by default ``val_acc``, or the first usual one where there is none.

        ``asc`` True takes the smallest; by default the largest, as Talos does, except where the metric was chosen here.
        ``metric=None`` is the Scan's own objective and its direction. It is the same object each time. A model that was not
        kept is trained again from its row. Raises KeyError naming the metrics there are, ValueError when no row has a
        usable value.
        """
        return self._kept.any_model(self._best_position(metric, asc))

    def _best_position(self, metric: Optional[str], asc: Optional[bool]) -> int:
        known = list(dict.fromkeys(name for record in self._records for name in record.metrics))
        name, smallest = self._metric(metric, asc, known)
        if name is None or name not in self.data:
            raise KeyError(
                f"no metric {name!r} in the result; there are: {', '.join(known) or 'none, no row completed'}"
            )
        values = self.data[name].dropna()
        if values.empty:
            raise ValueError(f"no row has a usable value of {name!r}")
        return int(self.data.loc[values.index].sort_values(name, ascending=smallest, kind="stable").index[0])

    def _metric(self, metric: Optional[str], asc: Optional[bool], known: list[str]) -> tuple[Optional[str], bool]:
        """Settle which metric ranks, and whether its smallest value is the best."""
        if metric is None and self._call.objective in known:
            return self._call.objective, self._call.minimize
        if metric in known or metric not in (None, "val_acc"):
            return metric, bool(asc)
        chosen = choose_metric(known, metric)
        return chosen, bool(asc) if asc is not None else lower_is_better(str(chosen))

    def predict(self, x: Any, metric: Optional[str] = None, asc: Optional[bool] = None, **options: Any) -> Any:
        """Predict with the best model, through Talos."""
        from talos.commands.predict import Predict

        name = metric or choose_metric(list(self._records[0].metrics))
        direction = asc if asc is not None else lower_is_better(str(name))
        return Predict(self).predict(x, name, direction, **options)

    def evaluate_models(self, *arguments: Any, **options: Any) -> Any:
        """Cross-validate the best models, through Talos."""
        from talos.commands.evaluate import evaluate_models

        return evaluate_models(self, *arguments, **options)


def publish_run(experiment_name: str, outcome: StageOutcome) -> str:
    """Put the Talos run directory where Talos would have, ``<experiment_name>/<run>/`` under the working directory.

    Gives its path; where it cannot be written there, that of the one in the sweep's own folder.
    """
    if outcome.run is None:
        return outcome.folder
    here = os.getcwd()
    if os.path.isabs(experiment_name) and os.path.normpath(experiment_name).startswith(here + os.sep):
        experiment_name = os.path.relpath(experiment_name, here)
    target = os.path.join(here, safe_experiment(experiment_name), os.path.basename(outcome.run))
    if target == outcome.run:
        return target
    if safe_experiment(experiment_name) != os.path.normpath(experiment_name or "."):
        _tell(
            f"experiment_name {experiment_name!r} would leave the folder or is no folder name; its run is in {target}"
        )
    try:
        shutil.copytree(outcome.run, target, dirs_exist_ok=True)
    except OSError as error:
        _tell(f"the run directory is not at {target} ({error.strerror or error}), but in the sweep's own folder")
        return outcome.run
    return target


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise EnvironmentNotReadyError(
            "Scan's tables need pandas: add it to the worker image (pip install pandas)"
        ) from error
    return pd


def _tell(message: str) -> None:
    sys.stderr.write(f"talos-orch: {message}\n")
