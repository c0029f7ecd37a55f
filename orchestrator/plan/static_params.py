"""The parameters of a script's ``Scan`` calls, where its text alone makes them certain.

A fault is reported in the words of ``orchestrator.space``, which would find the same one later, in the driver
container.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.errors import ParamsTypeError, ParamsValueError
from orchestrator.plan.names import Names, settled_value
from orchestrator.space.candidates import candidates, chosen_keys

if TYPE_CHECKING:
    from collections.abc import Callable

OUR_PACKAGES = frozenset({"talos", "orchestrator"})

_PARAMS_POSITION = 2
_RANGE_PARTS = 3
_POSITIONS_BEFORE_LIMITS = 11  # x to seed; from there on positional arguments are limits
_WITHOUT_LIMIT = frozenset(
    ("x", "y", "params", "model", "experiment_name", "x_val", "y_val", "val_split", "multi_input", "seed",
     "random_method", "reduction_metric", "minimize_loss", "disable_progress_bar", "print_params",
     "clear_session", "save_weights", "save_models")
)  # fmt: skip
_BRANCHES = (ast.If, ast.IfExp, ast.Match, ast.While, ast.For, ast.AsyncFor, ast.BoolOp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TRIES = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
_ONLY_LOOK = frozenset({"print", "len"})


@dataclass(frozen=True, slots=True)
class _Source:
    """Stands for a value that only the running script knows; its text is the script's own."""

    text: str

    def __str__(self) -> str:
        return self.text


