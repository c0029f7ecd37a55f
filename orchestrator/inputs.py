"""Variables and secrets for the script: from the command line, from files."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.config import Settings, Surroundings
from orchestrator.errors import SettingsError
from orchestrator.plan.specs import Bind

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRETS = "/run/secrets"


def read_environment(
    settings: Settings, around: Surroundings, *, isolated: bool
) -> tuple[dict[str, str], tuple[Bind, ...]]:
    """Give the script's own variables and the files of its secrets.

    ``-e`` wins over ``--env-file``. A secret is only ever a file: its path is in ``TALOS_ORCH_SECRET_NAME``, its content
    in no variable, command line or ``docker inspect``.
    """
    values: dict[str, str] = {}
    for name in settings.env_file:
        values |= _read_file(around.folder / name, name)
    for item in settings.env:
        key, equals, value = item.partition("=")
        if not key or (not equals and key not in around.environ):
            raise SettingsError(f"-e {item}: give KEY=VALUE, or the name of a variable that is set here")
        values[key] = value if equals else around.environ[key]
    binds = []
    for item in settings.secret:
        key, _, name = item.partition("=")
        path = (around.folder / name).resolve()
        if not _KEY.fullmatch(key) or not name or not path.is_file():
            raise SettingsError(f"--secret {item}: give NAME=FILE, the path of a file on this machine")
        inside = f"{SECRETS}/{key}" if isolated else str(path)
        values[f"TALOS_ORCH_SECRET_{key.upper()}"] = inside
        binds.append(Bind(source=str(path), target=inside, read_only=True))
    return values, tuple(binds)


def _read_file(path: Path, name: str) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--env-file {name}: not readable ({error})") from error
    values = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.removeprefix("export ").partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise SettingsError(f"--env-file {name}:{number}: give KEY=VALUE lines")
        value = value.strip()
        values[key.strip()] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return values
