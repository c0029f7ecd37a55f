"""Talos's tuple ranges."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from orchestrator.errors import ParamsTypeError, ParamsValueError
from orchestrator.space.labels import shown

RANGE_FORM = "a range (start, end, steps)"

_MOST_STEPS = 10**7
_PARTS = 3
_INT64 = 2**63


def expand_range(key: str, values: tuple[Any, ...]) -> list[Any]:
    """Return the candidates of the range ``(start, end, steps)`` of parameter ``key``, as Talos 2.0.10 does.

    The values are ``numpy.arange(start, end, (end - start) / steps)``, floating-point noise included, as
    Python floats. If both ends are Python ints they are truncated toward zero, made unique and sorted
    ascending, so there may be fewer than ``steps``. ParamsTypeError for a part that is no real number,
    ParamsValueError for a tuple of another length, equal ends, steps that are not positive, infinite parts
    or more than 10**7 steps.
    """
    _check(key, values)
    start, end, steps = values
    whole = isinstance(start, int) and isinstance(end, int)
    try:
        return _arange(start, end, (end - start) / steps, whole=whole)
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise ParamsValueError(
            f"parameter {key!r} is {shown(values)}: it cannot be expanded as {RANGE_FORM} ({error}); "
            "give a list of alternatives instead",
        ) from error


def _check(key: str, values: tuple[Any, ...]) -> None:
    given = f"parameter {key!r} is {shown(values)}"
    if len(values) != _PARTS:
        raise ParamsValueError(
            f"{given}, a tuple of {len(values)}: a tuple is {RANGE_FORM}; for alternatives give a list, "
            f"{key!r}: {shown(values)} -> {key!r}: {shown(list(values))}",
        )
    if not all(isinstance(part, Real) for part in values):
        raise ParamsTypeError(
            f"{given}: a tuple is {RANGE_FORM} of numbers; for alternatives give a list, "
            f"{key!r}: {shown(values)} -> {key!r}: {shown(list(values))}",
        )
    start, end, steps = values
    if not all(math.isfinite(part) for part in values):
        raise ParamsValueError(f"{given}: {RANGE_FORM} needs finite numbers")
    if steps <= 0:
        raise ParamsValueError(f"{given}: {RANGE_FORM} needs steps above 0, not {shown(steps)}")
    if start == end:
        raise ParamsValueError(
            f"{given}: {RANGE_FORM} needs two different ends; for one value write {key!r}: [{shown(start)}]",
        )
    if steps > _MOST_STEPS:
        raise ParamsValueError(f"{given}: {RANGE_FORM} takes at most {_MOST_STEPS} steps")
    if isinstance(start, int) and isinstance(end, int) and max(abs(start), abs(end)) >= _INT64:
        raise ParamsValueError(f"{given}: {RANGE_FORM} takes ints of up to 64 bits; give a list of alternatives")


def _arange(start: Any, end: Any, step: Any, *, whole: bool) -> list[Any]:
    try:
        import numpy as np
    except ImportError:
        return _arange_without_numpy(start, end, step, whole=whole)
    found = np.arange(start, end, step, dtype=float)
    if whole:
        found = np.unique(found.astype(int))
    expanded: list[Any] = found.tolist()
    return expanded


def _arange_without_numpy(start: Any, end: Any, step: Any, *, whole: bool) -> list[Any]:
    # numpy stores the first two values and extends by their difference, which is where its noise comes from.
    first = float(start)
    delta = float(start + step) - first
    found = [first + position * delta for position in range(math.ceil((end - start) / step))]
    return sorted({int(value) for value in found}) if whole else list(found)
