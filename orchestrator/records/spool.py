"""The queue: a folder of small files, one per chunk of rows, moved by rename.

A chunk's name is its rows and its attempt, ``00000000000000000012-00000000000000000019.1``. ``rename`` is atomic, so
of two sides that reach for a chunk exactly one gets it and the other sees ENOENT and looks again. ``ls`` shows the state.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from typing import Optional

_NAME = re.compile(r"(\d{20,})-(\d{20,})\.(\d+)$")


@dataclass(frozen=True, order=True)
class Chunk:
    """Rows ``first`` to ``last``, both included; ``attempt`` counts from 1."""

    first: int
    last: int
    attempt: int = 1

    @property
    def name(self) -> str:
        """The file's name; sorts by first row."""
        return f"{self.first:020d}-{self.last:020d}.{self.attempt}"

    @property
    def size(self) -> int:
        """How many rows."""
        return self.last - self.first + 1

    @classmethod
    def parse(cls, name: str) -> Optional[Chunk]:
        """Read a file name; None when it is not a chunk's (user code may write anything)."""
        match = _NAME.match(name)
        if match is None:
            return None
        chunk = cls(int(match.group(1)), int(match.group(2)), int(match.group(3)))
        return chunk if chunk.first <= chunk.last and chunk.name == name else None


def waiting(folder: str) -> list[Chunk]:
    """List the chunks in a folder in row order; [] when there is no such folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(chunk for chunk in map(Chunk.parse, names) if chunk is not None)


def put(folder: str, chunk: Chunk) -> None:
    """Add a chunk; whole at once, since its name is all it says. Adding it twice is the same as once."""
    os.makedirs(folder, exist_ok=True)
    os.close(os.open(os.path.join(folder, chunk.name), os.O_CREAT | os.O_WRONLY, 0o644))


def move(source: str, target: str, chunk: Chunk) -> bool:
    """Rename a chunk from one folder to another; False when somebody else was first."""
    try:
        os.rename(os.path.join(source, chunk.name), os.path.join(target, chunk.name))
    except FileNotFoundError:
        if not os.path.isdir(target):
            os.makedirs(target, exist_ok=True)
            return move(source, target, chunk)
        return False
    return True


def claim(queue: str, active: str) -> Optional[Chunk]:
    """Take the chunk with the lowest rows from ``queue`` into ``active``; None when the queue is empty."""
    while True:
        chunks = waiting(queue)
        if not chunks:
            return None
        for chunk in chunks:
            if move(queue, active, chunk):
                return chunk


def finish(active: str, chunk: Chunk) -> None:
    """Drop a chunk all of whose rows are recorded."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(active, chunk.name))
