"""Rows into chunks, chunks to workers: large chunks first, single rows last, dealt in row order."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.records.spool import Chunk

# A chunk is at most this part of what is left per worker, so that the last ones are single rows.
_PARTS = 4


def chunks(rows: int, workers: int) -> Iterator[Chunk]:
    """Cut rows 0 to ``rows`` - 1 into chunks of falling size; about ``4 * workers * ln(rows)`` of them for any number."""
    first = 0
    while first < rows:
        size = max(1, (rows - first) // (_PARTS * workers))
        yield Chunk(first, first + size - 1)
        first += size


def deal(rows: int, workers: int) -> list[list[Chunk]]:
    """Give each worker its chunks, one after another in turn, so that rows are visited roughly in Talos's order."""
    hands: list[list[Chunk]] = [[] for _ in range(workers)]
    for number, chunk in enumerate(chunks(rows, workers)):
        hands[number % workers].append(chunk)
    return hands


def halves(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """Cut a chunk of at least two rows into two."""
    middle = chunk.first + chunk.size // 2
    return Chunk(chunk.first, middle - 1, chunk.attempt), Chunk(middle, chunk.last, chunk.attempt)


def left_over(chunk: Chunk, recorded: frozenset[int], *, tried: int | None) -> list[Chunk]:
    """Give what of a chunk is not recorded, as chunks; ``tried`` is the row that was running, whose attempt goes up."""
    rest: list[Chunk] = []
    start = chunk.first
    # From gap to gap: a chunk may hold far more rows than were ever run.
    for row in sorted(recorded if tried is None else recorded | {tried}):
        if start <= row <= chunk.last:
            if start < row:
                rest.append(Chunk(start, row - 1, chunk.attempt))
            start = row + 1
    if start <= chunk.last:
        rest.append(Chunk(start, chunk.last, chunk.attempt))
    if tried is not None and tried not in recorded:
        rest.append(Chunk(tried, tried, chunk.attempt + 1))
    return sorted(rest)
