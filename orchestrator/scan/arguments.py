"""Arguments of ``Scan`` beyond Talos's signature: known ones pass, old ones are mapped, the rest is refused.

Talos takes any keyword and ignores what it does not know, which silently runs the full grid.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from typing import Any

from orchestrator.errors import InputError

# Talos's options that steer its own run directory or loop; ours keeps records in its own way, so they change nothing.
_WITHOUT_EFFECT = frozenset(
    ("experiment_dir", "checkpoint_interval", "feedback_interval", "output_format", "retain_models", "data_fingerprint",
     "event_callback", "intra_callback", "backend", "model_factory", "objective")
)  # fmt: skip
# Names of older Talos releases: the new name, or None where the meaning is gone.
_RENAMED: dict[str, Any] = {
    "dataset_name": None,
    "experiment_no": None,
    "talos_log_name": None,
    "last_epoch_value": None,
    "functional_model": None,
    "shuffle": None,
    "debug": None,
    "search_method": None,
    "grid_downsample": "fraction_limit",
    "reduce_loss": "minimize_loss",
}


_NAMES = ("dataset_name", "experiment_no")


def check_options(options: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Map old names into ``arguments``; InputError for an unknown one, with the closest known name."""
    named = arguments["experiment_name"] is None
    if named:
        arguments["experiment_name"] = _old_name(options)
    for name, value in options.items():
        if name in _RENAMED:
            _rename(name, value, arguments, named=named)
        elif name not in _WITHOUT_EFFECT:
            close = difflib.get_close_matches(name, [*arguments, *_RENAMED, *_WITHOUT_EFFECT], 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"Scan has no argument {name!r}{hint}")


def _old_name(options: dict[str, Any]) -> str:
    """Make the missing experiment_name out of what older Talos releases had instead."""
    parts = [str(options[name]) for name in _NAMES if options.get(name)]
    name = "_".join(parts) or "experiment"
    warnings.warn(f"Scan is given no experiment_name; this experiment is called {name!r}", stacklevel=4)
    return name


def _talos() -> str:
    module = sys.modules.get("talos")
    return f"the one here, {getattr(module, '__version__', 'a stand-in')}" if module else "Talos 2"


def _rename(name: str, value: Any, arguments: dict[str, Any], *, named: bool) -> None:
    new = _RENAMED[name]
    if new is None:
        if not (name in _NAMES and named):
            warnings.warn(f"Scan's {name!r} is of an older Talos than {_talos()} and has no effect", stacklevel=4)
        return
    warnings.warn(f"Scan's {name!r} is now {new!r}", stacklevel=4)
    if value is not None:
        arguments[new] = float(value) if new == "fraction_limit" else value
