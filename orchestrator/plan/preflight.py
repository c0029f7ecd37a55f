"""What a script's text tells before anything is started: whether it can be a sweep, and how large a one."""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from dataclasses import dataclass

from orchestrator.errors import ScriptError
from orchestrator.plan.names import read_names
from orchestrator.plan.static_params import OUR_PACKAGES, check_scans, find_scans

# Packages that call no Scan of their own. Any other may, so a script that imports one is let through.
_NEVER_SCAN = sys.stdlib_module_names | {
    "absl", "cv2", "h5py", "jax", "joblib", "keras", "matplotlib", "numpy", "openpyxl", "pandas", "PIL",
    "plotly", "polars", "pyarrow", "requests", "scipy", "seaborn", "skimage", "sklearn", "tensorflow",
    "torch", "torchvision", "tqdm", "yaml",
}  # fmt: skip
# A path out of the script's own folder: /data/x, ../data, C:\\data, ~/data.
_OUTSIDE = re.compile(r"(/[^/\s]|\.\.(/|$)|~/|[A-Za-z]:[\\/])")
_LONGEST_PATH = 1024
# Through these a script can run a Scan that its own text does not name.
_RUN_ANYTHING = frozenset({"importlib", "runpy", "subprocess"})
_RUN_ANYTHING_NAMES = frozenset({"Scan", "__import__", "eval", "exec"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What the text of one script tells.

    ``rows`` is the number of rows of its only Scan, or None where more than the text decides it; ``imports``
    the top-level modules imported anywhere in it; ``scan_lines`` the lines that call ``Scan``; ``paths`` the string
    constants that look like a path out of the script's folder: absolute, into a parent, or Windows.
    """

    rows: int | None
    imports: frozenset[str]
    scan_lines: tuple[int, ...]
    paths: tuple[str, ...] = ()


def check_script(source: str, name: str, local_modules: frozenset[str] = frozenset()) -> Preflight:
    """Read a script without running it.

    ``name`` is how messages call it; ``local_modules`` are the names of the modules and packages beside it.
    ScriptError when it is not Python or can never call ``Scan``; ParamsTypeError or ParamsValueError when the
    parameters of its Scan are malformed. What the text leaves open is let through: the driver finds out.
    """
    tree = _parse(source.removeprefix("\ufeff"), name)
    imports = _imports(tree)
    if not _may_scan(tree, imports, local_modules):
        raise ScriptError(
            f"{name}: never calls Scan: it imports neither talos nor a module of its own folder that could; "
            "give a script that calls talos.Scan(x, y, params, model, 'name')",
        )
    names = read_names(tree)
    scans = find_scans(tree, names)
    return Preflight(
        rows=check_scans(scans, names, name),
        imports=imports,
        scan_lines=tuple(call.lineno for call in scans),
        paths=path_constants(tree),
    )


def path_constants(tree: ast.AST) -> tuple[str, ...]:
    """List the path-like string constants of a script, in order of appearance, docstrings left out."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    texts.sort(key=lambda node: (node.lineno, node.col_offset))
    found = [str(node.value) for node in texts if id(node) not in prose]
    return tuple(dict.fromkeys(text for text in found if _OUTSIDE.match(text) and len(text) < _LONGEST_PATH))


def _parse(source: str, name: str) -> ast.Module:
    if "\0" in source:
        line = source[: source.index("\0")].count("\n") + 1
        raise ScriptError(f"{name}:{line}: holds null bytes, so it is not Python text: save the script as UTF-8")
    _refuse_json(source, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is the script's own business
            return ast.parse(source)
    except SyntaxError as error:
        raise ScriptError(_syntax_message(error, source, name)) from error
    except (MemoryError, RecursionError, ValueError) as error:
        raise ScriptError(f"{name}:1: cannot be read as Python ({error}): give a Python script") from error


def _refuse_json(source: str, name: str) -> None:
    if not source.lstrip().startswith(("{", "[")):
        return
    try:
        content = json.loads(source)
    except (ValueError, RecursionError):
        return
    if isinstance(content, dict) and "cells" in content:
        raise ScriptError(
            f"{name}:1: is a Jupyter notebook: turn it into a script with `jupyter nbconvert --to script`",
        )
    raise ScriptError(f"{name}:1: is JSON, not Python: give the script that calls Scan")


def _syntax_message(error: SyntaxError, source: str, name: str) -> str:
    number = error.lineno or 1
    lines = source.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    if line.startswith(("%", "!")):
        return f"{name}:{number}: `{_short(line)}` is a notebook line, not Python: remove it"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    what = " ".join(str(error.msg).split())
    near = f" at `{_short(line)}`" if line else ""
    return f"{name}:{number}: syntax error in Python {version}, {what}{near}: correct the script"


def _short(line: str) -> str:
    return line if len(line) <= 60 else line[:57] + "..."


def _imports(tree: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return frozenset(found)


def _may_scan(tree: ast.Module, imports: frozenset[str], local_modules: frozenset[str]) -> bool:
    """Tell whether a Scan can be called: when in doubt, it can."""
    if imports & (OUR_PACKAGES | local_modules | _RUN_ANYTHING) or imports - _NEVER_SCAN:
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _RUN_ANYTHING_NAMES:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "Scan":
            return True
        if isinstance(node, ast.ImportFrom) and (node.level or any(alias.name == "Scan" for alias in node.names)):
            return True
    return False
