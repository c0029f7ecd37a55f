"""Values as tagged JSON, and the hashes that identify a combination and a trial.

The tags and hashes are those of Talos 2.0.10 (``_param_hash``, ``_trial_id``), so that a merged run directory
carries the ids that Talos itself would have written.
"""

from __future__ import annotations

import base64
import datetime as dt
import functools
import hashlib
import json
import math
from pathlib import Path
from typing import Any, Callable

from orchestrator.errors import ParamsValueError
from orchestrator.space.arrays import decode_numpy, encode_numpy
from orchestrator.space.callables import TAG, find, reference
from orchestrator.space.labels import label, printed

__all__ = [
    "RESERVED_KEYS",
    "canonical",
    "decode",
    "digest",
    "encode",
    "is_plain",
    "label",
    "param_hash",
    "trial_id",
]

RESERVED_KEYS = frozenset(
    {"_id", "_trial_id", "_param_hash", "_round_index", "_injected", "_generation_index", "_search_strategy"},
)
_NOT_ENCODED = object()


def is_plain(value: Any) -> bool:
    """Say whether JSON holds ``value`` exactly.

    That is None, bool, int, finite float, str, and lists and str-key dicts of those.
    Subclasses are not plain, nor is a dict that uses the tag key itself: they would not come back as they
    were.
    """
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return all(map(is_plain, value))
    if kind is dict:
        return TAG not in value and all(type(key) is str and is_plain(item) for key, item in value.items())
    return value is None or kind in (bool, int, str)


def encode(value: Any, *, by_name: bool = False) -> Any:
    """Return ``value`` as JSON, with what JSON cannot hold as a dict tagged ``__talos_type__``.

    ``by_name`` reduces every callable to its label, for a description that must not change when a
    function's source or state does. What Talos refuses (plain instances) becomes its class and its repr
    without addresses.
    """
    again = functools.partial(encode, by_name=by_name)
    if type(value).__module__.startswith("numpy"):
        tagged = encode_numpy(value, again)
        if tagged is not None:
            return tagged
    for attempt in (_encode_scalar, _encode_moment):
        found = attempt(value)
        if found is not _NOT_ENCODED:
            return found
    if callable(value):
        return {TAG: "name", "value": label(value)} if by_name else reference(value, again)
    if isinstance(value, Path):
        return {TAG: "path", "value": str(value)}
    return _encode_container(value, again)


def _encode_scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else {TAG: "float", "value": str(number)}
    if isinstance(value, complex):
        return {TAG: "complex", "real": _encode_scalar(value.real), "imag": _encode_scalar(value.imag)}
    if isinstance(value, bytes):
        return {TAG: "bytes", "value": base64.b64encode(value).decode("ascii")}
    return _NOT_ENCODED


def _encode_moment(value: Any) -> Any:
    if isinstance(value, (dt.date, dt.time)):  # a datetime is a date
        return {TAG: type(value).__name__, "value": value.isoformat()}
    if isinstance(value, dt.timedelta):
        return {
            TAG: "timedelta",
            "days": value.days,
            "seconds": value.seconds,
            "microseconds": value.microseconds,
        }
    return _NOT_ENCODED


def _encode_container(value: Any, again: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [again(item) for item in value]
    if isinstance(value, tuple):
        return {TAG: "tuple", "items": [again(item) for item in value]}
    if isinstance(value, dict):
        if TAG not in value and all(isinstance(key, str) for key in value):
            return {str.__str__(key): again(item) for key, item in value.items()}
        pairs = [[again(key), again(item)] for key, item in value.items()]
        return {TAG: "mapping", "items": sorted(pairs, key=lambda pair: _sort_key(pair[0]))}
    if isinstance(value, (set, frozenset)):
        kind = "set" if isinstance(value, set) else "frozenset"
        return {TAG: kind, "items": sorted((again(item) for item in value), key=_sort_key)}
    cls = type(value)
    return {TAG: "opaque", "module": cls.__module__, "qualname": cls.__qualname__, "repr": printed(value)}


def _sort_key(encoded: Any) -> str:
    return json.dumps(encoded, sort_keys=True)


def decode(record: Any) -> Any:
    """Return the value that ``encode`` wrote; ParamsValueError where only a description was kept."""
    if isinstance(record, list):
        return [decode(item) for item in record]
    if not isinstance(record, dict):
        return record
    if TAG not in record:
        return {key: decode(item) for key, item in record.items()}
    kind = record[TAG]
    if kind in ("ndarray", "numpy_scalar", "numpy_raw_scalar"):
        return decode_numpy(record, decode)
    if kind == "callable":
        return _decode_callable(record)
    if kind not in _DECODERS:
        what = record.get("qualname") or record.get("value") or kind
        raise ParamsValueError(
            f"recorded value {what!r} ({kind}) was kept as a description only: define it in an importable "
            "module, or build it from the script",
        )
    return _DECODERS[kind](record)


def _decode_callable(record: dict[str, Any]) -> Any:
    name = f"{record['module']}.{record['qualname']}"
    try:
        value = find(record["module"], record["qualname"])
    except (ImportError, AttributeError) as error:
        raise ParamsValueError(
            f"recorded value {name} cannot be imported here ({error}): install its module"
        ) from error
    expected = record.get("source_hash")
    if expected is not None and reference(value, encode).get("source_hash") != expected:
        raise ParamsValueError(f"recorded value {name}: its source is not the recorded one; restore that version")
    return value


def _decode_items(record: dict[str, Any]) -> list[Any]:
    return [decode(item) for item in record["items"]]


_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "float": lambda record: float(record["value"]),
    "complex": lambda record: complex(decode(record["real"]), decode(record["imag"])),
    "bytes": lambda record: base64.b64decode(record["value"]),
    "date": lambda record: dt.date.fromisoformat(record["value"]),
    "datetime": lambda record: dt.datetime.fromisoformat(record["value"]),
    "time": lambda record: dt.time.fromisoformat(record["value"]),
    "timedelta": lambda record: dt.timedelta(record["days"], record["seconds"], record["microseconds"]),
    "path": lambda record: Path(record["value"]),
    "tuple": lambda record: tuple(_decode_items(record)),
    "mapping": lambda record: dict(_decode_items(record)),
    "set": lambda record: set(_decode_items(record)),
    "frozenset": lambda record: frozenset(_decode_items(record)),
}


def canonical(encoded: Any) -> str:
    """Return the one JSON text of something encoded: keys sorted, no spaces, no NaN."""
    return json.dumps(encoded, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(encoded: Any) -> str:
    """Return the sha256, in hex, of the canonical text of something encoded."""
    return hashlib.sha256(canonical(encoded).encode()).hexdigest()


def param_hash(values: dict[str, Any]) -> str:
    """Return Talos's ``_param_hash``: 64 hex digits, independent of key order and of metadata keys."""
    return digest(encode({key: value for key, value in values.items() if key not in RESERVED_KEYS}))


def trial_id(param_hash: str, occurrence: int, shard_namespace: str | None = None) -> str:
    """Return Talos's ``_trial_id``: 64 hex digits from the combination's hash, its position and its shard."""
    named: dict[str, Any] = {"parameters": param_hash, "occurrence": occurrence}
    if shard_namespace is not None:
        named["shard_namespace"] = shard_namespace
    return digest(named)