def find_scans(tree: ast.Module, names: Names) -> list[ast.Call]:
    """Return the calls that are certainly ``Scan`` of talos or of this package, in the order of the text."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_scan(node.func, names)]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def check_scans(scans: list[ast.Call], names: Names, script: str) -> int | None:
    """Return the number of rows of the only Scan, or None when that depends on more than the text.

    ParamsTypeError or ParamsValueError, with ``script`` and the line in front, when parameters are certainly
    malformed in a call that is certainly made, or that is the only one.
    """
    rows = None
    for call in scans:
        caught = any(isinstance(above, _TRIES) for above in names.ancestors(call))
        if not caught and (len(scans) == 1 or _always_reached(call, names)):
            rows = _rows(call, scans, names, script)
    return rows if len(scans) == 1 and _unlimited(scans[0]) else None


def _rows(call: ast.Call, scans: list[ast.Call], names: Names, script: str) -> int | None:
    """Return the size of the full grid of one call, or None."""
    value = _params(call)
    if isinstance(value, ast.Name):
        given = {found for scan in scans if (found := _params(scan)) is not None}
        value = settled_value(names, value, lambda read: read in given or _only_looked_at(read, names))
    if value is None:
        return None
    if not isinstance(value, ast.Dict):
        if isinstance(value, (ast.Constant, ast.List, ast.Tuple, ast.Set)):
            plain = _value(value)
            if not isinstance(plain, _Source):
                _told(script, value.lineno, lambda: chosen_keys(plain, None))
        return None
    entries = _entries(value)
    if entries is None:
        return None
    _told(script, value.lineno, lambda: chosen_keys(entries, None))
    sizes = [_size(key, entry, script) for key, entry in entries.items()]
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _entries(literal: ast.Dict) -> dict[Any, ast.expr] | None:
    """Return keys and values, the last of equal keys as in Python, or None unless all keys are constant."""
    entries: dict[Any, ast.expr] = {}
    for key, value in zip(literal.keys, literal.values, strict=True):
        if not isinstance(key, ast.Constant):
            return None
        entries[key.value] = value
    return entries


def _size(key: str, value: ast.expr, script: str) -> int | None:
    """Return the number of candidates of one parameter, or None when only the running script knows."""
    if isinstance(value, ast.List) and value.elts:
        return None if _starred(value) else len(value.elts)
    if isinstance(value, ast.Tuple):
        parts = _value(value)
        if _starred(value) or (len(parts) == _RANGE_PARTS and any(isinstance(part, _Source) for part in parts)):
            return None
    elif not isinstance(value, (ast.List, ast.Constant, ast.UnaryOp, ast.Set, ast.Dict)):
        return None
    plain = _value(value)
    if isinstance(plain, _Source):
        return None
    found: tuple[Any, ...] = _told(script, value.lineno, lambda: candidates(key, plain))
    return len(found)


def _told(script: str, line: int, check: Callable[[], Any]) -> Any:
    """Return what ``check`` returns; what it raises is raised with the place in front."""
    try:
        return check()
    except (ParamsTypeError, ParamsValueError) as error:
        raise type(error)(f"{script}:{line}: {error}") from error


def _value(node: ast.expr) -> Any:
    """Return the value of a literal; what is not literal, or a part that is not, is a ``_Source``."""
    if isinstance(node, ast.List):
        return [_value(part) for part in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(part) for part in node.elts)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return _Source(ast.unparse(node))


def _starred(node: ast.List | ast.Tuple) -> bool:
    return any(isinstance(part, ast.Starred) for part in node.elts)


def _params(call: ast.Call) -> ast.expr | None:
    if any(isinstance(argument, ast.Starred) for argument in call.args[: _PARAMS_POSITION + 1]):
        return None
    if len(call.args) > _PARAMS_POSITION:
        return call.args[_PARAMS_POSITION]
    return next((keyword.value for keyword in call.keywords if keyword.arg == "params"), None)


def _unlimited(call: ast.Call) -> bool:
    if len(call.args) > _POSITIONS_BEFORE_LIMITS or any(isinstance(part, ast.Starred) for part in call.args):
        return False
    return all(
        keyword.arg in _WITHOUT_LIMIT
        or (keyword.arg is not None and isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
        for keyword in call.keywords
    )


def _only_looked_at(read: ast.Name, names: Names) -> bool:
    call = names.parents.get(read)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func is read:
        return False
    return call.func.id in _ONLY_LOOK and names.owner(call.func.id, call.func) is None


def _always_reached(call: ast.Call, names: Names) -> bool:
    """Tell whether a run of the script makes the call unless something ends it earlier."""
    for above in names.ancestors(call):
        if isinstance(above, _FUNCTIONS):
            return False
        if isinstance(above, _BRANCHES) and not _is_main_guard(above):
            return False
    return True


def _is_main_guard(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(side) for side in (node.test.left, *node.test.comparators)}
    return sides == {"__name__", "'__main__'"} and isinstance(node.test.ops[0], ast.Eq)


def _is_scan(func: ast.expr, names: Names) -> bool:
    if isinstance(func, ast.Attribute):
        return func.attr == "Scan" and isinstance(func.value, ast.Name) and _imported(func.value, None, names)
    return isinstance(func, ast.Name) and _imported(func, "Scan", names)


def _imported(name: ast.Name, member: str | None, names: Names) -> bool:
    """Tell whether a name is always talos or this package, or that ``member`` of one of them."""
    owner = names.owner(name.id, name)
    if owner is None or name.id in names.doubtful:
        return False
    return all(_binds(statement, name.id, member) for statement in owner.bound[name.id])


def _binds(statement: ast.AST, name: str, member: str | None) -> bool:
    if member is None and isinstance(statement, ast.Import):
        return all(
            alias.name in OUR_PACKAGES or (alias.asname is None and alias.name.split(".")[0] in OUR_PACKAGES)
            for alias in statement.names
            if (alias.asname or alias.name.split(".")[0]) == name
        )
    if member is None or not isinstance(statement, ast.ImportFrom) or statement.level:
        return False
    if (statement.module or "").split(".")[0] not in OUR_PACKAGES:
        return False
    return all(alias.name == member for alias in statement.names if (alias.asname or alias.name) == name)
