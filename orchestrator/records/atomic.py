"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

from orchestrator.errors import RecordError

# The largest control file that is believed; user code can write into its own run directory.
LARGEST = 512 * 1024 * 1024


def write_text(path: str, text: str, mode: int = 0o666) -> None:
    """Put ``text`` at ``path`` in one step: a temporary file beside it, fsync, rename.

    Raises OSError. The name of the temporary file holds the process id, so that two writers never share one; a link of
    that name, left by user code, is not followed. A lone surrogate becomes its escape, which JSON reads back.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def write_json(path: str, value: Any, mode: int = 0o666) -> None:
    """Put ``value`` at ``path`` as JSON, in one step, one key per line so that people can read it."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n", mode)


def read_json(path: str) -> Any:
    """Read a JSON file of a sweep.

    Raises FileNotFoundError when it is not there, and RecordError naming the file (and the line) when it is damaged,
    too large, or not a plain file: a link or FIFO left by user code is not followed.
    """
    with open_plain(path) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST:
            raise RecordError(f"{path}: larger than {LARGEST} bytes, not read")
        data = stream.read()
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: not readable as JSON ({error})") from error


def open_plain(path: str) -> BinaryIO:
    """Open a plain file for reading; RecordError for a link, FIFO, folder or device, without waiting for any of them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise RecordError(f"{path}: not a plain file, not read") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RecordError(f"{path}: not a plain file, not read")
    return os.fdopen(descriptor, "rb")


@contextlib.contextmanager
def open_folder(root: str, inside: str) -> Iterator[int]:
    """Open the folder ``inside`` (relative) below ``root`` and give its descriptor; OSError if a link is on the way."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in inside.split(os.sep):
            deeper = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)
