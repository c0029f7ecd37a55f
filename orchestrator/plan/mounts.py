"""What of this machine the containers see beside the project: asked for, or named by the script."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.errors import SettingsError
from orchestrator.plan.specs import Bind

# Folders of the image itself: mounting the host's over them would break it.
_SYSTEM = tuple(
    f"/{name}"
    for name in ["bin", "boot", "dev", "etc", "lib", "lib64", "opt", "proc", "run", "sbin", "sys", "tmp", "usr", "var"]
)
# Whoever reaches the engine's socket or the kernel's files has the whole machine.
_CONTROL = ("/proc", "/sys", "/dev", "/run", "/var/run")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounts:
    """``notes`` say what was mounted without being asked for, and what cannot be."""

    binds: tuple[Bind, ...]
    notes: tuple[str, ...] = ()


Look = Callable[[str], "str | None"]
"""Gives the real path of a plain file or folder, links followed; None for anything else (a socket, a device, nothing)."""


def parse_mount(text: str, folder: str, look: Look) -> Bind:
    """Read ``PATH[:ro|rw]`` (default ro), a path on this machine that is seen under the same name inside."""
    path, colon, mode = text.rpartition(":")
    if not colon or mode not in ("ro", "rw"):
        path, mode = text, "ro"
    full = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
    if full == "/" or full in _SYSTEM:
        raise SettingsError(f"--mount {text}: the image has its own {full}; name a folder below it")
    real = look(full)
    if any(within(place, control) for place in (full, real or full) for control in _CONTROL):
        raise SettingsError(f"--mount {text}: {real or full} controls this machine and is never mounted")
    if real is None:
        raise SettingsError(f"--mount {text}: {full} is no file or folder of this machine")
    return Bind(source=full, target=full, read_only=mode == "ro")


def named_mounts(paths: tuple[str, ...], workdir: str, project: str, home: str, look: Look) -> Mounts:
    """Mount, read-only, what a script names outside its project and what is there: a file's folder, or the folder.

    Relative names count from the working directory. A root, a home directory and the image's own folders are left alone.
    """
    binds: dict[str, Bind] = {}
    notes: list[str] = []
    for text in paths:
        if _WINDOWS.match(text):
            notes.append(
                f"the script names {text!r}, a Windows path, which is not here: change it, or mount a folder (--mount)"
            )
            continue
        name = os.path.normpath(os.path.join(workdir, text.replace("~", home, 1) if text.startswith("~/") else text))
        full, real = _there(name, look)
        if full is None or real is None:
            continue
        if full != name and within(project, full):
            continue  # nothing of that name is there, and its folder would be all around the project
        if any(within(place, project) or within(home, place) or _is_system(place) for place in {full, real}):
            continue
        if full not in binds and not any(within(full, other) for other in binds):
            binds[full] = Bind(source=full, target=full, read_only=True)
            notes.append(
                f"{full} is mounted read-only, since the script names {text!r} (--mount PATH:rw to write there)"
            )
    return Mounts(binds=tuple(binds.values()), notes=tuple(notes))


def _there(path: str, look: Look) -> tuple[str | None, str | None]:
    """Give the path and its real one if it is there, else its folder's (a file that is to be written, a pattern)."""
    for candidate in (path, os.path.dirname(path)):
        if (real := look(candidate)) is not None:
            return candidate, real
    return None, None


def within(path: str, folder: str) -> bool:
    """Say whether a path is a folder or lies below it; both absolute and normal."""
    return os.path.commonpath([path, folder]) == folder


def _is_system(path: str) -> bool:
    # Users' data lies in these too, but only below their top.
    deep = ("/tmp", "/opt", "/var/tmp")  # noqa: S108 - names to look for
    if any(within(path, folder) and path != folder for folder in deep):
        return False
    return any(within(path, folder) for folder in _SYSTEM)
