"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from typing import Any

from orchestrator.errors import RecordError

# The largest control file that is believed; user code can write into its own run directory.
LARGEST = 512 * 1024 * 1024


def write_text(path: str, text: str) -> None:
    """Put ``text`` at ``path`` in one step: a temporary file beside it, fsync, rename.

    Raises OSError. The name of the temporary file holds the process id, so that two writers never share one.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)


def write_json(path: str, value: Any) -> None:
    """Put ``value`` at ``path`` as JSON, in one step, one key per line so that people can read it."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str) -> Any:
    """Read a JSON file of a sweep.

    Raises FileNotFoundError when it is not there, and RecordError naming the file (and the line) when it is damaged,
    too large, or not a plain file: a link or FIFO left by user code is not followed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST:
            raise RecordError(f"{path}: larger than {LARGEST} bytes, not read")
        data = stream.read()
    try:
        return json.loads(data)
    except ValueError as error:
        raise RecordError(f"{path}: not readable as JSON ({error})") from error
