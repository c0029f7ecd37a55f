"""Requests to stop: from the terminal (a signal) or from another command (a file in the sweep's folder)."""

from __future__ import annotations

from orchestrator.errors import RecordError
from orchestrator.records.atomic import read_json

DRAIN, KILL = 1, 2


class StopSwitch:
    """``press`` once: rows in hand finish and the rest is left. Twice: everything ends now.

    While it is not ``armed`` there is nothing to drain yet, and a press is a KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.level = 0
        self.armed = True

    def press(self) -> None:
        """Go one level up."""
        if not self.armed:
            raise KeyboardInterrupt
        self.level = min(KILL, self.level + 1)

    def read_request(self, path: str) -> None:
        """Take over a request that ``talos-orch stop`` left, if there is one."""
        try:
            request = read_json(path)
        except (FileNotFoundError, OSError, RecordError):
            return
        now = isinstance(request, dict) and bool(request.get("now"))
        self.level = max(self.level, KILL if now else DRAIN)
