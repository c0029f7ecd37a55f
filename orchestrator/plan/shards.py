"""Rows into chunks, chunks to workers: large chunks first, single rows last, dealt in row order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from orchestrator.records.spool import Chunk

# A chunk is at most this part of what is left per worker, so that the last ones are single rows.
_PARTS = 4


def chunks(ranges: Sequence[Chunk], workers: int, largest: int | None = None) -> Iterator[Chunk]:
    """Cut ``ranges`` of rows into chunks of falling size; about ``4 * workers * ln(rows)`` of them for any number of rows.

    ``largest`` bounds a chunk's rows, where rows that wait may still be taken away.
    """
    left = sum(whole.size for whole in ranges)
    for whole in ranges:
        first = whole.first
        while first <= whole.last:
            size = max(1, left // (_PARTS * workers))
            size = min(size if largest is None else min(size, largest), whole.last - first + 1)
            yield Chunk(first, first + size - 1, whole.attempt)
            first += size
            left -= size


def deal(ranges: Sequence[Chunk], workers: int, largest: int | None = None) -> list[list[Chunk]]:
    """Give each worker its chunks, one after another in turn, so that rows are visited roughly in Talos's order."""
    hands: list[list[Chunk]] = [[] for _ in range(workers)]
    for number, chunk in enumerate(chunks(ranges, workers, largest)):
        hands[number % workers].append(chunk)
    return hands


def missing(rows: int, taken: Iterable[Chunk], attempts: Mapping[int, int]) -> list[Chunk]:
    """Give the rows of 0 to ``rows`` - 1 that are in no chunk of ``taken``, as few chunks as there can be.

    ``attempts`` names rows whose attempt is not the first; each is a chunk of its own.
    """
    alone = sorted(row for row in attempts if row < rows)
    found: list[Chunk] = []
    start = 0
    for chunk in (*sorted(taken), Chunk(rows, rows)):
        if start < chunk.first:
            found += _split(start, min(chunk.first, rows) - 1, alone, attempts)
        start = max(start, chunk.last + 1)
    return found


def _split(first: int, last: int, alone: Sequence[int], attempts: Mapping[int, int]) -> Iterator[Chunk]:
    for row in alone[bisect_left(alone, first) : bisect_right(alone, last)]:
        if first < row:
            yield Chunk(first, row - 1)
        yield Chunk(row, row, attempts[row])
        first = row + 1
    if first <= last:
        yield Chunk(first, last)


def take(ranges: Sequence[Chunk], rows: int) -> tuple[list[Chunk], list[Chunk]]:
    """Cut ``ranges`` after their first ``rows`` rows; both parts, either of which may be empty."""
    first: list[Chunk] = []
    rest: list[Chunk] = []
    for chunk in ranges:
        size = min(rows, chunk.size)
        rows -= size
        if size:
            first.append(Chunk(chunk.first, chunk.first + size - 1, chunk.attempt))
        if size < chunk.size:
            rest.append(Chunk(chunk.first + size, chunk.last, chunk.attempt))
    return first, rest


def halves(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """Cut a chunk of at least two rows into two."""
    middle = chunk.first + chunk.size // 2
    return Chunk(chunk.first, middle - 1, chunk.attempt), Chunk(middle, chunk.last, chunk.attempt)


def left_over(chunk: Chunk, recorded: Collection[int], *, tried: int | None) -> list[Chunk]:
    """Give what of a chunk is not recorded, as chunks; ``tried`` is the row that was running, whose attempt goes up.

    Costs the number of records, not the number of rows: a chunk may hold 10^17 of them.
    """
    gone = {row for row in recorded if chunk.first <= row <= chunk.last}
    rest = [] if tried is None or tried in gone else [Chunk(tried, tried, chunk.attempt + 1)]
    start = chunk.first
    for row in sorted(gone if tried is None else gone | {tried}):
        if start < row:
            rest.append(Chunk(start, row - 1, chunk.attempt))
        start = row + 1
    if start <= chunk.last:
        rest.append(Chunk(start, chunk.last, chunk.attempt))
    return sorted(rest)
