"""How a sweep stands, for the eye."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.coordinator.events import Tick, WorkerView
from orchestrator.coordinator.members import Members
from orchestrator.coordinator.stage import Stage, Tally


def look(stage: Stage | None, members: Members, stages: int, gpu_mib: Mapping[int, float]) -> Tick:
    """Take a picture of the running stage, or of none; from the sweep's files."""
    if stage is None:
        return Tick(stage=stages, rows=0, done=0, failed=0)
    views = tuple(_worker(stage, members, number, gpu_mib.get(number)) for number in sorted(members.attempts))
    failed = len(stage.records) - stage.completed
    return Tick(stage=stages, rows=stage.plan.rows, done=len(stage.records), failed=failed, workers=views)


def _worker(stage: Stage, members: Members, number: int, gpu_mib: float | None) -> WorkerView:
    tally = stage.tallies.get(number, Tally())
    current = stage.current_row(number)
    return WorkerView(
        worker=number,
        device=members.device(number),
        state=_state(members, number, current),
        done=tally.done,
        failed=tally.failed,
        left=stage.rows_left(number),
        current=current,
        gpu_mib=gpu_mib,
    )


def _state(members: Members, number: int, current: int | None) -> str:
    if number not in members.alive:
        return "ended"
    if not members.is_ready(number):
        return "starting"
    return "running" if current is not None else "waiting"
