"""The text of a value, for tables and for messages."""

from __future__ import annotations

import functools
import re
from typing import Any

# An address names nothing outside the process that printed it.
_ADDRESS = re.compile(r"\s+at 0x[0-9A-Fa-f]+|(?<=[ <:=])0x[0-9A-Fa-f]{8,}")
_UNNAMED_MODULES = frozenset({None, "builtins", "__main__", "__mp_main__"})
_SHOWN_LENGTH = 60


def label(value: Any) -> str:
    """Return the text that stands for ``value`` in a table.

    Callables and classes are ``module.qualname``, without the module for builtins and for the script
    itself. A string is itself. Anything else is ``str(value)``, its elements labelled in turn for a list,
    tuple, dict or set. The same value gives the same text in every process: no address, and sets are
    sorted.
    """
    if isinstance(value, str):
        return str.__str__(value)
    return _text(value)


def without_address(text: str) -> str:
    """Return ``text`` without the memory addresses that a default ``repr`` prints."""
    return _ADDRESS.sub("", text)


def printed(value: Any) -> str:
    """Return ``repr(value)`` without addresses, or the type's name when ``repr`` itself fails."""
    try:
        return without_address(repr(value))
    except Exception:  # noqa: BLE001 - a user's __repr__ may raise anything, and only its text is lost
        return f"<{type(value).__module__}.{type(value).__qualname__} object>"


def shown(value: Any) -> str:
    """Return ``value`` as it is quoted in an error message: one line, at most 60 characters."""
    text = " ".join(_text(value).split())
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def _text(value: Any) -> str:
    if isinstance(value, str):
        return repr(str.__str__(value))
    if callable(value):
        return _callable_text(value)
    if type(value) is dict:
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(_text, value)) + (",)" if len(value) == 1 else ")")
    if type(value) in (set, frozenset):
        return _set_text(value)
    return _plain_text(value)


def _set_text(value: Any) -> str:
    items = "{" + ", ".join(sorted(map(_text, value))) + "}" if value else ""
    if type(value) is set:
        return items or "set()"
    return f"frozenset({items})"


def _plain_text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return repr(value)
    try:
        text = str(value)
    except Exception:  # noqa: BLE001 - as in printed()
        return printed(value)
    if type(value).__module__.split(".")[0] == "numpy":
        text = " ".join(text.split())
    return without_address(text)


def _callable_text(value: Any) -> str:
    if isinstance(value, functools.partial):
        words = [_text(value.func), *map(_text, value.args)]
        words += [f"{name}={_text(item)}" for name, item in value.keywords.items()]
        return f"functools.partial({', '.join(words)})"
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        return printed(value)
    module = getattr(value, "__module__", None)
    if module is None and type(value).__module__.split(".")[0] == "numpy":
        module = "numpy"
    return name if module in _UNNAMED_MODULES else f"{module}.{name}"
