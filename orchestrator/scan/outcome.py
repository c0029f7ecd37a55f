"""What a model function may return, brought into one form.

Accepted, as in Talos 2: ``(history, model)`` where the history is a dictionary or has one as ``.history``; Torch's
``(module with .history, parameters)``; or a dictionary of metrics (optionally with ``model``, ``history``, ``predictions``).
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any, Optional

from orchestrator.errors import ContractError

EXPECTED = "return (history, model), or a dictionary of metrics"
RESERVED_METRICS = frozenset(
    ("start", "end", "duration", "execution_time", "round_epochs", "_warnings", "_trial_id", "_param_hash")
)
_NOT_METRICS = frozenset(("model", "history", "predictions", "backend", "factory", "model_factory", "metrics"))


@dataclass(frozen=True)
class Outcome:
    """``metrics`` hold the last epoch's value of each series, in the order in which the model gave them."""

    metrics: dict[str, Any]
    history: dict[str, list[Any]] = field(default_factory=dict)
    model: Any = None
    backend: Optional[str] = None


def read_outcome(output: Any) -> Outcome:
    """Take what the model function returned; ContractError says in one line what was wrong with it."""
    if isinstance(output, tuple) and len(output) == 2:
        return _from_pair(*output)
    if isinstance(output, dict):
        return _from_dictionary(output)
    raise ContractError(f"the model function returned {_describe(output)}; {EXPECTED}")


def _from_pair(first: Any, second: Any) -> Outcome:
    model = second
    if hasattr(first, "state_dict") and not hasattr(second, "state_dict"):
        model = first  # Talos's Torch examples return (module, module.parameters())
    history = getattr(first, "history", first)
    if not isinstance(history, dict):
        hint = "; the two are the other way round" if hasattr(second, "history") or isinstance(second, dict) else ""
        raise ContractError(f"the model function returned {_describe((first, second))}{hint}; {EXPECTED}")
    series = _read_history(history)
    metrics = {key: values[-1] for key, values in series.items() if values}
    return Outcome(_checked(metrics), series, model, backend_of(model))


def _from_dictionary(output: dict[Any, Any]) -> Outcome:
    model = output.get("_model", output.get("model"))
    history = output.get("_history", output.get("history")) or {}
    history = getattr(history, "history", history)
    if not isinstance(history, dict):
        raise ContractError(
            f"the model function returned a dictionary whose history is {_describe(history)}; {EXPECTED}"
        )
    series = _read_history(history)
    metrics = output.get("metrics")
    if metrics is None:
        metrics = {
            key: value
            for key, value in output.items()
            if not (isinstance(key, str) and (key.startswith("_") or key in _NOT_METRICS))
        }
    metrics = {key: plain_number(value) for key, value in metrics.items()}
    for key, values in series.items():
        if values:
            metrics.setdefault(key, values[-1])
    return Outcome(_checked(metrics), series, model, output.get("backend") or backend_of(model))


def _read_history(history: dict[Any, Any]) -> dict[str, list[Any]]:
    series: dict[str, list[Any]] = {}
    for key, values in history.items():
        if not isinstance(key, str):
            raise ContractError(f"history key {key!r} is not a string; {EXPECTED}")
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
            raise ContractError(f"history[{key!r}] is {_describe(values)}; give one number per epoch, in a list")
        try:
            numbers_in = [plain_number(value) for value in values]
        except TypeError as error:  # a 0-d array says that it can be iterated
            raise ContractError(f"history[{key!r}] is not a list: {error}; give one number per epoch") from error
        for position, value in enumerate(numbers_in):
            if not isinstance(value, numbers.Real):
                raise ContractError(f"history[{key!r}][{position}] is {_describe(value)}, not a number")
        series[key] = numbers_in
    return series


def _checked(metrics: dict[Any, Any]) -> dict[str, Any]:
    for key, value in metrics.items():
        if not isinstance(key, str):
            raise ContractError(f"metric {key!r} is not named by a string; {EXPECTED}")
        if not isinstance(value, numbers.Real):
            raise ContractError(f"metric {key!r} is {_describe(value)}, not a number; {EXPECTED}")
    clash = sorted(RESERVED_METRICS & set(metrics))
    if clash:
        raise ContractError(f"metric {clash[0]!r} has the name of a column of the result table; rename it")
    return metrics


def plain_number(value: Any) -> Any:
    """Turn a tensor or numpy scalar of one element into Python's own number; give anything else back unchanged."""
    if isinstance(value, (bool, int, float)):
        return value
    for step in ("detach", "cpu", "numpy", "item"):
        method = getattr(value, step, None)
        if callable(method):
            try:
                value = method()
            except (TypeError, ValueError, RuntimeError):
                break
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, int, float)):
        return float(value)
    return value


def backend_of(model: Any) -> Optional[str]:
    """Name the framework of a model by where its classes come from; None for no model."""
    if model is None:
        return None
    modules = [cls.__module__ for cls in type(model).__mro__]
    for name in ("keras", "tensorflow", "torch"):
        if any(module == name or module.startswith((name + ".", name + "_")) for module in modules):
            return name
    return "generic"


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return "(" + ", ".join(type(item).__name__ for item in value) + ")"
    return f"a {type(value).__name__}"
