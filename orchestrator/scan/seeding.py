"""One seed per row, wherever and whenever the row runs."""

from __future__ import annotations

import functools
import random
import sys
from typing import Any

LARGEST_SEED = 2**32


class _Current:
    """The seed of the trial in hand; a backend that is imported in the middle of it is seeded by the import hook."""

    seed: int | None = None
    drawn = 0


def seed_everything(value: int) -> None:
    """Seed ``random``, numpy and each backend that is imported, as Talos does before each trial.

    ``value`` is taken modulo 2**32, numpy's bound.
    """
    value %= LARGEST_SEED
    _Current.seed = value
    _Current.drawn = 0
    random.seed(value)
    for name in ("numpy", "tensorflow", "torch"):
        seed_backend(name, value)


def seed_backend(name: str, value: int | None = None) -> None:
    """Seed one module if it is there; without ``value`` with the seed in force, if any."""
    value = _Current.seed if value is None else value
    module = sys.modules.get(name)
    if module is None or value is None:
        return
    if name == "numpy":
        module.random.seed(value)
    elif name == "tensorflow" and hasattr(module, "random"):
        module.random.set_seed(value)
    elif name == "torch" and hasattr(module, "manual_seed"):
        module.manual_seed(value)


def pin_default_rng(numpy: Any) -> None:
    """Have ``numpy.random.default_rng()`` without a seed follow the seed in force, differently each time it is called.

    So every process of a sweep draws the same data, and a row the same numbers wherever it runs.
    """
    make = numpy.random.default_rng

    @functools.wraps(make)
    def default_rng(seed: Any = None) -> Any:
        if seed is None and _Current.seed is not None:
            seed = [_Current.seed, _Current.drawn]
            _Current.drawn += 1
        return make(seed)

    numpy.random.default_rng = default_rng


def row_seed(base: int, row: int) -> int:
    """Give the seed of a row: Talos's own rule, ``seed + row``."""
    return (base + row) % LARGEST_SEED
