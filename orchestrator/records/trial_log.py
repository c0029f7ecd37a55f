"""``trials.jsonl``: one line per finished trial, appended and fsynced; read as far as it has grown.

A torn last line (the writer was killed in the middle) is forgiven by readers and cut off by the next writer. Any
other damage is a RecordError that names file and line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from orchestrator.errors import RecordError
from orchestrator.records.atomic import open_plain
from orchestrator.schema import COMPLETED, TrialRecord

_BLOCK = 1 << 20
LONGEST_LINE = 256 * 1024 * 1024


class TrialLog:
    """The writing side; one per worker, used by its supervisor alone."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        self._cut_torn_line()
        os.lseek(self._descriptor, 0, os.SEEK_END)

    def _cut_torn_line(self) -> None:
        end = os.fstat(self._descriptor).st_size
        position = end
        while position > 0:
            start = max(0, position - _BLOCK)
            block = os.pread(self._descriptor, position - start, start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position < end:
            os.ftruncate(self._descriptor, position)

    def append(self, record: TrialRecord) -> None:
        """Write one line and wait until it is on disk; OSError when it cannot be (disk full), with nothing half kept."""
        text = json.dumps(record.to_json(), ensure_ascii=False, separators=(",", ":")) + "\n"
        line = text.encode("utf-8", "backslashreplace")  # a lone surrogate, as its JSON escape
        before = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, before)
            os.lseek(self._descriptor, before, os.SEEK_SET)
            raise

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)


class TrialTail:
    """The reading side: each ``read`` yields the records written since the one before."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset = 0
        self._line = 0
        self._size = -1

    def read(self) -> Iterator[TrialRecord]:
        """Yield new whole lines as records; a torn last line stays for the next call."""
        try:
            size = os.lstat(self.path).st_size
        except FileNotFoundError:
            return
        if size == self._size:
            return
        if size < self._offset:
            raise RecordError(f"{self.path}: became shorter than what was already read; do not edit it by hand")
        self._size = size
        with open_plain(self.path) as stream:
            stream.seek(self._offset)
            for line in iter(lambda: stream.readline(LONGEST_LINE), b""):
                if not line.endswith(b"\n"):
                    self._size = -1
                    if len(line) >= LONGEST_LINE:
                        raise RecordError(f"{self.path}:{self._line + 1}: longer than {LONGEST_LINE} bytes")
                    return
                self._line += 1
                self._offset += len(line)
                yield self._parse(line)

    def _parse(self, line: bytes) -> TrialRecord:
        where = f"{self.path}:{self._line}"
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{where}: damaged ({error}); restore the file or remove this line") from error
        return TrialRecord.from_json(data, where)


def outranks(new: TrialRecord, old: TrialRecord) -> bool:
    """Say whether ``new`` is the record that counts for their row: a completed one, or else the later attempt."""
    if (new.status == COMPLETED) != (old.status == COMPLETED):
        return new.status == COMPLETED
    return new.attempt > old.attempt


def read_log(path: str) -> list[TrialRecord]:
    """Read a whole log; [] when there is none."""
    return list(TrialTail(path).read())
