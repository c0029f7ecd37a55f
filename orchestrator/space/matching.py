"""Whether the space that a script built here is the planned one."""

from __future__ import annotations

from typing import Any

from orchestrator.errors import SpaceMismatchError
from orchestrator.space.callables import TAG
from orchestrator.space.identity import canonical, digest, encode, is_plain
from orchestrator.space.labels import shown

LISTED_CANDIDATES = 10_000

_ADVICE = "build the parameters the same way in every run of the script"


def describe_key(key: str, candidates: tuple[Any, ...]) -> dict[str, Any]:
    """Return one parameter as JSON: ``key``, ``size``, and ``values`` or (above 10000) ``digest``."""
    encoded = [encode(value, by_name=True) for value in candidates]
    entry: dict[str, Any] = {"key": key, "size": len(candidates)}
    if len(candidates) > LISTED_CANDIDATES:
        return {**entry, "digest": digest(encoded)}
    return {**entry, "values": encoded}


def adopt_values(
    keys: tuple[str, ...],
    values: tuple[tuple[Any, ...], ...],
    description: list[dict[str, Any]],
) -> tuple[tuple[Any, ...], ...]:
    """Return the candidates of the plan: plain ones from ``description``, others this process's own, checked.

    SpaceMismatchError names the first key that differs: missing, extra, out of order, or of another size or
    value.
    """
    _compare_keys(tuple(str(entry["key"]) for entry in description), keys)
    return tuple(_adopt_key(key, own, entry) for key, own, entry in zip(keys, values, description))


def _compare_keys(planned: tuple[str, ...], here: tuple[str, ...]) -> None:
    for key in planned:
        if key not in here:
            raise SpaceMismatchError(f"parameter {key!r} is in the plan and missing in the script's space: {_ADVICE}")
    for key in here:
        if key not in planned:
            raise SpaceMismatchError(f"parameter {key!r} is in the script's space and not in the plan: {_ADVICE}")
    for key, own in zip(planned, here):
        if key != own:
            raise SpaceMismatchError(
                f"parameter {key!r} comes where the script's space has {own!r}, so the order of keys "
                f"differs from the plan: {_ADVICE}",
            )


def _adopt_key(key: str, own: tuple[Any, ...], entry: dict[str, Any]) -> tuple[Any, ...]:
    if entry["size"] != len(own):
        raise SpaceMismatchError(
            f"parameter {key!r} has {entry['size']} candidates in the plan and {len(own)} in the script's "
            f"space: {_ADVICE}",
        )
    if "digest" in entry:
        if describe_key(key, own).get("digest") != entry["digest"]:
            raise SpaceMismatchError(f"parameter {key!r} has other candidates than in the plan: {_ADVICE}")
        return own
    return tuple(_adopt_value(key, *pair) for pair in enumerate(zip(entry["values"], own)))


def _adopt_value(key: str, position: int, pair: tuple[Any, Any]) -> Any:
    planned, own = pair
    if is_plain(planned) and is_plain(own):
        return planned
    here = encode(own, by_name=True)
    if canonical(here) != canonical(planned):
        raise SpaceMismatchError(
            f"parameter {key!r}, candidate {position}: {_told(planned)} in the plan and {_told(here)} in the "
            f"script's space; {_ADVICE}",
        )
    return own


def _told(encoded: Any) -> str:
    if isinstance(encoded, dict) and encoded.get(TAG) == "name":
        return str(encoded["value"])
    return shown(encoded)
