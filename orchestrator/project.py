"""The script and the folder around it, on this machine's disk."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import stat
import tokenize
from pathlib import Path

from orchestrator.errors import EnvironmentNotReadyError, InputError, ScriptError, SettingsError
from orchestrator.plan.sizes import MIB, show_size

_MARKERS = ("talos-orch.toml", "pyproject.toml", "setup.py", "setup.cfg", ".git")
KINDS = (".py", ".ipynb", ".yaml", ".yml")
LEAST_FREE = 256 * MIB


def find_script(asked: str | None, default: str, folder: Path) -> Path:
    """Give the script's absolute path; ScriptError when there is none or it is no Python file."""
    path = (folder / (asked or default)).absolute()
    if not path.exists():
        hint = "" if asked else "; name one: talos-orch launch my_scan.py, or script = … in talos-orch.toml"
        raise ScriptError(f"{asked or default}: no such file in {folder}{hint}")
    if not path.is_file() or path.suffix not in KINDS:
        raise ScriptError(f"{asked or default}: not a script (.py), notebook (.ipynb) or Talos manifest (.yaml)")
    return Path(os.path.realpath(path))


def read_source(script: Path) -> str:
    """Read the script as Python does: as UTF-8, or as its coding line says; ScriptError otherwise."""
    encoding = "utf-8-sig"
    try:
        data = script.read_bytes()
        if script.suffix == ".py" and not data.startswith(codecs.BOM_UTF8):
            first = (line.decode("latin-1").encode("ascii", "replace") for line in data.splitlines(keepends=True)[:2])
            encoding = tokenize.detect_encoding(lambda: next(first))[0]
        return io.TextIOWrapper(io.BytesIO(data), encoding=encoding).read()
    except UnicodeDecodeError as error:
        raise ScriptError(
            f"{script.name}: not {error.encoding.upper()} text ({error.reason} at byte {error.start})"
        ) from error
    except SyntaxError as error:  # of the coding line
        raise ScriptError(f"{script.name}: {error}") from error
    except OSError as error:
        raise ScriptError(f"{script}: cannot be read ({error.strerror})") from error


def local_modules(script: Path) -> frozenset[str]:
    """Name the modules and packages that lie beside the script."""
    names = set()
    for path in script.parent.iterdir():
        if path.suffix == ".py" and path != script:
            names.add(path.stem)
        elif path.is_dir():
            names.add(path.name)
    return frozenset(names)


def find_project(script: Path, asked: str | None, folder: Path, home: Path) -> Path:
    """Give the folder that the containers see: the one asked for, else the nearest with a project's mark, else the script's.

    A home directory or the root is never taken because of such a mark.
    """
    if asked is not None:
        project = Path(os.path.realpath(folder / asked))
        if not script.is_relative_to(project):
            raise SettingsError(f"--project {asked}: the script {script} does not lie in it")
        return project
    home = Path(os.path.realpath(home))  # as the script's own path is
    for parent in script.parents:
        if parent in (home, *home.parents):
            break
        if any((parent / marker).exists() for marker in _MARKERS):
            return parent
    return script.parent


def find_workdir(script: Path, asked: str | None, folder: Path, project: Path) -> Path:
    """Give the script's working directory: its own folder, unless another one within the project is asked for."""
    if asked is None:
        return script.parent
    workdir = Path(os.path.realpath(folder / asked))
    if not workdir.is_dir() or not workdir.is_relative_to(project):
        raise SettingsError(f"--workdir {asked}: give a folder within the project {project}")
    return workdir


def check_name(runs: Path, name: str) -> None:
    """Raise InputError for a name that is in use."""
    if (runs / name).exists():
        raise InputError(
            f"--name {name}: {runs / name} exists already; give another name, or go on with it: talos-orch resume {name}"
        )


def check_runs(runs: Path, data_root: str | None) -> None:
    """See that a sweep's folder can be made and filled: EnvironmentNotReadyError for the disk."""
    nearest = next(parent for parent in (runs, *runs.parents) if parent.exists())
    if not nearest.is_dir():
        raise EnvironmentNotReadyError(f"{runs}: {nearest} is not a folder; give another one with --runs")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise EnvironmentNotReadyError(f"{runs}: not writable for you; give another folder with --runs")
    for path, what in ((nearest, "the run folder"), (Path(data_root or nearest), "Docker's own data")):
        if path.exists() and (free := shutil.disk_usage(path).free) < LEAST_FREE:
            raise EnvironmentNotReadyError(
                f"{path}: only {show_size(free)} free for {what}; a sweep needs {show_size(LEAST_FREE)}, make room first"
            )


def real_path(path: str) -> str | None:
    """Give the real path of a plain file or folder; None for a socket, a device, or what is not there."""
    real = os.path.realpath(path)
    try:
        mode = os.stat(real).st_mode
    except OSError:
        return None
    return real if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else None


def outward_links(*folders: Path) -> tuple[str, ...]:
    """List where the links at the top of these folders lead: data sets are often linked into a project."""
    found = [
        os.path.realpath(path) for folder in dict.fromkeys(folders) for path in folder.iterdir() if path.is_symlink()
    ]
    return tuple(dict.fromkeys(found))
