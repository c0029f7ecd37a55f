"""What ends a Scan before its last row: a target that is reached, a time that has come.

The same rules in the coordinator of a sweep and in a plain library call.
"""

from __future__ import annotations

import datetime
import numbers
import sys
from dataclasses import dataclass
from typing import Any, Optional

from orchestrator.errors import InputError, ParamsValueError
from orchestrator.schema import COMPLETED, TrialRecord

TIME_FORMAT = "%Y-%m-%d %H:%M"


@dataclass(frozen=True)
class Target:
    """A metric's last epoch at most (``minimize``) or at least ``threshold``."""

    metric: str
    threshold: float
    minimize: bool

    @classmethod
    def read(cls, value: Any) -> Optional[Target]:
        """Read Talos's ``[metric, threshold, minimize]``; ParamsValueError says what is wrong with another form."""
        if value is None:
            return None
        fine = (
            isinstance(value, (list, tuple))
            and len(value) == 3
            and isinstance(value[0], str)
            and isinstance(value[1], numbers.Real)
            and not isinstance(value[1], bool)
            and isinstance(value[2], bool)
        )
        if not fine:
            raise ParamsValueError(
                f"performance_target is {value!r}: give [metric, threshold, minimize], such as ['val_acc', 0.95, False]"
            )
        return cls(value[0], float(value[1]), value[2])

    def is_reached(self, record: TrialRecord) -> bool:
        """Say whether a completed row reaches it; InputError naming the metrics there are if this one is not among them."""
        if record.status != COMPLETED:
            return False
        if self.metric not in record.metrics:
            there = ", ".join(record.metrics) or "none"
            raise InputError(f"performance_target names {self.metric!r}, and row {record.row} reported: {there}")
        value = record.metrics[self.metric]
        return bool(value <= self.threshold if self.minimize else value >= self.threshold)

    def describe(self) -> str:
        """Write it for people."""
        return f"{self.metric} {'<=' if self.minimize else '>='} {self.threshold:g}"


def read_deadline(text: Optional[str]) -> Optional[float]:
    """Turn Talos's ``YYYY-MM-DD HH:MM`` in local time into seconds since the epoch; ParamsValueError for another form."""
    if text is None:
        return None
    try:
        moment = datetime.datetime.strptime(text, TIME_FORMAT)  # noqa: DTZ007 - local time is what Talos means
    except (TypeError, ValueError):
        raise ParamsValueError(f"time_limit is {text!r}: give local time as 'YYYY-MM-DD HH:MM'") from None
    return moment.timestamp()


def is_past(deadline: Optional[float]) -> bool:
    """Say whether a deadline has come."""
    return deadline is not None and datetime.datetime.now(datetime.timezone.utc).timestamp() >= deadline


def refuse_past(deadline: Optional[float], rows: int) -> None:
    """Raise ParamsValueError for a deadline that leaves no time for a single row."""
    if deadline is not None and is_past(deadline):
        moment = datetime.datetime.fromtimestamp(deadline).strftime(TIME_FORMAT)  # noqa: DTZ006 - as it was given
        raise ParamsValueError(f"time_limit {moment} is in the past: 0 of {rows} rows would run")


# People steer these while they run: they look as often as can be, and no worker waits for another's row.
EVERY_ROW = 0


@dataclass(frozen=True)
class Reduction:
    """How often a reducer looks at the rows so far: after every ``interval`` of them, or ``EVERY_ROW``."""

    interval: int

    @classmethod
    def read(cls, method: Any, interval: Any) -> Optional[Reduction]:
        """Read Talos's arguments; ``gamify`` and ``local_strategy`` look after every row."""
        if method is None:
            return None
        if method in ("gamify", "local_strategy"):
            return cls(EVERY_ROW)
        if not isinstance(interval, int) or isinstance(interval, bool) or interval < 1:
            raise ParamsValueError(f"reduction_interval is {interval!r}: give a number of rows, at least 1")
        if not callable(method) and method not in METHODS and method not in _registered():
            raise ParamsValueError(f"reduction_method is {method!r}: give a function, or one of {', '.join(METHODS)}")
        return cls(interval)


def _registered() -> dict[str, Any]:
    """Give the reducers that the script has registered with Talos under names of its own."""
    module = sys.modules.get("talos.reducers.reduce_run")
    found: dict[str, Any] = getattr(module, "_REDUCERS", {})
    return found


METHODS = ("correlation", "spearman", "pearson", "kendall", "trees", "forrest", "gamify", "local_strategy")
