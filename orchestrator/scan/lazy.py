"""A list whose items are made when they are first looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

_UNMADE = object()


class LazyList(list):  # type: ignore[type-arg]  # it holds anything, as the lists of Talos do
    """A list of ``length`` items, each made by ``make(position)`` at first sight and kept then, as any list keeps its items.

    Everything that looks at items makes them first; so does whatever moves them.
    """

    def __init__(self, length: int, make: Callable[[int], Any]) -> None:
        super().__init__([_UNMADE] * length)
        self._make = make

    def _made(self, position: int) -> Any:
        item = list.__getitem__(self, position)
        if item is _UNMADE:
            item = self._make(position)
            list.__setitem__(self, position, item)
        return item

    def _all(self) -> list[Any]:
        return [self._made(position) for position in range(len(self))]

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self._made(each) for each in range(*position.indices(len(self)))]
        place = position.__index__()
        if not -len(self) <= place < len(self):
            raise IndexError(f"row {place} of {len(self)}")
        return self._made(place % len(self))

    def __iter__(self) -> Iterator[Any]:
        return (self._made(position) for position in range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return (self._made(position) for position in reversed(range(len(self))))

    def __contains__(self, item: object) -> bool:
        return any(item is each or item == each for each in self)

    def __add__(self, other: Any) -> Any:
        return self._all() + list(other)

    def __radd__(self, other: Any) -> Any:
        return list(other) + self._all()

    def __mul__(self, times: Any) -> Any:
        return self._all() * times

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and self._all() == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        made = [list.__getitem__(self, position) for position in range(len(self))]
        return "[" + ", ".join("<not loaded yet>" if item is _UNMADE else repr(item) for item in made) + "]"

    def __reduce__(self) -> Any:
        return (list, (self._all(),))

    def copy(self) -> list[Any]:
        """Give a plain list of all items."""
        return self._all()

    def _settle(self) -> None:
        self._all()

    def insert(self, position: Any, item: Any) -> None:
        """Insert, after every item has been made: positions are what they are made by."""
        self._settle()
        super().insert(position, item)

    def pop(self, position: Any = -1) -> Any:
        """Take an item out, after every item has been made."""
        self._settle()
        return super().pop(position)

    def remove(self, item: Any) -> None:
        """Remove an item, after every item has been made."""
        self._settle()
        super().remove(item)

    def index(self, item: Any, *where: Any) -> int:
        """Find an item."""
        return self._all().index(item, *where)

    def count(self, item: Any) -> int:
        """Count an item."""
        return self._all().count(item)

    def reverse(self) -> None:
        """Reverse, after every item has been made."""
        self._settle()
        super().reverse()

    def sort(self, **how: Any) -> None:
        """Sort, after every item has been made."""
        self._settle()
        super().sort(**how)

    def __delitem__(self, position: Any) -> None:
        self._settle()
        super().__delitem__(position)
