"""What the driver's script wrote, put into the project at its end.

A view keeps changes as the kernel's overlay does: new and changed files as themselves, a deletion as a character device
0/0, a folder that replaced another one with the attribute ``user.overlay.opaque``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat

_OPAQUE = "user.overlay.opaque"


def write_back(changes: str, project: str) -> list[str]:
    """Move everything under ``changes`` into ``project``; the paths that could not be, which then stay where they are.

    No link is followed on either side. What is neither file, folder nor link (a socket, say) is left behind.
    """
    failed: list[str] = []
    with os.scandir(changes) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            target = os.path.join(project, entry.name)
            try:
                _apply(entry, target, failed)
            except OSError:
                failed.append(target)
    return failed


def _apply(entry: os.DirEntry[str], target: str, failed: list[str]) -> None:
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        _delete(target)
        os.unlink(entry.path)
    elif stat.S_ISDIR(status.st_mode):
        if not stat.S_ISDIR(_mode(target)) or _is_opaque(entry.path):
            _delete(target)
            os.mkdir(target, stat.S_IMODE(status.st_mode))
        failed += write_back(entry.path, target)
        with contextlib.suppress(OSError):  # something in it failed and stays
            os.rmdir(entry.path)
    elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        if stat.S_ISDIR(_mode(target)):
            _delete(target)
        _move(entry.path, target)


def _move(source: str, target: str) -> None:
    try:
        os.replace(source, target)
    except OSError:  # another file system
        beside = f"{target}.{os.getpid()}.tmp"
        shutil.copy2(source, beside, follow_symlinks=False)
        os.replace(beside, target)
        os.unlink(source)


def _delete(path: str) -> None:
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        shutil.rmtree(path)
    elif mode:
        os.unlink(path)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0


def _is_opaque(path: str) -> bool:
    try:
        return os.getxattr(path, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False
