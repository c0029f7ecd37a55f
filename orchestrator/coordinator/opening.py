"""Beginning a stage: what an earlier launch recorded of it is taken over, the rest is to be dealt."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.coordinator.limits import StageLimits
from orchestrator.coordinator.stage import Stage
from orchestrator.errors import RecordError
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import StageDir, SweepDir, free_name
from orchestrator.records.spool import Chunk
from orchestrator.schema import COMPLETED, FAILED, LOST, StagePlan, StageResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A stage to go on with. ``known`` rows are recorded, ``ranges`` are to be dealt."""

    stage: Stage
    limits: StageLimits
    known: int
    ranges: list[Chunk]

    @property
    def rows(self) -> int:
        """How many rows are to be dealt."""
        return sum(chunk.size for chunk in self.ranges)


def open_stage(plan: StagePlan, folder: SweepDir, alive: Collection[int], wall: str, *, redo: bool) -> Opened:
    """Read what is recorded of a stage; with ``redo`` rows that did not complete are to be dealt again.

    In a stage that a target or a time limit has ended already, only these are. ``wall`` is the time now, UTC ISO 8601.
    """
    stage = Stage(plan=plan, folder=folder, workers=sorted(alive))
    known = stage.take_over(redo=redo)
    limits = StageLimits(stage)
    limits.catch_up(known, wall)
    ranges = stage.missing()
    if limits.ending is not None:
        ranges = [chunk for chunk in ranges if chunk.first in stage.superseded]
    return Opened(stage=stage, limits=limits, known=len(known), ranges=ranges)


def result_counts(result: StageResult) -> Counter[str]:
    """Count the rows of a stage that has ended."""
    return Counter({"rows": result.rows, COMPLETED: result.completed, FAILED: result.failed, LOST: result.lost})


def keep_to_own_rows(folder: SweepDir, place: StageDir, plan: StagePlan, alive: Collection[int]) -> None:
    """See that records of an earlier launch are not counted for other rows than theirs."""
    if not os.path.exists(place.plan_before):
        return
    if StagePlan.from_json(read_json(place.plan_before), place.plan_before) != plan:
        _set_workers_aside(folder, plan.stage, alive)
    os.unlink(place.plan_before)


def set_aside_unplanned(folder: SweepDir) -> None:
    """Set aside what an earlier launch recorded of Scans that the script, run again, did not come to."""
    for number in folder.driver.stages():
        place = folder.driver.stage(number)
        if os.path.exists(place.plan_before) and not os.path.exists(place.plan):
            _set_workers_aside(folder, number, ())
            os.rename(place.path, free_name(f"{place.path}.before"))


def _set_workers_aside(folder: SweepDir, stage: int, alive: Collection[int]) -> None:
    for worker in set(folder.workers()) - set(alive):
        old = folder.worker(worker).stage(stage).path
        if os.path.isdir(old) and not os.path.islink(old):
            os.rename(old, free_name(f"{old}.before"))


def refuse_links(folder: SweepDir, place: StageDir) -> None:
    """Raise RecordError where the script has put a link in the place of a folder of the driver that is written to here."""
    for path in (folder.driver.path, place.path, place.models, place.talos):
        if os.path.islink(path):
            raise RecordError(f"{path}: the script has replaced this folder by a link; it is not followed")
