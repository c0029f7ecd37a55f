"""Numpy arrays and scalars as tagged JSON, tagged as in Talos 2.0.10; imports numpy only on meeting one."""

from __future__ import annotations

from typing import Any, Callable

from orchestrator.errors import ParamsValueError
from orchestrator.space.callables import TAG


def encode_numpy(value: Any, encode: Callable[[Any], Any]) -> dict[str, Any] | None:
    """Return the tagged form of a numpy array or scalar, or None when ``value`` is neither."""
    import numpy as np

    if isinstance(value, np.ndarray):
        items = encode(list(value.flat))
        return {
            TAG: "ndarray",
            "dtype": _dtype_json(value.dtype, encode),
            "shape": list(value.shape),
            "items": items,
        }
    if not isinstance(value, np.generic):
        return None
    found = {
        TAG: "numpy_scalar",
        "dtype": _dtype_json(value.dtype, encode),
        "scalar_class": type(value).__name__,
    }
    native = value.item()
    if isinstance(native, np.generic):  # no Python type can hold it: long double, some datetimes
        return {**found, TAG: "numpy_raw_scalar", "bytes": value.tobytes().hex()}
    return {**found, "value": encode(native)}


def decode_numpy(record: dict[str, Any], decode: Callable[[Any], Any]) -> Any:
    """Return the array or scalar that ``encode_numpy`` tagged, with its dtype and scalar class."""
    import numpy as np

    described = record["dtype"]
    dtype = np.dtype(decode(described["fields"]) if isinstance(described, dict) else described)
    if record[TAG] == "ndarray":
        array = np.empty(record["shape"], dtype=dtype)
        for position, item in enumerate(decode(record["items"])):
            array.flat[position] = item
        return array
    if record[TAG] == "numpy_raw_scalar":
        scalar = np.frombuffer(bytes.fromhex(record["bytes"]), dtype=dtype)[0]
    else:
        scalar = np.array(decode(record["value"]), dtype=dtype)[()]
    name = record.get("scalar_class")
    if name in (None, type(scalar).__name__):
        return scalar
    scalar_class = getattr(np, name, None)
    if not (isinstance(scalar_class, type) and issubclass(scalar_class, np.generic)):
        raise ParamsValueError(f"recorded value of numpy class {name!r}: this numpy has no such scalar class")
    return scalar_class(scalar)


def _dtype_json(dtype: Any, encode: Callable[[Any], Any]) -> Any:
    return {"fields": encode(dtype.descr)} if dtype.fields else str(dtype)
