"""Who has how much of which GPU on this machine, over all sweeps of all users: an engine does no such accounting.

A lease is a small file that its owner holds with ``flock`` while it lives, so a dead owner's lease is seen to be dead. It
counts on for as long as workers of that sweep still run without their launch.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import EnvironmentNotReadyError, RecordError
from orchestrator.records.atomic import open_plain

FOLDER = "/tmp/talos-orch-gpus"  # noqa: S108 - one for all users of the machine, made sticky
_WHOLE = 1 + 1e-9
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A sweep that has GPUs; ``parts`` of each device's memory by UUID, ``folder`` the sweep's, ``engine`` where it runs."""

    sweep: str
    folder: str
    pid: int
    parts: dict[str, float]
    engine: str = ""


StillRuns = Callable[[Holder], bool]


class BusyError(EnvironmentNotReadyError):
    """GPUs that are asked for are in another sweep's hands."""


@contextlib.contextmanager
def leased(
    parts: Mapping[str, float], sweep: str, folder: str, engine: str, still_runs: StillRuns, *, place: str = FOLDER
) -> Iterator[None]:
    """Hold ``parts`` of GPUs; BusyError names who has them.

    ``still_runs`` says of a sweep whose launch is gone whether something of it runs, or may run for all that can be seen. The
    lease outlives this call where something of this sweep could not be ended.
    """
    if not parts:
        yield
        return
    holder = Holder(sweep=sweep, folder=folder, pid=os.getpid(), parts=dict(parts), engine=engine)
    path, descriptor = _take(holder, still_runs, place)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if not still_runs(holder):
                os.unlink(path)
        os.close(descriptor)


def holders(still_runs: StillRuns, place: str = FOLDER) -> list[Holder]:
    """List the sweeps that have GPUs; leases of the dead are removed on the way."""
    found = []
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(".json"))
    except FileNotFoundError:
        return []
    for name in names:
        path = os.path.join(place, name)
        with contextlib.suppress(OSError, RecordError), open_plain(path) as stream:
            holder = _read(stream.read(_LARGEST))
            if holder is None:
                continue
            if _is_held(stream.fileno()) or still_runs(holder):
                found.append(holder)
            else:
                os.unlink(path)
    return found


def _take(holder: Holder, still_runs: StillRuns, place: str) -> tuple[str, int]:
    with _one_at_a_time(place):
        others = [each for each in holders(still_runs, place) if each.folder != holder.folder]
        _check(holder, others)
        path = os.path.join(place, f"{uuid.uuid4().hex}.json")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        text = json.dumps(
            {
                "schema": 1,
                "sweep": holder.sweep,
                "folder": holder.folder,
                "pid": holder.pid,
                "engine": holder.engine,
                "parts": holder.parts,
            }
        )
        os.write(descriptor, text.encode("utf-8", "backslashreplace"))
    return path, descriptor


def _check(holder: Holder, others: list[Holder]) -> None:
    taken = Counter[str]()
    for other in others:
        taken.update(other.parts)
    for device, part in holder.parts.items():
        if taken[device] + part > _WHOLE:
            whose = ", ".join(sorted(f"{each.sweep} (pid {each.pid})" for each in others if device in each.parts))
            raise BusyError(
                f"GPU {device}: {taken[device]:.0%} of it is in use by {whose}, and this sweep needs {part:.0%}; "
                "wait for it with --wait-for-gpu SECONDS, or name another GPU"
            )


@contextlib.contextmanager
def _one_at_a_time(place: str) -> Iterator[None]:
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(place)
            os.chmod(place, 0o1777)  # noqa: S103 - for all users, each of whom can remove only what is his
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.join(place, "lock"), flags, 0o666)
        with contextlib.suppress(PermissionError):  # another user made it, and made it writable
            os.fchmod(descriptor, 0o666)
    except OSError as error:
        raise EnvironmentNotReadyError(f"{place}: GPUs cannot be leased there ({error.strerror})") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(data: bytes) -> Holder | None:
    """Read a lease; None for what is none: anybody may write there."""
    try:
        raw: Any = json.loads(data)
        parts = {str(device): float(part) for device, part in raw["parts"].items()}
        return Holder(
            sweep=str(raw["sweep"])[:100],
            folder=str(raw["folder"]),
            pid=int(raw["pid"]),
            parts=parts,
            engine=str(raw.get("engine", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
