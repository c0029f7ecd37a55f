"""Settings: flags over environment (``TALOS_ORCH_…``) over file over defaults, each value with where it came from.

The file is ``talos-orch.toml``, or ``[tool.talos-orch]`` in ``pyproject.toml``, in the working directory. This module and
``cli`` are the only ones that look at the environment.
"""

from __future__ import annotations

import dataclasses
import difflib
import getpass
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE, PYPROJECT, PREFIX = "talos-orch.toml", "pyproject.toml", "TALOS_ORCH_"
DEFAULT_SCRIPT = "experiment.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every option of ``launch``. None means: decide from the machine and the script."""

    script: str | None = None
    workers: int | str | None = None
    gpus: str | None = None
    gpus_per_worker: int = 1
    gpu_fraction: float | str | None = None
    gpu_memory: str | None = None
    wait_for_gpu: float | None = None
    name: str | None = None
    runs: str = "runs"
    engine: str = "docker"
    image: str | None = None
    backend: str | None = None
    build: bool = True
    memory: str | None = None
    cpus: float | None = None
    cpuset: str | None = None
    threads: int | None = None
    shm_size: str | None = None
    seed: int = 0
    keep_models: str = "best:10"
    project: str | None = None
    workdir: str | None = None
    network: str = "bridge"
    python: str | None = None
    env: tuple[str, ...] = ()
    env_file: tuple[str, ...] = ()
    mount: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    keep_going: bool = False
    sources: dict[str, str] = field(default_factory=dict, compare=False)


_FIELDS = {entry.name: entry for entry in dataclasses.fields(Settings) if entry.name != "sources"}
_NUMBERS: dict[str, type[int | float]] = {
    "workers": int, "gpus_per_worker": int, "threads": int, "seed": int,
    "cpus": float, "gpu_fraction": float, "wait_for_gpu": float,
}  # fmt: skip
_OR_AUTO = ("workers", "gpu_fraction")
_SEVERAL = ("env", "env_file", "mount", "secret")
_CHOICES = {
    "engine": ("docker", "process"),
    "backend": ("tensorflow", "torch", "both"),
    "network": ("bridge", "none"),
}


def load_settings(flags: Mapping[str, Any], environ: Mapping[str, str], folder: Path) -> Settings:
    """Merge the four sources; SettingsError names the source and the key of what is unknown or malformed."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(_FIELDS, "default")
    for name, value, where in (*_from_file(folder), *_from_environment(environ)):
        values[name] = _checked(name, value, where)
        sources[name] = where
    for name, value in flags.items():
        if value is None or value == ():
            continue
        checked = _checked(name, value, f"--{name.replace('_', '-')}")
        # What can be given several times is added to what the file and the environment say; the last one wins.
        values[name] = (*values.get(name, ()), *checked) if isinstance(checked, tuple) else checked
        sources[name] = "flag"
    return Settings(**values, sources=sources)


def stored_settings(settings: Settings) -> dict[str, Any]:
    """Give settings as JSON, to be read back by ``restore_settings``."""
    return dataclasses.asdict(settings)


def restore_settings(stored: Mapping[str, Any], flags: Mapping[str, Any], where: str) -> Settings:
    """Read settings that were stored, with ``flags`` (None: not given) over them; SettingsError names ``where``."""
    values: dict[str, Any] = {
        name: tuple(value) if name in _SEVERAL and isinstance(value, list) else value
        for name, value in stored.items()
        if name in _FIELDS and value is not None
    }
    values = {name: _checked(name, value, where) for name, value in values.items()}
    sources = dict(stored.get("sources") or {})
    for name, value in flags.items():
        if value is not None:
            values[name] = _checked(name, value, f"--{name.replace('_', '-')}")
            sources[name] = "flag"
    try:
        return Settings(**values, sources=sources)
    except TypeError as error:
        raise SettingsError(f"{where}: not the settings of a launch ({error})") from error


def _from_file(folder: Path) -> list[tuple[str, Any, str]]:
    own, project = folder / FILE, folder / PYPROJECT
    for path, table in ((own, None), (project, "talos-orch")):
        if not path.is_file():
            continue
        try:
            data: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise SettingsError(f"{path.name}: not readable as TOML ({error})") from error
        if table is not None:
            data = data.get("tool", {}).get(table)
        if data is not None and not isinstance(data, dict):
            raise SettingsError(f"{path.name}: tool.{table} is not a table: write [tool.{table}]")
        if data is not None:
            return [(_known(key, path.name), value, path.name) for key, value in data.items()]
    return []


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    found = []
    for variable, value in environ.items():
        name = variable[len(PREFIX) :].lower()
        # The path of a secret (see inputs.py), in a shell that was itself started by a sweep, is no setting.
        if variable.startswith(PREFIX) and not variable.startswith(f"{PREFIX}SECRET_"):
            known = _known(name, variable)
            found.append((known, tuple(value.split()) if known in _SEVERAL else value, variable))
    return found


def _known(key: str, where: str) -> str:
    name = key.replace("-", "_")
    if name not in _FIELDS:
        close = difflib.get_close_matches(name, _FIELDS, 1)
        hint = f"; did you mean {close[0].replace('_', '-')!r}?" if close else f"; known are: {', '.join(_FIELDS)}"
        raise SettingsError(f"{where}: unknown key {key!r}{hint}")
    return name


def _checked(name: str, value: Any, where: str) -> Any:
    """Bring a value into its field's type."""
    if name in _OR_AUTO and value == "auto":
        return value
    if name in _NUMBERS:
        try:
            number = _NUMBERS[name](value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or isinstance(value, bool) or (isinstance(value, float) and number != value):
            kind = "whole number" if _NUMBERS[name] is int else "number"
            raise SettingsError(f"{where}: {name} {value!r} is not a {kind}")
        return number
    if name in _CHOICES and value not in _CHOICES[name]:
        raise SettingsError(f"{where}: {name} {value!r}: give {' or '.join(_CHOICES[name])}")
    if name in ("build", "keep_going"):
        return _checked_switch(name, value, where)
    if name in _SEVERAL:
        return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
    if name == "gpus" and isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, (list, dict, bool)):
        raise SettingsError(f"{where}: {name} {value!r} is not a text")
    return str(value)


def _checked_switch(name: str, value: Any, where: str) -> bool:
    word = str(value).lower()
    if word not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise SettingsError(f"{where}: {name} {value!r}: give true or false")
    return word in ("1", "true", "yes", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the process finds around it, read once."""

    environ: dict[str, str]
    folder: Path
    uid: int
    gid: int
    user_name: str
    timezone: str
    cache: Path
    python: str


def read_surroundings(environ: Mapping[str, str]) -> Surroundings:
    """Look around: user, time zone, caches, interpreter."""
    home = environ.get("HOME") or "/"
    return Surroundings(
        environ=dict(environ),
        folder=Path.cwd(),
        uid=os.getuid(),
        gid=os.getgid(),
        user_name=_user_name(),
        timezone=_timezone(environ),
        cache=Path(environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")) / "talos-orch",
        python=sys.executable,
    )


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in many containers
        return "talos"


def _timezone(environ: Mapping[str, str]) -> str:
    if environ.get("TZ"):
        return environ["TZ"]
    link = os.path.realpath("/etc/localtime")
    _, found, name = link.partition("/zoneinfo/")
    return name if found else "UTC"
