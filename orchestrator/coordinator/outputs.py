"""The script's own output, passed on as it grows."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

from orchestrator.coordinator.events import Output
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
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        with os.fdopen(descriptor, "rb") as stream:
            stream.seek(self._offset)
            data = stream.read(_BLOCK)
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
