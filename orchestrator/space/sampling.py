"""Which indices of a grid a limited scan visits: Talos 2.0.10's rows, without its memory and size limits."""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Callable, Optional

from orchestrator.errors import ParamsValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL_METHODS = (
    "uniform_mersenne",
    "uniform_crypto",
    "korobov_matrix",
    "latin_improved",
    "latin_matrix",
    "latin_sudoku",
    "sobol",
    "halton",
)
REMOTE_METHODS = ("quantum", "ambience")

_GOLDEN = 0.6180339887498949
_LATIN_TOTAL = 10**8  # eight bytes each: the permutation is drawn whole
_INT64 = 2**63
_CANDIDATES = 100


def check_method(method: Any) -> None:
    """Raise ParamsValueError for a ``random_method`` that is unknown or that asks a network service."""
    if method in REMOTE_METHODS:
        raise ParamsValueError(
            f"random_method={method!r} asks a network service for random numbers, which is not supported: "
            "use 'uniform_mersenne' (seeded) or 'uniform_crypto' (the operating system's)",
        )
    if method not in LOCAL_METHODS:
        raise ParamsValueError(f"random_method={method!r} is unknown: use one of {', '.join(LOCAL_METHODS)}")


def check_total(method: str, total: int) -> None:
    """Raise ParamsValueError where ``method`` cannot draw from a grid of ``total`` combinations."""
    most = {"latin_matrix": _LATIN_TOTAL, "latin_sudoku": _LATIN_TOTAL, "latin_improved": _INT64 - 1}.get(method)
    if most is not None and total > most:
        raise ParamsValueError(
            f"random_method={method!r} draws from at most {most} combinations and the space has {total}: use "
            "'uniform_mersenne', 'sobol', 'halton' or 'korobov_matrix'",
        )


def sample(method: str, total: int, count: int, seed: int | None) -> tuple[int, ...]:
    """Return ``count`` different indices in ``range(total)``, in visit order; ``1 <= count <= total``.

    Same indices as Talos for every seeded or deterministic method. ``uniform_crypto`` ignores the seed.
    """
    return _SAMPLERS[method](total, count, seed)


def _mersenne(total: int, count: int, seed: int | None) -> tuple[int, ...]:
    return _uniform(random.Random(seed), total, count)  # noqa: S311 - Talos's own generator


def _crypto(total: int, count: int, _seed: int | None) -> tuple[int, ...]:
    return _uniform(random.SystemRandom(), total, count)


def _uniform(source: random.Random, total: int, count: int) -> tuple[int, ...]:
    if total <= sys.maxsize:
        return tuple(source.sample(range(total), count))
    return draw_unique(source, total, count)


def draw_unique(source: random.Random, total: int, count: int) -> tuple[int, ...]:
    """Return what ``source.sample(range(total), count)`` would if it took a range beyond ``sys.maxsize``.

    The standard library draws and drops repeats in just this way wherever ``total`` is large against
    ``count``.
    """
    found: dict[int, None] = {}
    while len(found) < count:
        found[source.randrange(total)] = None
    return tuple(found)


def _korobov(total: int, count: int, _seed: int | None) -> tuple[int, ...]:
    try:
        generator = int(total * _GOLDEN)
    except OverflowError:
        generator = int(total * Fraction(_GOLDEN))
    generator = max(1, generator)
    while math.gcd(generator, total) != 1:
        generator += 1
    return tuple(position * generator % total for position in range(count))


def _latin(total: int, count: int, seed: int | None) -> tuple[int, ...]:
    # One-dimensional Latin hypercube as scipy draws it: sorting its points gives back the shuffled strata.
    import numpy as np

    source = _numpy_source(seed)
    for start in range(0, total, 1 << 20):  # each point's place in its stratum: drawn first, never decides
        source.uniform(size=min(1 << 20, total - start))
    strata = np.arange(1, total + 1)
    source.shuffle(strata)
    picked = np.flatnonzero(strata <= count)
    ordered: list[int] = picked[np.argsort(strata[picked])].tolist()
    return tuple(ordered)


def _latin_improved(total: int, count: int, seed: int | None) -> tuple[int, ...]:
    # Of up to 100 free bins drawn at random, take the one farthest round the circle from all taken bins.
    import numpy as np

    source = _numpy_source(seed)
    chosen = [int(source.integers(total))]
    taken = np.array(chosen, dtype=np.int64)  # sorted
    while len(chosen) < count:
        free = total - len(chosen)
        ranks = source.choice(free, size=min(_CANDIDATES, free), replace=False)
        # The bin of rank r among the free ones lies above every taken bin that has at most r free bins
        # below it.
        bins = ranks + np.searchsorted(taken - np.arange(len(taken)), ranks, side="right")
        place = np.searchsorted(taken, bins)
        below = np.abs(bins - taken[place - 1])
        above = np.abs(bins - taken[place % len(taken)])
        nearest = np.minimum(np.minimum(below, total - below), np.minimum(above, total - above))
        chosen.append(int(bins[int(np.argmax(nearest))]))
        taken = np.insert(taken, np.searchsorted(taken, chosen[-1]), chosen[-1])
    return tuple(chosen)


def _numpy_source(seed: int | None) -> Any:
    import numpy as np

    try:
        return np.random.default_rng(seed)
    except ValueError as error:
        raise ParamsValueError(f"seed={seed!r}: the latin methods take a seed of 0 or more") from error


def _sobol(total: int, count: int, _seed: int | None) -> tuple[int, ...]:
    return _first(count, (_gray_position(code) for code in _reversed_bits(total)), total)


def _halton(total: int, count: int, _seed: int | None) -> tuple[int, ...]:
    return _first(count, _reversed_bits(total), total)


def _reversed_bits(total: int) -> Iterator[int]:
    # The point of index i is i with its bits mirrored behind the point, so sorting the points mirrors the
    # indices.
    bits = (total - 1).bit_length()
    for position in range(1 << bits):
        yield int(format(position, f"0{bits}b")[::-1], 2) if bits else 0


def _gray_position(code: int) -> int:
    # The Sobol sequence visits the same points in Gray-code order.
    shift, position = 1, code
    while shift < code.bit_length():
        position ^= position >> shift
        shift <<= 1
    return position


def _first(count: int, indices: Iterator[int], total: int) -> tuple[int, ...]:
    found: list[int] = []
    for index in indices:
        if index < total:
            found.append(index)
            if len(found) == count:
                break
    return tuple(found)


_SAMPLERS: dict[str, Callable[[int, int, Optional[int]], tuple[int, ...]]] = {
    "uniform_mersenne": _mersenne,
    "uniform_crypto": _crypto,
    "korobov_matrix": _korobov,
    "latin_improved": _latin_improved,
    "latin_matrix": _latin,
    "latin_sudoku": _latin,
    "sobol": _sobol,
    "halton": _halton,
}
