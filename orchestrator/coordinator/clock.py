"""Time, as an argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.errors import EngineError

_T = TypeVar("_T")
_PATIENCE = 30.0  # seconds for an engine that is asked to end something and does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """``steady`` for waiting (seconds, never stepped), ``wall`` for stamps (UTC ISO 8601), ``sleep`` in seconds.

    ``started`` is the steady time at which the command began.
    """

    steady: Callable[[], float]
    wall: Callable[[], str]
    sleep: Callable[[float], None]
    started: float


def insist(clock: Clock, ask: Callable[[], _T]) -> _T:
    """Ask the engine again for a while if it does not answer: what runs must not be left behind."""
    deadline = clock.steady() + _PATIENCE
    while True:
        try:
            return ask()
        except EngineError:
            if clock.steady() > deadline:
                raise
            clock.sleep(1.0)
