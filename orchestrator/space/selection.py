"""Which combinations of a grid a scan visits, and in which order."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from orchestrator.errors import ParamsValueError
from orchestrator.space.limits import MOST_LISTED, BooleanLimit, Limits, seed_of
from orchestrator.space.permutation import Permutation
from orchestrator.space.sampling import sample

if TYPE_CHECKING:
    from orchestrator.space.domain import Domain


@dataclass(frozen=True)
class Selection:
    """The grid index of each row position, in visit order.

    ``indices`` is a range for the whole grid, a tuple of listed rows, or a lazily computed shard. ``size``
    is exact; ``len()`` raises OverflowError beyond ``sys.maxsize``, as Python's own ``len`` does.
    """

    indices: Sequence[int]

    @property
    def size(self) -> int:
        """The exact number of rows."""
        if isinstance(self.indices, range):
            return self.indices.stop
        return self.indices.size if isinstance(self.indices, DealtRows) else len(self.indices)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return self.size > 0

    def __getitem__(self, position: int) -> int:
        """Return the grid index of the row at ``position``; IndexError outside the selection."""
        return self.indices[position]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"kind": "all", "total": n}``, ``{"kind": "list", "indices": [...]}`` or a dealt shard."""
        if isinstance(self.indices, range):
            return {"kind": "all", "total": self.size}
        if isinstance(self.indices, DealtRows):
            return self.indices.to_json()
        return {"kind": "list", "indices": list(self.indices)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Selection:
        """Read what ``to_json`` wrote; ParamsValueError for another kind."""
        if record["kind"] == "all":
            return cls(range(record["total"]))
        if record["kind"] == "list":
            return cls(tuple(record["indices"]))
        if record["kind"] == "shard":
            return cls(DealtRows(cls.from_json(record["of"]), record["key"], record["start"], record["size"]))
        raise ParamsValueError(f"selection of kind {record['kind']!r}: this version reads 'all', 'list' and 'shard'")


@dataclass(frozen=True)
class DealtRows(Sequence[int]):
    """A run of ``size`` rows, from ``start``, of the seeded permutation of another selection's rows."""

    of: Selection
    key: str
    start: int
    size: int

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[int]: ...
    def __getitem__(self, position: int | slice) -> int | Sequence[int]:
        chosen = range(self.size)[position]
        permuted = Permutation(self.of.size, self.key)
        if isinstance(chosen, range):
            return tuple(self.of[permuted(self.start + each)] for each in chosen)
        return self.of[permuted(self.start + chosen)]

    def to_json(self) -> dict[str, Any]:
        """Return the record that ``Selection.from_json`` reads."""
        return {
            "kind": "shard",
            "of": self.of.to_json(),
            "key": self.key,
            "start": self.start,
            "size": self.size,
        }


def select(
    domain: Domain,
    *,
    random_method: str = "uniform_mersenne",
    fraction_limit: float | None = None,
    round_limit: float | None = None,
    boolean_limit: BooleanLimit | None = None,
    seed: int | None = None,
) -> Selection:
    """Return the rows of ``domain`` that Talos 2.0.10 visits under these limits, in its order.

    A float limit is a fraction and an integer a count; ``fraction_limit`` beats ``round_limit``;
    ``boolean_limit`` filters what was sampled. Beyond 10**7 rows a limit that keeps every row keeps grid
    order. ParamsTypeError or ParamsValueError for an unknown method, a malformed limit, or a limit that
    leaves no row.
    """
    limits = Limits(random_method, fraction_limit, round_limit, boolean_limit, seed_of(seed))
    limits.check(domain.total)
    return draw(domain, limits)


def draw(domain: Domain, limits: Limits) -> Selection:
    """Return the rows that checked ``limits`` leave of ``domain``."""
    total = domain.total
    count = limits.rows_of(total)
    indices: Sequence[int] = range(total)
    if count is not None and (count < total or total <= MOST_LISTED):
        indices = sample(limits.random_method, total, count, limits.seed)
    keep = limits.boolean_limit
    if keep is None:
        return Selection(indices)
    kept = tuple(index for index in indices if keep(domain.at(index)))
    if not kept:
        sampled = total if count is None else count
        warnings.warn(
            f"boolean_limit keeps none of the {sampled} rows taken from a space of {total} rows: nothing runs",
            stacklevel=3,
        )
    whole = isinstance(indices, range) and len(kept) == total
    return Selection(indices if whole else kept)


def position_in(size: int, position: int) -> int:
    """Return ``position`` counted from the start, a negative one from the end; else IndexError."""
    place = operator.index(position)
    place = place + size if place < 0 else place
    if not 0 <= place < size:
        raise IndexError(f"row {position} is outside {size} rows")
    return place
