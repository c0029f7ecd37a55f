"""Which part of the program may know what: the arrow of ``docs/architecture.md``, held by reading the imports."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "orchestrator"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
WORKER_SIDE = (
    "worker/",
    "scan/",
    "space/",
    "records/",
    "schema.py",
    "errors.py",
    "devices.py",
    "version.py",
    "__init__.py",
)
# What the words after `orchestrator.` of an import on the worker side may begin with.
WORKER_PARTS = ("worker", "scan", "space", "records", "schema", "errors", "devices", "version")
HOST_PARTS = ("engine", "coordinator", "plan", "results", "cli", "config", "console", "run", "prepare", "queries", "stop",
              "project", "library", "leases", "resuming")  # fmt: skip
LONGEST = 330


def on_worker_side(name):
    return name.startswith(WORKER_SIDE)


@functools.cache
def tree(name):
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), name)


def imports(name, *, at_top):
    """Full names of what a file imports; ``at_top`` leaves out what a function or ``TYPE_CHECKING`` block does."""
    found = []
    waiting = [tree(name)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not (at_top and (inner or typing)):
            waiting += ast.iter_child_nodes(node)
    return found


def files_that_import(package):
    return {name for name in FILES if any(each.split(".")[0] == package for each in imports(name, at_top=False))}


def uses(name, *dotted):
    """Lines on which a file reads one of these dotted names."""
    return [
        node.lineno for node in ast.walk(tree(name)) if isinstance(node, ast.Attribute) and ast.unparse(node) in dotted
    ]


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("docker", {"engine/docker.py", "engine/images.py", "engine/image_base.py", "engine/image_recipe.py",
                    "engine/image_wheels.py", "engine/translate.py"}),
        ("requests", {"engine/translate.py"}),
        ("click", {"cli/__init__.py", "cli/options.py"}),
        ("rich", {"console.py"}),
        ("pynvml", {"engine/gpus.py", "worker/limits.py", "devices.py"}),
        ("ray", {"engine/ray.py"}),
    ],
)  # fmt: skip
def test_a_foreign_package_is_known_in_one_place(package, allowed):
    assert files_that_import(package) <= allowed


def test_only_the_edges_read_the_environment():
    allowed = ("config.py", "cli/__init__.py", "api.py", "devices.py", "worker/limits.py", "worker/environment.py")
    readers = {name for name in FILES if uses(name, "os.environ", "os.getenv", "os.environb", "os.putenv")}
    assert readers <= set(allowed)


def test_only_the_console_and_the_worker_side_write_to_the_terminal():
    allowed = {"console.py", "queries.py", *(name for name in FILES if on_worker_side(name))}
    for name in FILES:
        printing = [node.lineno for node in ast.walk(tree(name))
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"]  # fmt: skip
        assert not printing or name == "scan/trial.py", f"{name}: prints on line {printing}"
        if name not in allowed:
            assert not uses(name, "sys.stdout", "sys.stderr"), f"{name}: speaks by itself"


@pytest.mark.parametrize("name", [name for name in FILES if on_worker_side(name)])
class TestWorkerSide:
    def test_imports_only_the_standard_library_and_itself(self, name):
        for each in imports(name, at_top=True):
            first, _, rest = each.partition(".")
            assert first in sys.stdlib_module_names or first == "orchestrator", f"{name} imports {each}"
            if first == "orchestrator":
                assert rest.split(".")[0] in WORKER_PARTS, f"{name} imports {each}"

    def test_knows_nothing_of_the_host(self, name):
        own = [each.split(".")[1] for each in imports(name, at_top=False) if each.startswith("orchestrator.")]
        assert not set(own) & set(HOST_PARTS)

    def test_is_python_3_9(self, name):
        text = (ROOT / name).read_text(encoding="utf-8")
        ast.parse(text, name, feature_version=(3, 9))
        if any(isinstance(node, ast.AnnAssign) or (isinstance(node, ast.FunctionDef) and node.returns)
               for node in ast.walk(tree(name))):  # fmt: skip
            assert "from __future__ import annotations" in text
        for node in ast.walk(tree(name)):
            if not isinstance(node, ast.Call):
                continue
            words = {word.arg for word in node.keywords}
            called = ast.unparse(node.func)
            assert not (called == "zip" and "strict" in words), f"{name}:{node.lineno}: zip(strict=) is Python 3.10"
            assert not (called.endswith("dataclass") and words & {"slots", "kw_only"}), f"{name}:{node.lineno}"
            if called in ("isinstance", "issubclass"):
                assert not isinstance(node.args[1], ast.BinOp), f"{name}:{node.lineno}: X | Y is Python 3.10"


def parts_known_to(folder):
    names = [name for name in FILES if name.startswith(folder) or name == folder]
    assert names, folder
    return {
        each.split(".")[1] for name in names for each in imports(name, at_top=False) if each.startswith("orchestrator.")
    }


@pytest.mark.parametrize(
    ("folder", "unknown"),
    [
        ("plan/", {"engine", "coordinator", "run", "prepare", "cli", "config", "console", "queries", "results"}),
        ("engine/", {"coordinator", "run", "cli", "console", "queries", "scan", "worker", "results"}),
        ("coordinator/", {"cli", "console", "config", "run", "prepare", "queries", "worker"}),
        ("results/", {"engine", "coordinator", "run", "cli", "console", "config", "plan", "worker"}),
        ("records/", {"engine", "coordinator", "plan", "results", "scan", "worker", "run", "cli", "config"}),
        ("space/", {"scan", "records", "worker", "plan", "engine"}),
        ("scan/", {"worker", "plan", "engine", "coordinator", "results"}),
        ("config.py", {"engine", "plan", "coordinator", "run", "cli"}),
        ("run.py", {"cli", "console", "queries"}),
        ("prepare.py", {"cli", "console", "queries", "run", "coordinator"}),
        ("leases.py", {"cli", "console", "queries", "run", "coordinator", "engine", "plan", "prepare"}),
        ("resuming.py", {"cli", "console"}),
        ("console.py", {"cli", "run", "engine", "config", "results"}),
    ],
)
def test_a_part_does_not_know_those_above_it(folder, unknown):
    assert not parts_known_to(folder) & unknown


def test_the_errors_and_the_records_know_nothing_of_ours():
    assert parts_known_to("errors.py") == set()
    assert parts_known_to("schema.py") == {"errors"}


def test_the_coordinator_knows_engines_by_their_verbs_alone():
    own = {each for name in FILES if name.startswith("coordinator/") for each in imports(name, at_top=False)}
    assert {each for each in own if each.startswith("orchestrator.engine")} <= {
        "orchestrator.engine.base.Ended", "orchestrator.engine.base.Engine",
    }  # fmt: skip


def test_plans_are_made_without_looking_or_touching():
    for name in FILES:
        if name.startswith("plan/"):
            touching = {"subprocess", "shutil", "socket", "time", "datetime", "random", "pathlib", "tempfile"}
            assert not {each.split(".")[0] for each in imports(name, at_top=False)} & touching, name
            opened = [
                node for node in ast.walk(tree(name)) if isinstance(node, ast.Call) and ast.unparse(node.func) == "open"
            ]
            assert not opened, name


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_at_one_sitting(name):
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_first_what_it_is(name):
    assert ast.get_docstring(tree(name))
