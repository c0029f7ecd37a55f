"""The grid: parameter names, their candidates, and the combination at each index."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.space.candidates import candidates, chosen_keys
from orchestrator.space.identity import digest
from orchestrator.space.matching import adopt_values, describe_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, eq=False)
class Domain:
    """Every parameter and its candidates, in dict order; combinations are computed, never stored.

    ``values[i]`` are the candidates of ``keys[i]``. Two domains are the same when their fingerprints are:
    candidates may be arrays, which do not compare.
    """

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, params: Mapping[str, Any], param_keys: Iterable[str] | None = None) -> Domain:
        """Read a Talos parameter dictionary, or its entries that ``param_keys`` names, in that order.

        ParamsTypeError or ParamsValueError, naming the key, for anything but a list, a range tuple or a
        vector.
        """
        keys = chosen_keys(params, param_keys)
        return cls(keys=keys, values=tuple(candidates(key, params[key]) for key in keys))

    @functools.cached_property
    def total(self) -> int:
        """The exact number of combinations."""
        return math.prod(map(len, self.values))

    def at(self, index: int) -> dict[str, Any]:
        """Return the combination at ``index`` as a new dict; ``itertools.product`` order, last key fastest.

        IndexError outside ``0 <= index < total``.
        """
        rest = operator.index(index)
        if not 0 <= rest < self.total:
            raise IndexError(f"index {rest} is outside a grid of {self.total} combinations")
        picked = []
        for options in reversed(self.values):
            rest, position = divmod(rest, len(options))
            picked.append(options[position])
        return dict(zip(self.keys, reversed(picked)))

    def describe(self) -> list[dict[str, Any]]:
        """Return the domain as JSON: per key ``key``, ``size`` and the encoded ``values``.

        Callables are their qualified names. Above 10000 candidates ``digest`` stands for ``values``.
        """
        return [describe_key(key, options) for key, options in zip(self.keys, self.values)]

    @classmethod
    def described(cls, description: list[dict[str, Any]]) -> Domain | None:
        """Return a domain of encoded values out of a ``describe()``; None where it holds digests instead of values.

        For naming a row's values where the user's own objects are not at hand.
        """
        if not all("values" in entry for entry in description):
            return None
        return cls(
            keys=tuple(entry["key"] for entry in description),
            values=tuple(tuple(entry["values"]) for entry in description),
        )

    def fingerprint(self) -> str:
        """Return the sha256, in hex, of the description: equal wherever the same domain is built."""
        return digest(self.describe())

    def adopt(self, description: list[dict[str, Any]]) -> Domain:
        """Return the planned domain, given its ``describe()``, in a process whose script built this one.

        Values that JSON holds come from the plan, so that a grid drawn at random agrees. Others are this
        process's own objects, after their encoded form was found equal. SpaceMismatchError names the key
        that differs.
        """
        return Domain(keys=self.keys, values=adopt_values(self.keys, self.values, description))
