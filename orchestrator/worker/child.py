"""The trial process seen from its supervisor: start, talk, output, end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Optional

from orchestrator.worker import enter

LOG_LIMIT = 256 * 1024 * 1024
_LOOK_EVERY = 0.1  # seconds between two looks at a silent child: is it still there?
_GRACE = 5.0


class LogFile:
    """An append-only file that stops growing at ``LOG_LIMIT`` bytes and says so."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
        self._left = LOG_LIMIT - os.fstat(self._descriptor).st_size
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Append; what is over the limit is dropped. A full disk must not stop the trials, so OSError is not raised."""
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(data)
            if self._left <= 0:
                data += b"\n[talos-orch: the log is full and stops here]\n"
            try:
                os.write(self._descriptor, data)
            except OSError:
                self._left = 0


class Tee(threading.Thread):
    """Copies one output of the child to files and to our own output, until everyone who holds it has closed it."""

    def __init__(self, source: int, logs: list[LogFile], echo: int) -> None:
        super().__init__(daemon=True)
        self._source, self._logs, self._echo = source, logs, echo

    def run(self) -> None:
        """Copy."""
        while True:
            data = os.read(self._source, 65536)
            if not data:
                return
            for log in self._logs:
                log.write(data)
            try:
                os.write(self._echo, data)
            except OSError:
                self._echo = os.open(os.devnull, os.O_WRONLY)


class Child:
    """A running trial process. ``job`` is the path of its job file."""

    def __init__(self, job: str, stage: int, out: list[LogFile], err: list[LogFile], *, talk: bool) -> None:
        ours_in, theirs_out = os.pipe() if talk else (-1, -1)
        theirs_in, ours_out = os.pipe() if talk else (-1, -1)
        command = [
            sys.executable,
            os.path.abspath(enter.__file__),
            "trial",
            job,
            str(theirs_in),
            str(theirs_out),
        ]
        self._process = subprocess.Popen(
            [*command, str(stage)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs_in, theirs_out) if talk else (),
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - as asked for above
        assert self._process.stderr is not None  # noqa: S101
        self._tees = [Tee(self._process.stdout.fileno(), out, 1), Tee(self._process.stderr.fileno(), err, 2)]
        for tee in self._tees:
            tee.start()
        self._in, self._out, self._buffer = ours_in, ours_out, b""
        if talk:
            os.close(theirs_in)
            os.close(theirs_out)

    def send(self, message: dict[str, Any]) -> None:
        """Say something; a child that is gone is noticed by ``receive``."""
        try:
            os.write(self._out, (json.dumps(message) + "\n").encode())
        except BrokenPipeError:
            return

    def receive(self, timeout: Optional[float] = None) -> Optional[dict[str, Any]]:
        """Wait for the child's next word; None when it has ended, or after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], _LOOK_EVERY)
            if ready:
                data = os.read(self._in, 1 << 20)
                if not data:
                    return None
                self._buffer += data
            elif self.ended() or (deadline is not None and time.monotonic() > deadline):
                # A helper of a dead child may hold the pipe open, so that its end is not seen there.
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def ended(self) -> bool:
        """Say whether the process is gone."""
        return self._process.poll() is not None

    def wait(self) -> int:
        """Wait for its end and its output; the exit status, negative for a signal."""
        status = self._process.wait()
        for tee in self._tees:
            tee.join(timeout=1.0)  # a grandchild may hold the output open
        return status

    def end(self) -> int:
        """Terminate it with everything that it started; the exit status."""
        for number, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, None)):
            if self.ended():
                break
            _signal_group(self._process.pid, number)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        _signal_group(self._process.pid, signal.SIGKILL)
        status = self.wait()
        if self._in >= 0:
            os.close(self._in)
            os.close(self._out)
            self._in = self._out = -1
        return status

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        _signal_group(self._process.pid, number)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return
