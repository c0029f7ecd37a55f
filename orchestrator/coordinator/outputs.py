"""The script's own output, passed on as it grows."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from orchestrator.coordinator.events import Output
from orchestrator.errors import RecordError
from orchestrator.records.atomic import open_plain
from orchestrator.records.layout import RunDir

_BLOCK = 1 << 16


class Follower:
    """Reads a growing text file from where it stopped; bytes that are not UTF-8 are replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> str:
        """Give what is new."""
        try:
            with open_plain(self._path) as stream:
                stream.seek(self._offset)
                data = stream.read(_BLOCK)
        except (OSError, RecordError):
            return ""
        self._offset += len(data)
        return self._decoder.decode(data)


class ScriptOutput:
    """Both streams of the driver's script."""

    def __init__(self, driver: RunDir) -> None:
        self._streams = {"out": Follower(driver.out), "err": Follower(driver.err)}

    def read(self) -> Iterator[Output]:
        """Yield what was written since the last look."""
        for name, follower in self._streams.items():
            while text := follower.read():
                yield Output(stream=name, text=text)
