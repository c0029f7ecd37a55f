"""Does a trial leave something behind that the next one sees? Then results depend on which rows share a worker."""

from __future__ import annotations

import hashlib
import sys
import types
from typing import Any

_LARGEST = 20_000  # characters of a value's text that are looked at
_SAMPLE = 1 << 16  # bytes of an array
_PLAIN = (bool, int, float, str, list, dict, set, tuple)


class Drift:
    """Compares the script's own globals and the data before and after trials; looks at the first few only."""

    def __init__(self, data: tuple[Any, ...], looks: int = 3) -> None:
        self._data = data
        self._left = looks
        self._before: dict[str, str] = {}

    def before(self) -> None:
        """Take note, before a trial."""
        if self._left > 0:
            self._before = self._state()

    def after(self) -> str | None:
        """Say what the trial changed, in one line, the first time that it changed something; None otherwise."""
        if self._left <= 0:
            return None
        self._left -= 1
        now = self._state()
        changed = [name for name, text in self._before.items() if now.get(name, text) != text]
        if not changed:
            return None
        self._left = 0
        return (
            f"the model changes {', '.join(changed[:3])}, which later rows of the same worker see: "
            "results then depend on how rows are spread; make a copy in the model"
        )

    def _state(self) -> dict[str, str]:
        state = {}
        for name, value in list(vars(sys.modules["__main__"]).items()):
            text = None if name.startswith("__") else _text_of(value)
            if text is not None:
                state[f"the global {name!r}"] = text
        for name, value in zip(("x", "y", "x_val", "y_val"), self._data):
            state[f"its data {name!r}"] = fingerprint(value)
        return state


def _text_of(value: Any) -> str | None:
    """Give a value's content as text if it is plain, or an object of the script's own class; None for all else."""
    if isinstance(value, (types.ModuleType, types.FunctionType)):
        return None
    own = value if isinstance(value, type) else type(value)
    if isinstance(value, _PLAIN) or (own.__module__ == "__main__" and hasattr(value, "__dict__")):
        content = (
            value if isinstance(value, _PLAIN) else {k: v for k, v in vars(value).items() if not k.startswith("__")}
        )
        return repr(content) if _weight(content, _LARGEST) <= _LARGEST else None
    return None


def _weight(value: Any, most: int) -> int:
    """Estimate the characters of a value's text, giving up beyond ``most``: writing out 60 MB to compare it costs them."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, dict):
        parts: Any = [*value.keys(), *value.values()] if len(value) <= most else None
    elif isinstance(value, (list, tuple, set)):
        parts = value if len(value) <= most else None
    else:
        return 20
    if parts is None:
        return most + 1
    total = 2
    for part in parts:
        total += _weight(part, most - total)
        if total > most:
            return total
    return total


def fingerprint(value: Any) -> str:
    """Give a hash over shape, type and a sample of the bytes of arrays; over the type alone of anything else."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, (list, tuple)):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value[:100]:
            _feed(digest, item)
        return
    values: Any = getattr(value, "values", None)
    array: Any = values if hasattr(values, "dtype") else value  # a DataFrame or Series
    digest.update(f"{type(value).__name__}{getattr(array, 'shape', '')}{getattr(array, 'dtype', '')}".encode())
    if hasattr(array, "dtype") and hasattr(array, "ravel") and not getattr(array.dtype, "hasobject", True):
        flat = array.ravel()
        step = max(1, len(flat) * getattr(array, "itemsize", 1) // _SAMPLE)
        digest.update(flat[::step].tobytes())
    elif isinstance(value, (bool, int, float, str)):
        digest.update(repr(value).encode("utf-8", "replace"))
