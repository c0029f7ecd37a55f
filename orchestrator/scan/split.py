"""The validation split: Talos's rule, so that a sweep trains on the very rows that Talos would."""

from __future__ import annotations

from typing import Any, Optional

from orchestrator.errors import ParamsTypeError, ParamsValueError


def take(values: Any, indices: Any, nested: bool = False) -> Any:
    """Pick rows from an array, a DataFrame, or each of several of them (a dictionary, or a list when ``nested``)."""
    if isinstance(values, dict):
        return {key: take(value, indices) for key, value in values.items()}
    if nested:
        return [take(value, indices) for value in values]
    if hasattr(values, "iloc"):
        return values.iloc[indices]
    return values[indices]


def split_data(x: Any, y: Any, share: float, multi_input: bool, seed: Optional[int]) -> tuple[Any, Any, Any, Any]:
    """Split into ``(x_train, y_train, x_val, y_val)``; ``share`` is the validation part, strictly between 0 and 1.

    The order is ``numpy.random.default_rng(seed).permutation(rows)``, as in Talos 2.0.10.
    """
    import numpy as np

    if not isinstance(share, (int, float)) or not 0 < share < 1:
        raise ParamsValueError(f"val_split is {share!r}: give a share strictly between 0 and 1, or x_val and y_val")
    several = isinstance(y, list)
    first = next(iter(y.values())) if isinstance(y, dict) else (y[0] if several else y)
    try:
        rows = len(first)
    except TypeError:
        raise ParamsTypeError(
            f"y is a {type(y).__name__} without a length: give an array, or x_val and y_val"
        ) from None
    order = np.random.default_rng(seed).permutation(rows)
    cut = int(rows * (1 - share))
    if cut in (0, rows):
        raise ParamsValueError(
            f"val_split={share} of {rows} rows leaves one side empty: give more rows or x_val and y_val"
        )
    train, validation = order[:cut], order[cut:]
    return (
        take(x, train, multi_input),
        take(y, train, several),
        take(x, validation, multi_input),
        take(y, validation, several),
    )
