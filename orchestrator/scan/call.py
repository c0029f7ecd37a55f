"""One call of ``Scan``, checked and ready to run, and what comes back from running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Protocol

from orchestrator.scan.reduction import Reducer
from orchestrator.scan.rules import Reduction, Target
from orchestrator.scan.seeding import LARGEST_SEED, row_seed, seed_everything, set_generators
from orchestrator.scan.trial import Trials
from orchestrator.schema import TrialRecord


@dataclass(frozen=True)
class ScanCall:
    """``keep`` is whether models are to be kept at all; ``objective`` the caller's metric, if named."""

    experiment_name: str
    trials: Trials
    seed: Optional[int]
    objective: Optional[str] = None
    minimize: bool = False
    keep: bool = True
    progress: bool = False
    target: Optional[Target] = None
    deadline: Optional[float] = None
    reduction: Optional[Reduction] = None
    reducer: Optional[Reducer] = None


@dataclass(frozen=True)
class StageOutcome:
    """``records`` in row order, one per row that ran; ``folder`` is where kept models lie, by their ``path``.

    ``run`` is the stage as a Talos run directory, wherever this role finds it; ``trials`` what ran, where a plan has taken
    the place of what this process's script built.
    """

    records: list[TrialRecord]
    status: str  # complete | paused
    folder: str
    rows: int
    reason: Optional[str] = None
    run: Optional[str] = None
    trials: Optional[Trials] = None


class Session(Protocol):
    """A role. ``seed`` stands in where the caller gave none, so that all processes of a sweep agree; None outside."""

    seed: Optional[int]

    def run(self, call: ScanCall) -> StageOutcome:
        """Bring one Scan to its merged outcome, however this role does that."""


def seed_what_follows(call: ScanCall, records: list[TrialRecord]) -> None:
    """Bring all generators to where the last row left them, as they are after a Scan of Talos, in every process alike.

    A worker has run trials by now and the driver has not; without this a second Scan would see different data. Where the
    last row did not run they are seeded as for a row after it.
    """
    base, rows = call.trials.base_seed, int(call.trials.selection.size)
    if base is None:
        return
    last = records[-1] if records and records[-1].row == rows - 1 else None
    if last is not None and last.generators is not None:
        set_generators(last.generators, row_seed(base, last.row))
    else:
        seed_everything(row_seed(base, rows % LARGEST_SEED))
