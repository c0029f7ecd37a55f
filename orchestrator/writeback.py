"""What the driver's script wrote, put into the project at its end, and taken out again where a resume runs the script anew.

A view keeps changes as the kernel's overlay does: new and changed files as themselves, a deletion as a character device
0/0, a folder that replaced another one with the attribute ``user.overlay.opaque``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import RecordError
from orchestrator.records.atomic import open_plain

_OPAQUE = "user.overlay.opaque"
JOURNAL = "written.jsonl"
_ORIGINALS = "originals"


@dataclass
class WriteBack:
    """Moves changes into ``project``. What it replaces or deletes is moved below ``kept``, with a journal of what it did."""

    project: str
    kept: str
    failed: list[str] = field(default_factory=list)

    def move_in(self, changes: str) -> list[str]:
        """Move everything under ``changes`` into the project; the paths that could not be, which then stay where they are.

        No link is followed on either side. What is neither file, folder nor link (a socket, say) is left behind.
        """
        self._folder(changes, "")
        return self.failed

    def _folder(self, changes: str, inside: str) -> None:
        with os.scandir(changes) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                path = os.path.join(inside, entry.name)
                try:
                    self._apply(entry, path)
                except OSError:
                    self.failed.append(os.path.join(self.project, path))

    def _apply(self, entry: os.DirEntry[str], path: str) -> None:
        status = entry.stat(follow_symlinks=False)
        target = os.path.join(self.project, path)
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            with self._in_place_of(path):
                os.unlink(entry.path)
        elif stat.S_ISDIR(status.st_mode):
            if not stat.S_ISDIR(_mode(target)) or _is_opaque(entry.path):
                with self._in_place_of(path):
                    os.mkdir(target, stat.S_IMODE(status.st_mode))
                self._note(path, "folder")
            self._folder(entry.path, path)
            with contextlib.suppress(OSError):  # something in it failed and stays
                os.rmdir(entry.path)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            with self._in_place_of(path):
                _move(entry.path, target)
            self._note(path, "file", _identity(target))

    @contextlib.contextmanager
    def _in_place_of(self, path: str) -> Iterator[None]:
        """Move what is there out of the way, to where it can be had back from; it is back at once where the step fails."""
        target, original = os.path.join(self.project, path), os.path.join(self.kept, _ORIGINALS, path)
        there = _mode(target) != 0
        if there:
            self._note(path, "kept")  # before it is moved: nothing is ever moved that the journal does not name
            os.makedirs(os.path.dirname(original), exist_ok=True)
            _move(target, original)
        try:
            yield
        except OSError:
            if there and not _mode(target):
                _move(original, target)
            raise

    def _note(self, path: str, what: str, identity: list[int] | None = None) -> None:
        os.makedirs(self.kept, exist_ok=True)
        with open(os.path.join(self.kept, JOURNAL), "a", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(json.dumps({"path": path, "what": what, "identity": identity}) + "\n")


def take_out(project: str, kept: str, aside: str) -> list[str]:
    """Bring the project back to what it was before ``WriteBack``: what was written goes below ``aside``.

    Gives the paths that somebody has changed since; they stay as they are, and so does what they replaced, in ``kept``, which
    is else gone afterwards.
    """
    changed = []
    for entry in reversed(list(_journal(kept))):
        path, target = entry["path"], os.path.join(project, entry["path"])
        original = os.path.join(kept, _ORIGINALS, path)
        if entry["what"] == "file" and _mode(target):
            if _identity(target) != entry["identity"]:
                changed.append(target)
                continue
            os.makedirs(os.path.dirname(os.path.join(aside, path)), exist_ok=True)
            _move(target, os.path.join(aside, path))
        elif entry["what"] == "folder":
            with contextlib.suppress(OSError):  # somebody has put something into it
                os.rmdir(target)
        if _mode(original) and not _mode(target):
            _move(original, target)
    left = [
        os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(kept, _ORIGINALS)) for name in names
    ]
    if not left:  # else somebody has put another file in the place of one: both stay
        shutil.rmtree(kept, ignore_errors=True)
    return changed


def _journal(kept: str) -> Iterator[dict[str, Any]]:
    """Read what was written, in order; a torn last line is what was not finished."""
    try:
        with open_plain(os.path.join(kept, JOURNAL)) as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
            path = str(entry["path"])
        except (ValueError, KeyError, TypeError):
            continue
        if os.path.isabs(path) or ".." in path.split(os.sep):
            raise RecordError(f"{os.path.join(kept, JOURNAL)}: {path!r} leads out of the project")
        yield {"path": path, "what": str(entry.get("what")), "identity": entry.get("identity")}


def _identity(path: str) -> list[int]:
    status = os.lstat(path)
    return [stat.S_IFMT(status.st_mode), status.st_size, status.st_mtime_ns]


def _move(source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except OSError:  # another file system
        if stat.S_ISDIR(_mode(source)):
            shutil.copytree(source, target, symlinks=True)
            shutil.rmtree(source)
            return
        beside = f"{target}.{os.getpid()}.tmp"
        shutil.copy2(source, beside, follow_symlinks=False)
        os.replace(beside, target)
        os.unlink(source)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _is_opaque(path: str) -> bool:
    try:
        return os.getxattr(path, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False
