"""Time, as an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """``steady`` for waiting (seconds, never stepped), ``wall`` for stamps (UTC ISO 8601), ``sleep`` in seconds.

    ``started`` is the steady time at which the command began.
    """

    steady: Callable[[], float]
    wall: Callable[[], str]
    sleep: Callable[[float], None]
    started: float
