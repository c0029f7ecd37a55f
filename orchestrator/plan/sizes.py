"""Sizes of memory, as people write them."""

from __future__ import annotations

import re

from orchestrator.errors import SettingsError

KIB, MIB, GIB = 1024, 1024**2, 1024**3
_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1024 * GIB}


def parse_size(text: str, name: str) -> int:
    """Read ``512m``, ``6g``, ``1.5GiB`` or plain bytes as a number of bytes; SettingsError names the option."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?\s*", text.lower())
    if match is None:
        raise SettingsError(f"{name} {text!r}: give a size such as 512m or 6g")
    return int(float(match.group(1)) * _UNITS[match.group(2)])


def show_size(size: float) -> str:
    """Write a number of bytes for people, in MiB or GiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
