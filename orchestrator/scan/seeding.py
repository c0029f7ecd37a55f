"""One seed per row, wherever and whenever the row runs."""

from __future__ import annotations

import base64
import contextlib
import functools
import random
import sys
from collections.abc import Iterator
from typing import Any

LARGEST_SEED = 2**32


class _Current:
    """The seed of the trial in hand; a backend that is imported in the middle of it is seeded by the import hook."""

    seed: int | None = None
    drawn = 0
    torch: str | None = None  # the state that Torch's generator is to have once it is imported


def seed_everything(value: int) -> None:
    """Seed ``random``, numpy and each backend that is imported, as Talos does before each trial.

    ``value`` is taken modulo 2**32, numpy's bound.
    """
    value %= LARGEST_SEED
    _Current.seed = value
    _Current.drawn = 0
    _Current.torch = None
    random.seed(value)
    for name in ("numpy", "tensorflow", "torch"):
        seed_backend(name, value)


def _imported(name: str) -> Any:
    """Give a module that is there; None while another thread is still importing it, when to touch it may break both."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def seed_backend(name: str, value: int | None = None, *, at_import: bool = False) -> None:
    """Seed one module if it is there; without ``value``, as what is in force says, if anything."""
    if name == "torch" and value is None and _Current.torch is not None:
        _set_torch(sys.modules["torch"], _Current.torch)
        return
    value = _Current.seed if value is None else value
    module = sys.modules.get(name) if at_import else _imported(name)
    if module is None or value is None:
        return
    if name == "numpy" and hasattr(module, "random"):  # another thread may be importing it right now
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


def _as_json(generator: Any) -> list[Any]:
    version, words, gauss = generator.getstate()
    return [version, list(words), gauss]


def _from_json(state: list[Any]) -> Any:
    version, words, gauss = state
    return version, tuple(words), gauss


def read_generators() -> dict[str, Any]:
    """Give the state of ``random``, numpy, TensorFlow and Torch's CPU generator as JSON, to go on from in another process."""
    state: dict[str, Any] = {"random": _as_json(random), "drawn": _Current.drawn}
    numpy, torch = _imported("numpy"), _imported("torch")
    if numpy is not None:
        name, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [name, [int(key) for key in keys], int(position), int(has_gauss), float(cached)]
    tensorflow = _tensorflow_generator()
    if tensorflow is not None:
        state["tensorflow"] = _as_json(tensorflow)
    if torch is not None and hasattr(torch, "get_rng_state"):
        state["torch"] = base64.b64encode(bytes(torch.get_rng_state().tolist())).decode("ascii")
    return state


def set_generators(state: dict[str, Any], seed: int) -> None:
    """Go on from ``read_generators()`` of another process; what it does not hold is seeded with ``seed``."""
    seed_everything(seed)
    random.setstate(_from_json(state["random"]))
    _Current.drawn = int(state["drawn"])
    numpy, torch = _imported("numpy"), _imported("torch")
    if numpy is not None and "numpy" in state:
        name, keys, position, has_gauss, cached = state["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, cached))
    tensorflow = _tensorflow_generator()
    if tensorflow is not None and "tensorflow" in state:
        tensorflow.setstate(_from_json(state["tensorflow"]))
    _Current.torch = state.get("torch")
    if torch is not None and _Current.torch is not None:
        _set_torch(torch, _Current.torch)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave all generators as they were: loading a model, or training one again, is nothing that the script asked to draw."""
    seed, before = _Current.seed, read_generators()
    try:
        yield
    finally:
        set_generators(before, 0 if seed is None else seed)
        _Current.seed = seed


def _tensorflow_generator() -> random.Random | None:
    """Give what TensorFlow draws the seeds of its operations from, once it has been seeded; None where it is not found."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module.context() if module is not None and hasattr(module, "context") else None
    found = getattr(context, "_rng", None)
    return found if isinstance(found, random.Random) else None


def _set_torch(torch: Any, state: str) -> None:
    torch.set_rng_state(torch.tensor(list(base64.b64decode(state)), dtype=torch.uint8))


def row_seed(base: int, row: int) -> int:
    """Give the seed of a row: Talos's own rule, ``seed + row``."""
    return (base + row) % LARGEST_SEED
