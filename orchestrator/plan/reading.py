"""What kind of script it is that was given, and the Python text that is run for it."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass

from orchestrator.plan.notebook import notebook_source
from orchestrator.plan.preflight import Preflight, check_script

NOTEBOOK, DEFINITION = "notebook.py", "definition.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """``source`` is run under the name ``name`` instead of the script itself; both None for a plain script."""

    preflight: Preflight
    name: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()


def read_script(text: str, path: str, local_modules: frozenset[str]) -> Reading:
    """Tell scripts, notebooks, Talos's single-file definitions and manifests apart; ScriptError for none of these."""
    name = os.path.basename(path)
    kind = os.path.splitext(name)[1]
    if kind == ".ipynb":
        source, notes = notebook_source(text, name)
        return Reading(preflight=check_script(source, name, local_modules), name=NOTEBOOK, source=source, notes=notes)
    if kind in (".yaml", ".yml"):
        none = Preflight(rows=None, imports=frozenset(), scan_lines=())
        return Reading(preflight=none, name=DEFINITION, source=_wrapper(path))
    if is_definition(text):
        found = check_script("import talos\n" + text, name, local_modules)
        return Reading(preflight=found, name=DEFINITION, source=_wrapper(path))
    return Reading(preflight=check_script(text, name, local_modules))


def is_definition(text: str) -> bool:
    """Say whether a file defines ``params`` and a model for Talos's own runner and calls no Scan itself."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False  # check_script says what is wrong with it
    if any(isinstance(node, (ast.Name, ast.Attribute)) and "Scan" in (getattr(node, "id", ""), getattr(node, "attr", ""))
           for node in ast.walk(tree)):  # fmt: skip
        return False
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {target.id for node in tree.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name)}  # fmt: skip
    return "params" in names and ("manifest" in names or {"prep", "model"} <= names)


def _wrapper(path: str) -> str:
    return f"from orchestrator.scan.definition import run_definition\n\nrun_definition({path!r})\n"
