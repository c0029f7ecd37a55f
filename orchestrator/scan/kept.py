"""The models of a Scan that has ended, in whatever form a script asks for them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Callable, Optional

from orchestrator.scan.call import ScanCall, StageOutcome
from orchestrator.scan.models import load_model
from orchestrator.scan.seeding import undisturbed
from orchestrator.scan.trial import run_trial
from orchestrator.schema import COMPLETED, TrialRecord


class KeptModels:
    """By position in ``records``, the completed rows. What was not kept, or cannot be loaded whole, is trained again.

    A model is one object for as long as the result lives, as in Talos; looking at models draws from no generator.
    """

    def __init__(
        self, call: ScanCall, outcome: StageOutcome, records: Sequence[TrialRecord], tell: Callable[[str], None]
    ) -> None:
        self._call, self._outcome, self._records, self._tell = call, outcome, records, tell
        self._known: dict[int, Any] = {}

    def model(self, position: int) -> Any:
        """Give the model itself; None where the script told Scan to keep none."""
        return self.any_model(position) if self._call.keep or self._records[position].model is not None else None

    def any_model(self, position: int) -> Any:
        """Give the model, trained again if need be."""
        if position not in self._known:
            with undisturbed():
                self._known[position] = self._find(position)
        return self._known[position]

    def artifact(self, position: int) -> Optional[dict[str, Any]]:
        """Give the description of a kept model's file, as Talos has it."""
        descriptor = self._records[position].model
        if descriptor is None:
            return None
        return {**descriptor, "path": os.path.join(self._outcome.folder, descriptor["path"])}

    def saved_model(self, position: int) -> Any:
        """Give the architecture as JSON, for Keras; the weights by name, for Torch; else the model."""
        model = self.model(position)
        if hasattr(model, "to_json"):
            return model.to_json()
        return model.state_dict() if hasattr(model, "state_dict") else model

    def saved_weights(self, position: int) -> Any:
        """Give the weights; None for what has none."""
        model = self.model(position)
        if hasattr(model, "get_weights"):
            return model.get_weights()
        return model.state_dict() if hasattr(model, "state_dict") else None

    def _find(self, position: int) -> Any:
        record = self._records[position]
        if record.model is None:
            return self._train_again(position, "was not kept (--keep-models all keeps every one)")
        try:
            return load_model(record.model, self._outcome.folder, self._custom_objects(position), record.history)
        except LookupError:
            return self._train_again(position, "is of a class that only the script can make")

    def _train_again(self, position: int, why: str) -> Any:
        record = self._records[position]
        self._tell(f"the model of row {record.row} {why}: training that row again")
        begun = replace(self._call.trials.start(record.row, record.attempt), seed=record.seed)
        with tempfile.TemporaryDirectory() as folder:  # its logs have been written by the row itself
            again, model = run_trial(replace(self._call.trials, folder=folder), begun, None)
        if again.status != COMPLETED:
            raise RuntimeError(f"row {record.row} could not be trained again: {again.error}")
        return model

    def _custom_objects(self, position: int) -> dict[str, Any]:
        """Name what a model of this row may be made of: the script's own functions and classes, and those among its values."""
        found = dict(getattr(self._call.trials.model, "__globals__", {}))
        found.update(vars(sys.modules["__main__"]))
        for value in self._call.trials.params(self._records[position].row).values():
            if hasattr(value, "__name__"):
                found[value.__name__] = value
        return {name: value for name, value in found.items() if callable(value)}
