"""Whose Scan it is: one at a time, over the script's threads and over the processes that it forked."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import threading
from collections.abc import Iterator

_BYTES = 8


class Turns:
    """Counts a script's Scans and lets one in at a time.

    The count is shared memory and the lock a file's, so that both hold in a process that the script forks, as scripts do to
    have a backend's memory back after each Scan.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = mmap.mmap(-1, _BYTES)
        self._threads = threading.Lock()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        # Whoever held it is not in this process; the file's lock is what counts between processes.
        self._threads = threading.Lock()

    @property
    def count(self) -> int:
        """How many Scans have begun."""
        return int.from_bytes(self._count[:_BYTES], "little")

    def take(self) -> int:
        """Begin the next Scan; its number, from 1. To be called inside ``alone``."""
        number = self.count + 1
        self._count[:_BYTES] = number.to_bytes(_BYTES, "little")
        return number

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other thread or process is inside."""
        with self._threads:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)
