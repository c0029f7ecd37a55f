"""What the engine's word about an ended container means."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.base import Ended

_NOT_RUNNABLE = (126, 127)  # what init says of a program that is not there


def cause_of(ended: Ended) -> tuple[str, str]:
    """Name why a worker's container ended, as (cause, sentence), by the engine's word and its exit code."""
    if ended.oom:
        return "host-oom", "its container ran out of memory: give more with --memory"
    if ended.error:
        return "unknown", ended.error
    if ended.exit_code > 128:
        return "signal", f"its container was killed (signal {ended.exit_code - 128})"
    return "unknown", f"its container ended with exit status {ended.exit_code}"


def without_word(ended: list[Ended], image: str | None, stages: int) -> dict[str, Any]:
    """Give the last word that a driver left unsaid: it was killed, or never ran."""
    code = next(each.exit_code for each in ended if each.member == "driver")
    text = f"the driver ended with exit status {code} and without a word"
    if code in _NOT_RUNNABLE and image:
        text = f"python3 cannot be run in {image}: give an --image with Python 3.9 or newer"
    return {"kind": "died", "message": text, "scans": stages}
