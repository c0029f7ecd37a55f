"""Rows into chunks, chunks to workers: large chunks first, single rows last, dealt in row order."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from orchestrator.records.spool import Chunk

# A chunk is at most this part of what is left per worker, so that the last ones are single rows.
_PARTS = 4


def chunks(rows: int, workers: int, largest: int | None = None) -> Iterator[Chunk]:
    """Cut rows 0 to ``rows`` - 1 into chunks of falling size; about ``4 * workers * ln(rows)`` of them for any number.

    ``largest`` bounds a chunk's rows, where rows that wait may still be taken away.
    """
    first = 0
    while first < rows:
        size = max(1, (rows - first) // (_PARTS * workers))
        size = size if largest is None else min(size, largest)
        yield Chunk(first, first + size - 1)
        first += size


def deal(rows: int, workers: int, largest: int | None = None) -> list[list[Chunk]]:
    """Give each worker its chunks, one after another in turn, so that rows are visited roughly in Talos's order."""
    hands: list[list[Chunk]] = [[] for _ in range(workers)]
    for number, chunk in enumerate(chunks(rows, workers, largest)):
        hands[number % workers].append(chunk)
    return hands


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
