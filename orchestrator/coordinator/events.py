"""What happens in a sweep, told to whoever watches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.schema import StagePlan, StageResult, TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The script's own output, as it came; ``stream`` is ``out`` or ``err``."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBegun:
    """The driver reached a Scan; ``workers`` serve it."""

    plan: StagePlan
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDone:
    """A row is recorded."""

    record: TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnded:
    """All rows of a stage are recorded, or it was stopped."""

    result: StageResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence; ``level`` is ``info`` or ``warning``."""

    text: str
    level: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """One line of the live table."""

    worker: int
    device: str
    state: str
    done: int
    failed: int
    left: int
    current: int | None
    gpu_mib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """How everything stands, a few times a second."""

    stage: int
    rows: int
    done: int
    failed: int
    workers: tuple[WorkerView, ...] = field(default=())


Event = Output | StageBegun | TrialDone | StageEnded | Notice | Tick


def event_json(event: Event) -> dict[str, Any] | None:
    """Give an event as one JSON object, for ``--json``; None for a tick, which is only for the eye."""
    match event:
        case Output():
            return {"event": "output", "stream": event.stream, "text": event.text}
        case StageBegun():
            plan = event.plan
            return {"event": "scan", "scan": plan.stage, "experiment": plan.experiment_name, "rows": plan.rows,
                    "keys": plan.keys, "workers": event.workers}  # fmt: skip
        case TrialDone():
            record = event.record
            return {"event": "trial", "row": record.row, "worker": record.worker, "status": record.status,
                    "cause": record.cause, "error": record.error, "duration": record.duration,
                    "params": record.params, "metrics": record.metrics}  # fmt: skip
        case StageEnded():
            return {"event": "scan-ended", **asdict(event.result)}
        case Notice():
            return {"event": event.level, "text": event.text}
        case Tick():
            return None
