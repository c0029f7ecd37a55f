"""What crosses the wall between host and container: frozen records, each with ``to_json`` beside ``from_json``.

Every file that holds one of them carries ``schema``: a reader refuses a number it does not know. Standard library
only, Python 3.9: these classes are frozen but neither slotted nor keyword-only, which 3.9 does not offer.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar

from orchestrator.errors import RecordError

SCHEMA = 1

COMPLETED, FAILED, LOST = "completed", "failed", "lost"
STATUSES = (COMPLETED, FAILED, LOST)
CAUSES = (
    "exception",  # the user's code raised
    "host-oom",  # the kernel killed the trial process at its memory limit
    "gpu-oom",
    "shm",  # /dev/shm was full
    "signal",  # another signal ended the trial process
    "timeout",
    "stopped",
    "device-lost",
    "unknown",
)

_T = TypeVar("_T")


def _load(cls: type[_T], data: Any, where: str) -> _T:
    """Build a record from parsed JSON; RecordError names ``where`` and the field at fault."""
    if not isinstance(data, dict):
        raise RecordError(f"{where}: expected an object, found {type(data).__name__}")
    if data.get("schema") != SCHEMA:
        raise RecordError(f"{where}: schema {data.get('schema')!r} is not {SCHEMA}; written by another version")
    fields = {entry.name: entry for entry in dataclasses.fields(cls)}  # type: ignore[arg-type]
    values = {key: value for key, value in data.items() if key in fields}
    needed = {
        name
        for name, entry in fields.items()
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
    }
    missing = sorted(needed - set(values))
    if missing:
        raise RecordError(f"{where}: {missing[0]!r} is missing")
    return cls(**values)


def _dump(record: Any) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        **{entry.name: getattr(record, entry.name) for entry in dataclasses.fields(record)},
    }


@dataclass(frozen=True)
class TrialRecord:
    """One finished trial, one line of ``trials.jsonl``.

    ``row`` is the position in Talos's visiting order (from 0). ``params`` are the values asked for, encoded by
    ``orchestrator.space``; ``changed_params`` those after the model function changed its dictionary, if it did.
    ``metrics`` keeps the order in which the model returned them, ``history`` the epochs of each. Times: ``start`` and
    ``end`` UTC ISO 8601, ``duration`` seconds, peaks MiB. ``model`` describes a kept artifact, ``path`` relative
    to the stage folder. ``generators`` is what the random generators were like after the last row.
    """

    row: int
    attempt: int
    status: str
    params: dict[str, Any]
    trial_id: str
    param_hash: str
    start: str
    end: str
    duration: float
    worker: int = -1
    device: str = "cpu"
    cause: Optional[str] = None
    seed: Optional[int] = None
    metrics: dict[str, Any] = field(default_factory=dict)
    history: dict[str, Any] = field(default_factory=dict)
    changed_params: Optional[dict[str, Any]] = None
    warnings: list[Any] = field(default_factory=list)
    model: Optional[dict[str, Any]] = None
    backend: Optional[str] = None
    peak_host_mib: Optional[float] = None
    peak_gpu_mib: Optional[float] = None
    error: Optional[str] = None
    contract_error: bool = False
    traceback: Optional[str] = None
    generators: Optional[dict[str, Any]] = None

    def to_json(self) -> dict[str, Any]:
        """Give the line's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> TrialRecord:
        """Check and build; RecordError names ``where``."""
        record = _load(cls, data, where)
        if not isinstance(record.row, int) or isinstance(record.row, bool) or record.row < 0:
            raise RecordError(f"{where}: row {record.row!r} is not a row number")
        if record.status not in STATUSES:
            raise RecordError(f"{where}: status {record.status!r} is none of {', '.join(STATUSES)}")
        if record.cause is not None and record.cause not in CAUSES:
            raise RecordError(f"{where}: cause {record.cause!r} is none of {', '.join(CAUSES)}")
        for name in ("params", "metrics", "history"):
            if not isinstance(getattr(record, name), dict):
                raise RecordError(f"{where}: {name} is not an object")
        for name in ("changed_params", "model", "generators"):
            if not isinstance(getattr(record, name), (dict, type(None))):
                raise RecordError(f"{where}: {name} is not an object")
        for name in ("worker", "attempt"):
            if not isinstance(getattr(record, name), int):
                raise RecordError(f"{where}: {name} {getattr(record, name)!r} is not a number")
        return record


