"""Is the coordinator still there? It touches a file; whoever waits for it looks whether that still happens."""

from __future__ import annotations

import os
import time

SILENCE = (
    600.0  # seconds of the steady clock: a stepped wall clock means nothing, a coordinator under Ctrl-Z is waited for
)


class Pulse:
    """Watches one file's modification time for change."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = -1.0
        self._since = time.monotonic()

    def stopped(self) -> bool:
        """Say whether the file has not been touched for ``SILENCE`` seconds of watching."""
        now = time.monotonic()
        try:
            seen = os.stat(self._path).st_mtime
        except OSError:
            seen = -2.0
        if seen != self._seen:
            self._seen, self._since = seen, now
        return now - self._since > SILENCE
