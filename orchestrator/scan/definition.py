"""Talos's other form of an experiment, run as a Scan: a single-file definition, or a YAML manifest that names one.

A definition has ``params()``, ``prep(data, round_params)`` and ``model(prepared, round_params)``, or a ``manifest``. Talos
itself (which has to be in the image) reads it and says which rows come in which order; the rows then run as any others.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Optional

from orchestrator.errors import EnvironmentNotReadyError, InputError
from orchestrator.scan.api import Scan
from orchestrator.space import ParamSpace, Selection, encode

# Talos's strategies are asked for one row after another.
LARGEST = 1_000_000
_IMPORTED = {"pytorch": "torch", "tf": "tensorflow", "tf.keras": "tensorflow"}


def run_definition(path: str) -> Scan:
    """Run the definition or manifest at ``path`` and print its best rows; InputError where Talos refuses it."""
    try:
        from talos.experiment.runner import _invoke
        from talos.yaml.resolver import load_sfd
    except ImportError as error:
        raise EnvironmentNotReadyError(f"{path}: needs Talos in the worker image: pip install talos") from error
    settings: dict[str, Any] = {}
    name = os.path.splitext(os.path.basename(path))[0]
    if path.endswith(".py"):
        source = load_sfd(path)
        params, prep, model = source.params(), *_functions(source)
        strategy = _grid(params)
        backend = getattr(source, "backend", None)
    else:
        compiled, document, strategy = _compile(path)
        params, prep, model = compiled.params(), compiled.prep, compiled.model
        settings, name = dict(document.get("uel", {})), document["metadata"]["name"]
        backend = document["sfd"].get("backend")
        settings["objective"] = document["sfd"].get("objective")
    seed = settings.get("seed")
    if backend is not None and seed is not None:
        importlib.import_module(_IMPORTED.get(backend, backend))

    def run_row(_x: Any, _y: Any, _x_val: Any, _y_val: Any, round_params: dict[str, Any]) -> Any:
        prepared = _invoke(prep, None, round_params) if prep is not None else None
        return _invoke(model, prepared, round_params)

    limit = settings.get("round_limit", settings.get("n_permutations"))
    space = _space(strategy, limit)
    scan = Scan([0], [0], space, run_row, name, x_val=[0], y_val=[0], multi_input=True, seed=seed,
                performance_target=settings.get("performance_target"))  # fmt: skip
    _print_best(scan, settings.get("objective"))
    return scan


def _functions(source: Any) -> tuple[Any, Any]:
    manifest = getattr(source, "manifest", None)
    manifest = manifest() if callable(manifest) else manifest
    prep = getattr(source, "prep", None) or getattr(manifest, "prepare_data", None)
    model = getattr(source, "model", None) or getattr(manifest, "run_model", None)
    return prep, model


def _grid(params: dict[str, Any]) -> Any:
    from talos.experiment.param_domain import ParamDomain
    from talos.experiment.param_search.grid_strategy import GridStrategy
    from talos.parameters.ParamSpace import ParamSpace as _  # noqa: F401 - so that the next module is Talos's own
    from talos.parameters.ParamSpace import normalize_domains

    return GridStrategy(ParamDomain(normalize_domains(params)), seed=None)


def _compile(path: str) -> tuple[Any, Any, Any]:
    from talos.cli.commands._load_yaml import load_and_validate
    from talos.yaml.compiler import CompiledSFD, build_search_strategy

    document, valid = load_and_validate(Path(path))
    if not valid:
        raise InputError(f"{os.path.basename(path)}: not a manifest that Talos accepts (talos validate says why)")
    if document.get("uel", {}).get("pruning_strategies"):
        raise InputError(f"{os.path.basename(path)}: pruning_strategies do not work here: leave them out, or use Scan")
    compiled = CompiledSFD(document, source_path=path)
    return compiled, document, build_search_strategy(document, compiled.params())


def _space(strategy: Any, limit: Optional[int]) -> ParamSpace:
    """Ask Talos's strategy for its rows, and give the space that has exactly these, in this order."""
    values = {key: list(candidates) for key, candidates in strategy.domain.params.items()}
    places = {key: {_text(value): place for place, value in enumerate(options)} for key, options in values.items()}
    indices: list[int] = []
    from talos.experiment.msq import MSQ

    for combination in MSQ(strategy, strategy.domain, n_permutations=limit):
        if len(indices) >= LARGEST:
            raise InputError(f"more than {LARGEST} rows: give round_limit")
        index = 0
        for key, options in values.items():
            index = index * len(options) + places[key][_text(combination[key])]
        indices.append(index)
    space = ParamSpace(values)
    space.choose(Selection.from_json({"kind": "list", "indices": indices}))
    return space


def _text(value: Any) -> str:
    return f"{type(value).__name__}:{encode(value)!r}"


def _print_best(scan: Scan, objective: Any) -> None:
    wanted = objective.get("metric") if isinstance(objective, dict) else objective
    metric = wanted if wanted in scan.data else None
    if metric is None or scan.data.empty:
        sys.stdout.write(f"{len(scan.data)} rows\n")
        return
    smallest = not isinstance(objective, dict) or objective.get("direction", "min") == "min"
    shown = [metric, *scan.parameter_columns.values()]
    best = scan.data.sort_values(metric, ascending=smallest).head(5)
    sys.stdout.write(best[shown].to_string(index=False) + "\n")
