"""A private copy of a project, where the engine cannot give a copy-on-write view."""

from __future__ import annotations

import os
import shutil

from orchestrator.errors import EnvironmentNotReadyError
from orchestrator.plan.sizes import MIB, show_size

LARGEST_COPY = 256 * MIB
# Nothing that a script reads; each can be larger than the project itself.
_LEFT_OUT = frozenset((".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".tox"))


def project_size(project: str, skip: str) -> int:
    """Count the bytes that a copy would take; stops counting over ``LARGEST_COPY``. ``skip`` is left out."""
    total = 0
    for path, folders, files in os.walk(project):
        folders[:] = [name for name in folders if name not in _LEFT_OUT and os.path.join(path, name) != skip]
        for name in files:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue
        if total > LARGEST_COPY:
            break
    return total


def copy_project(project: str, target: str, skip: str) -> None:
    """Copy the project without version control and environments; EnvironmentNotReadyError if it is too large."""
    size = project_size(project, skip)
    if size > LARGEST_COPY:
        raise EnvironmentNotReadyError(
            f"{project} is over {show_size(LARGEST_COPY)} and this engine cannot give workers a private view of it: "
            "name a smaller folder with --project"
        )

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in _LEFT_OUT or os.path.join(folder, name) == skip}

    shutil.copytree(project, target, symlinks=True, ignore=ignore, dirs_exist_ok=True, ignore_dangling_symlinks=True)
