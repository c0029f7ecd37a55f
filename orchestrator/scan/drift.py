"""Does a trial leave something behind that the next one sees? Then results depend on which rows share a worker."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import types
from typing import Any

_LARGEST = 20_000  # characters of a value's text that are looked at
_SAMPLE = 1 << 16  # bytes of an array
_HOLDERS = (types.SimpleNamespace, argparse.Namespace)
_PLAIN = (bool, int, float, str, list, dict, set, tuple)


class Drift:
    """Compares the script's own globals and the data before and after trials; looks at the first few only."""

    def __init__(self, data: tuple[Any, ...], looks: int = 3) -> None:
        self._data = data
        self._left = looks
        self._before: dict[str, str] = {}
        self._modules = _own_modules()

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
        for module in self._modules:
            for name, value in list(vars(module).items()):
                text = None if name.startswith("__") else _text_of(value, self._modules)
                if text is not None:
                    place = "" if module.__name__ == "__main__" else f"{module.__name__}."
                    state[f"the global {place}{name}"] = text
        for name, value in zip(("x", "y", "x_val", "y_val"), self._data):
            state[f"its data {name!r}"] = fingerprint(value)
        return state


def _own_modules() -> list[types.ModuleType]:
    """List the script and the modules that lie beside it or below: what its author wrote."""
    main = sys.modules["__main__"]
    folder = os.path.dirname(os.path.abspath(getattr(main, "__file__", None) or "x"))
    own = [main]
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if (
            module is not main
            and path
            and os.path.isabs(path)  # some modules have a file in name only, as torch.ops has "_ops.py"
            and path.startswith(folder + os.sep)
            and "site-packages" not in path
        ):
            own.append(module)
    return own


def _text_of(value: Any, modules: list[types.ModuleType]) -> str | None:
    """Give a value's content as text if it is plain, or a holder of settings; None for all else."""
    if isinstance(value, (types.ModuleType, types.FunctionType)):
        return None
    if isinstance(value, _PLAIN):
        content: Any = value
    else:
        own = value if isinstance(value, type) else type(value)
        ours = own in _HOLDERS or any(own.__module__ == module.__name__ for module in modules)
        if not ours or not hasattr(value, "__dict__"):
            return None
        content = {name: item for name, item in vars(value).items() if not name.startswith("__")}
    try:
        return repr(content) if _weight(content, _LARGEST) <= _LARGEST else None
    except Exception:  # noqa: BLE001 - an object of the user's that cannot be written down is not compared
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
