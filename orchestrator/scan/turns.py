"""Whose Scan it is: one at a time, over the script's threads and over the processes that it forked."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import multiprocessing
import os
import re
import threading
from collections.abc import Iterator

from orchestrator.errors import InputError

_LONG_NUMBERS = re.compile(r"\d{4,}|[0-9a-f]{8,}")
_MOST = 1 << 16  # Scans of one script


def several() -> bool:
    """Say whether this script has other threads, or is a process that it forked: others may come to a Scan too."""
    return threading.active_count() > 1 or multiprocessing.parent_process() is not None


def same_but_for_time(one: str, other: str) -> bool:
    """Say whether two names differ in long numbers alone: the time or a random id, made anew in each process."""
    return _LONG_NUMBERS.sub("#", one) == _LONG_NUMBERS.sub("#", other)


class Turns:
    """Numbers a script's Scans and lets one in at a time.

    The numbers are shared memory and the lock a file's, so that both hold in a process that the script forks, as scripts do to
    have a backend's memory back after each Scan.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._flags = mmap.mmap(-1, _MOST)
        self._threads = threading.Lock()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        # Whoever held it is not in this process; the file's lock is what counts between processes.
        self._threads = threading.Lock()

    @property
    def taken(self) -> set[int]:
        """The numbers of the Scans that have begun, from 1."""
        flags = self._flags[:_MOST]
        return {number for number in range(1, flags.rfind(b"x") + 1) if flags[number : number + 1] == b"x"}

    @property
    def count(self) -> int:
        """How many Scans have begun."""
        return len(self.taken)

    def take(self, number: int) -> None:
        """Begin a Scan. To be called inside ``alone``; InputError for more Scans than a script can have."""
        if number >= _MOST:
            raise InputError(f"Scan {number}: a script can have {_MOST - 1}")
        self._flags[number] = ord("x")

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
