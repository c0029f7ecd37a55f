"""Which of two rows is better, by a metric's name."""

from __future__ import annotations

import math
import re
from typing import Any, Optional

# As whole words of a metric's name, so that "mae" is found in "val_mae" and not in "maelstrom_score".
_LOWER_IS_BETTER = frozenset(
    [
        "loss",
        "losses",
        "error",
        "errors",
        "err",
        "mae",
        "mse",
        "rmse",
        "mape",
        "msle",
        "logcosh",
        "perplexity",
        "distance",
        "divergence",
        "hinge",
        "crossentropy",
        "entropy",
        "wer",
        "cer",
        "nll",
        "deviance",
        "time",
    ]
)
_PREFERRED = ("val_loss", "loss", "val_accuracy", "val_acc", "accuracy", "acc", "score")


def lower_is_better(metric: str) -> bool:
    """Say whether a smaller value of this metric is the better one."""
    return any(word in _LOWER_IS_BETTER for word in re.split(r"[^a-z]+", metric.lower()))


def choose_metric(metrics: list[str], asked: Optional[str] = None) -> Optional[str]:
    """Pick the metric to show and rank by: the one asked for if it exists, else Talos's usual order, else the first."""
    if asked in metrics:
        return asked
    for name in _PREFERRED:
        if name in metrics:
            return name
    return metrics[0] if metrics else None


def rank_key(metric: str, value: Any, minimize: Optional[bool] = None) -> float:
    """Give a number that is smaller for a better value; NaN and missing come last."""
    if not isinstance(value, (int, float)) or math.isnan(value):
        return math.inf
    smaller = lower_is_better(metric) if minimize is None else minimize
    return float(value) if smaller else -float(value)
