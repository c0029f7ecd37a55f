"""How many rows a scan asks for, by Talos's rules."""

from __future__ import annotations

import datetime as dt
import math
import operator
import warnings
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Callable, Optional

from orchestrator.errors import EmptySpaceError, ParamsTypeError, ParamsValueError
from orchestrator.space.labels import shown
from orchestrator.space.sampling import LOCAL_METHODS, check_method, check_total

MOST_LISTED = 10**7
TIME_FORMAT = "%Y-%m-%d %H:%M"

BooleanLimit = Callable[["dict[str, Any]"], Any]


@dataclass(frozen=True)
class Limits:
    """What narrows a grid; the names and meanings of Talos's arguments."""

    random_method: str = "uniform_mersenne"
    fraction_limit: Optional[float] = None
    round_limit: Optional[float] = None
    boolean_limit: Optional[BooleanLimit] = None
    seed: Optional[int] = None

    def rows_of(self, total: int) -> int | None:
        """Return how many of ``total`` rows are sampled, or None for the whole grid in grid order.

        A float is a fraction and an integer a count for both limits; ``fraction_limit`` beats
        ``round_limit``; more than there are is all of them. ParamsValueError below one row.
        """
        name = "round_limit" if self.fraction_limit is None else "fraction_limit"
        limit = getattr(self, name)
        if limit is None:
            return None
        if not isinstance(limit, Real):
            raise ParamsTypeError(f"{name}={shown(limit)}: give a count of rows like 10, or a fraction like 0.1")
        if not math.isfinite(limit):
            raise ParamsValueError(f"{name}={limit}: give a count like 10 or a fraction like 0.1")
        count = int(limit) if isinstance(limit, Integral) else _share(total, limit)
        if count < 1:
            raise EmptySpaceError(
                f"{name}={limit} of a space of {total} rows leaves fewer than 1 row: give a count from 1 to "
                f"{total}, or a larger fraction",
            )
        return min(count, total)

    def check(self, total: int) -> None:
        """Raise ParamsTypeError or ParamsValueError for what cannot be drawn from a grid of ``total`` rows.

        Warns once where ``fraction_limit`` is the integer 1, which is one row.
        """
        if self.fraction_limit is not None or self.round_limit is not None:
            check_method(self.random_method)
        elif self.random_method not in LOCAL_METHODS:
            warnings.warn(f"random_method={shown(self.random_method)} is not used: every row is visited", stacklevel=3)
        if self.boolean_limit is not None and not callable(self.boolean_limit):
            raise ParamsTypeError(
                f"boolean_limit={shown(self.boolean_limit)}: give a function of the parameter dict that "
                "returns True for the rows to keep",
            )
        count = self.rows_of(total)
        if count is not None and (count < total or total <= MOST_LISTED):
            check_total(self.random_method, total)
            _check_listed(count, total)
        if self.boolean_limit is not None and count in (None, total) and total > MOST_LISTED:
            raise ParamsValueError(
                f"boolean_limit has to visit each of the {total} rows of the space, more than {MOST_LISTED}: "
                "add round_limit to sample rows first",
            )
        if isinstance(self.fraction_limit, Integral) and self.fraction_limit == 1:
            warnings.warn("fraction_limit=1 is a count, one row; 1.0 means all rows", stacklevel=3)


def _share(total: int, limit: Any) -> int:
    if limit >= 1:  # the product would round beyond 2**53
        return total
    try:
        return int(total * float(limit))
    except OverflowError:
        return int(total * Fraction(float(limit)))


def _check_listed(count: int, total: int) -> None:
    if count > MOST_LISTED:
        raise ParamsValueError(
            f"the limit leaves {count} of {total} rows and at most {MOST_LISTED} can be sampled: lower it, "
            "or give none to visit every row",
        )


def seed_of(seed: Any) -> int | None:
    """Return ``seed`` as a Python int, or None; ParamsTypeError for anything that is no integer."""
    if seed is None:
        return None
    if not isinstance(seed, Integral):
        raise ParamsTypeError(f"seed={shown(seed)}: give an integer, or None for another draw in every run")
    return operator.index(seed)


def check_time_limit(time_limit: Any) -> None:
    """Raise ParamsValueError unless ``time_limit`` is None or a text like ``2030-01-31 18:00``."""
    try:
        if time_limit is not None:
            dt.datetime.strptime(time_limit, TIME_FORMAT)  # noqa: DTZ007 - local time, as in Talos
    except (TypeError, ValueError) as error:
        raise ParamsValueError(
            f"time_limit={shown(time_limit)}: give a local date and time like '2030-01-31 18:00'",
        ) from error
