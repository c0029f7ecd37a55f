"""Encoded parameter values as they stand in a table: plain values as they are, everything else as text without addresses."""

from __future__ import annotations

import base64
import datetime
import math
import struct
from typing import Any

from orchestrator.schema import TrialRecord
from orchestrator.space import TAG

_FORMS = {"float32": "f", "f4": "f", "float16": "e", "f2": "e"}


def record_values(record: TrialRecord) -> dict[str, Any]:
    """Give a record's parameters as table cells (those after the model changed them, if it did)."""
    params = record.changed_params if record.changed_params is not None else record.params
    return {key: cell(value) for key, value in params.items()}


def cell(value: Any) -> Any:
    """Give one encoded value as a table cell; nothing is imported or called for it."""
    if isinstance(value, dict) and TAG in value:
        return _tagged(value)
    if isinstance(value, (list, dict)):
        return _text(value)
    return value


def _tagged(value: dict[str, Any]) -> Any:
    kind = value[TAG]
    if kind == "float":
        return float(value["value"])
    if kind == "numpy_scalar":
        return _shortest(cell(value["value"]), str(value.get("dtype")))
    return _text(value)


def _shortest(value: Any, dtype: str) -> Any:
    """Write a number of lower precision with the digits that it has: 0.001, not 0.0010000000474974513."""
    form = _FORMS.get(dtype.lstrip("<>=|"))
    if form is None or not isinstance(value, float) or value in (float("inf"), float("-inf")) or math.isnan(value):
        return value
    bits = struct.pack(form, value)
    return next(
        float(text)
        for text in (f"{value:.{digits}g}" for digits in range(1, 18))
        if struct.pack(form, float(text)) == bits
    )


def _tagged_or_plain(value: Any) -> float:
    return float(_tagged(value) if isinstance(value, dict) else value)


def _text(value: Any) -> str:
    """Write a value as Python would, callables by qualified name."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if not isinstance(value, dict):
        return repr(value)
    kind = value.get(TAG)
    if kind is None:
        return "{" + ", ".join(f"{key!r}: {_text(item)}" for key, item in value.items()) + "}"
    if kind in ("callable", "nonportable_callable"):
        module = value.get("module")
        name = str(value.get("qualname"))
        return name if module in (None, "builtins", "__main__") else f"{module}.{name}"
    if kind in ("float", "numpy_scalar"):
        return str(_tagged(value))
    if kind == "complex":
        return str(complex(_tagged_or_plain(value["real"]), _tagged_or_plain(value["imag"])))
    if kind == "timedelta":
        return str(datetime.timedelta(value["days"], value["seconds"], value["microseconds"]))
    if kind == "bytes":
        return repr(base64.b64decode(value["value"]))
    items = value.get("items")
    if kind == "tuple" and isinstance(items, list):
        return "(" + ", ".join(map(_text, items)) + (",)" if len(items) == 1 else ")")
    if kind in ("set", "frozenset") and isinstance(items, list):
        return "{" + ", ".join(map(_text, items)) + "}" if items else "set()"
    if kind == "ndarray":
        return _text(items)
    if kind == "mapping" and isinstance(items, list):
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in items) + "}"
    return str(value.get("repr") or value.get("value") or kind)
