"""Talos's ``learning_entropy``: how evenly a series of epochs is spread, or how far validation is from training."""

from __future__ import annotations

import math
from typing import Any


def series_entropy(history: dict[str, list[Any]]) -> dict[str, float]:
    """Give a number per training series: entropy in nats, or the Kullback-Leibler divergence of ``val_NAME`` from it.

    NaN where a series is empty, negative, not finite, or sums to zero.
    """
    result: dict[str, float] = {}
    for name, series in history.items():
        if name.startswith("val_"):
            continue
        training = _distribution(series)
        if training is None:
            result[name] = math.nan
            continue
        validation = _distribution(history.get("val_" + name, []))
        if validation is not None and len(validation) == len(training):
            result[name] = _divergence(validation, training)
        else:
            result[name] = -sum(p * math.log(p) for p in training if p > 0)
    return result


def _distribution(series: list[Any]) -> list[float] | None:
    values = [float(value) for value in series]
    total = sum(values)
    if not values or not all(value >= 0 and math.isfinite(value) for value in values) or total <= 0:
        return None
    return [value / total for value in values]


def _divergence(p: list[float], q: list[float]) -> float:
    if any(a > 0 and b == 0 for a, b in zip(p, q)):
        return math.inf
    return sum(a * math.log(a / b) for a, b in zip(p, q) if a > 0)
