"""The verbs with which Talos takes pending rows away, by their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Callable

from orchestrator.space.identity import encode


class RowRemoval(ABC):
    """Five verbs over one: which pending rows stay. Removing a row does not change the number of any other."""

    @abstractmethod
    def _keep(self, condition: Callable[[dict[str, Any]], Any]) -> None:
        """Keep the pending rows whose parameters fulfil ``condition``."""

    def remove_is(self, label: str, value: Any) -> None:
        """Take away the rows with this value."""
        self._keep(lambda params: not same(params[label], value))

    def remove_is_not(self, label: str, value: Any) -> None:
        """Take away the rows with any other value."""
        self._keep(lambda params: same(params[label], value))

    def remove_ge(self, label: str, value: Any) -> None:
        """Take away the rows with this value or more."""
        self._keep(lambda params: not params[label] >= value)

    def remove_le(self, label: str, value: Any) -> None:
        """Take away the rows with this value or less."""
        self._keep(lambda params: not params[label] <= value)

    def remove_lambda(self, function: Callable[[dict[str, Any]], Any]) -> None:
        """Keep only the rows for which ``function`` is true, which is what Talos means by this name."""
        self._keep(function)


def same(left: Any, right: Any) -> bool:
    """Say whether two values are one candidate: 1, 1.0 and True are three, as in Talos."""
    return left is right or bool(encode(left) == encode(right) and type(left) is type(right))
