"""From what a user wrote for a parameter to its list of candidates."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.errors import ParamsTypeError, ParamsValueError
from orchestrator.space.identity import RESERVED_KEYS
from orchestrator.space.labels import shown
from orchestrator.space.ranges import RANGE_FORM, expand_range

FORMS = f"a list of alternatives like [1, 2], or {RANGE_FORM}"


def chosen_keys(params: Any, param_keys: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the parameters to sweep, in order: all of ``params``, or those in ``param_keys``.

    ParamsTypeError or ParamsValueError when ``params`` is no dict, has nothing to sweep, has a name that is
    not a string or that Talos keeps for itself, or when ``param_keys`` names an unknown or repeated
    parameter.
    """
    if not isinstance(params, Mapping):
        raise ParamsTypeError(
            f"params is {shown(params)} ({type(params).__name__}): give a dict from names to values, each {FORMS}",
        )
    if isinstance(param_keys, (str, bytes)):
        raise ParamsTypeError(f"param_keys is {shown(param_keys)}: give a list of names, [{shown(param_keys)}]")
    keys = tuple(params) if param_keys is None else tuple(param_keys)
    if not keys:
        what = "params is an empty dict" if param_keys is None else "param_keys is empty"
        raise ParamsValueError(f"{what}: there is nothing to sweep; give at least one parameter with {FORMS}")
    for position, key in enumerate(keys):
        _check_key(params, key, keys[:position])
    return keys


def candidates(key: str, value: Any) -> tuple[Any, ...]:
    """Return the candidates of one parameter, in order and with duplicates.

    A list is taken verbatim, a tuple is a range, and a one-dimensional numpy array is the list of its
    scalars. ParamsTypeError or ParamsValueError for anything else and for no candidates at all.
    """
    if isinstance(value, tuple):
        found = tuple(expand_range(key, value))
    elif isinstance(value, list) or _is_vector(value):
        found = tuple(value)
    else:
        raise ParamsTypeError(_refusal(key, value))
    if not found:
        raise ParamsValueError(f"parameter {key!r} is {shown(value)}, which holds no candidates: give {FORMS}")
    return found


def _check_key(params: Mapping[Any, Any], key: Any, earlier: tuple[Any, ...]) -> None:
    if not isinstance(key, str):
        raise ParamsTypeError(
            f"parameter name {shown(key)} is of type {type(key).__name__}: names are strings, {shown(str(key))}",
        )
    if key not in params:
        raise ParamsValueError(f"param_keys names {key!r}, not in params: its names are {shown(list(params))}")
    if key in earlier:
        raise ParamsValueError(f"param_keys names {key!r} twice: name each parameter once")
    if key in RESERVED_KEYS:
        raise ParamsValueError(
            f"parameter {key!r} is reserved for trial metadata, as are "
            f"{', '.join(sorted(RESERVED_KEYS - {key}))}: give it another name",
        )


def _is_vector(value: Any) -> bool:
    numpy = sys.modules.get("numpy")  # a numpy array cannot be there without it
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim == 1


def _refusal(key: str, value: Any) -> str:
    said = f"parameter {key!r} is {shown(value)} ({type(value).__name__}): give {FORMS}"
    if isinstance(value, range):
        return f"{said}; write {key!r}: list({value!r})"
    if isinstance(value, (set, frozenset)):
        return f"{said}; a set has no order, write {key!r}: sorted(...)"
    if hasattr(value, "ndim") and hasattr(value, "shape"):
        return f"{said}; of arrays only one-dimensional numpy arrays are lists of alternatives"
    if hasattr(value, "__next__"):
        return f"{said}; write {key!r}: list(...)"
    return f"{said}; for one value write a list of one, {key!r}: {shown(value)} -> {key!r}: [{shown(value)}]"