@dataclass(frozen=True)
class StagePlan:
    """One ``Scan`` call as the driver saw it, ``plan.json`` of a stage.

    ``rows`` is how many rows there are to run; ``selection`` maps them to grid indices; ``space`` describes every key.
    ``seed`` is the caller's, ``base_seed`` the one in force (trial k is seeded with ``base_seed + k``); ``data`` is a
    fingerprint of the driver's data. ``target`` is ``[metric, threshold, minimize]``, ``deadline`` seconds since the epoch,
    ``reduction_interval`` a number of completed rows.
    """

    stage: int
    experiment_name: str
    rows: int
    keys: list[str]
    space: list[Any]
    fingerprint: str
    selection: dict[str, Any]
    base_seed: int
    seed: Optional[int] = None
    objective: Optional[str] = None
    minimize: bool = False
    keep: bool = True
    shard_namespace: Optional[str] = None
    target: Optional[list[Any]] = None
    deadline: Optional[float] = None
    reduction_interval: Optional[int] = None
    data: Optional[str] = None

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> StagePlan:
        """Check and build; RecordError names ``where``."""
        plan = _load(cls, data, where)
        if not isinstance(plan.rows, int) or plan.rows < 0:
            raise RecordError(f"{where}: rows {plan.rows!r} is not a count")
        return plan


@dataclass(frozen=True)
class StageResult:
    """A stage has ended, ``result.json``: ``status`` is ``complete`` or ``paused`` (stopped with rows left).

    ``run_name`` names the Talos run directory under the stage's ``talos/``. ``resumable`` says that a resume goes on with
    the rows that are left: it was stopped by somebody, not by a limit of its own.
    """

    stage: int
    status: str
    rows: int
    completed: int
    failed: int
    lost: int
    reason: Optional[str] = None
    run_name: Optional[str] = None
    resumable: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> StageResult:
        """Check and build; RecordError names ``where``."""
        return _load(cls, data, where)


@dataclass(frozen=True)
class Share:
    """What one worker may use, ``share`` in ``worker.json``.

    ``gpus`` are UUIDs (never indices), ``gpu_fraction`` applies to each of them and is
    at most ``gpu_bytes``. Memory in bytes, ``cpus`` in cores
    (a quota), ``threads`` per process; ``cpuset`` names the CPUs that no other worker has, as ``0-3``.
    """

    worker: int
    cpus: float
    threads: int
    memory: int
    shm: int
    pids: int
    gpus: list[str] = field(default_factory=list)
    gpu_fraction: Optional[float] = None
    cpuset: Optional[str] = None
    gpu_bytes: Optional[int] = None

    @property
    def device(self) -> str:
        """``cpu``, or the UUIDs joined by commas."""
        return ",".join(self.gpus) or "cpu"

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> Share:
        """Check and build; RecordError names ``where``."""
        return _load(cls, data, where)


@dataclass(frozen=True)
class Job:
    """What a container (or process) has to do, ``job.json`` in its run directory.

    Paths are as seen inside. ``run`` is this role's own directory, ``driver`` the driver's (read-only for workers);
    ``folder`` comes first on the module path, None for the script's own.
    """

    role: str  # driver | worker
    sweep: str
    script: str
    arguments: list[str]
    workdir: str
    run: str
    driver: str
    seed: int
    keep_models: str
    worker: int = -1
    attempt: int = 1
    limits_enforced: bool = True
    isolated: bool = True
    folder: Optional[str] = None
    share: Optional[dict[str, Any]] = None

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> Job:
        """Check and build; RecordError names ``where``."""
        return _load(cls, data, where)


@dataclass(frozen=True)
class SweepFile:
    """What was asked and decided, ``sweep.json``: enough to read the folder without any other knowledge.

    ``generated`` names the Python file in the driver's directory that stands in for a ``script`` that is none. ``workers``
    is how many run at a time; ``shares`` has one for each that there ever was, those of ``resumes`` too.
    """

    name: str
    script: str
    arguments: list[str]
    project: str
    workdir: str
    engine: str
    endpoint: str
    image: Optional[str]
    image_id: Optional[str]
    workers: int
    seed: int
    keep_models: str
    created: str
    version: str
    uid: int
    gid: int
    shares: list[dict[str, Any]]
    keep_going: bool = False
    generated: Optional[str] = None
    script_sha256: Optional[str] = None
    resumes: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> SweepFile:
        """Check and build; RecordError names ``where``."""
        return _load(cls, data, where)


@dataclass(frozen=True)
class SweepState:
    """How a sweep stands or ended, ``state.json``; rewritten by the coordinator, whole each time."""

    status: str  # planned | running | draining | finished | stopped | failed
    updated: str
    coordinator_pid: int
    exit_code: Optional[int] = None
    message: Optional[str] = None
    stages: int = 0
    rows: int = 0
    completed: int = 0
    failed: int = 0
    lost: int = 0
    timings: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give the file's object."""
        return _dump(self)

    @classmethod
    def from_json(cls, data: Any, where: str) -> SweepState:
        """Check and build; RecordError names ``where``."""
        return _load(cls, data, where)
