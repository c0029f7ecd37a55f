"""The process that owns the user's code: it runs the script as ``__main__``, in the role that its job names."""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import random
import signal
import sys
import traceback
from types import ModuleType
from typing import Any, Optional

from orchestrator.errors import OrchestratorError, ScriptError
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import RunDir
from orchestrator.scan.driver import DriverSession
from orchestrator.scan.hooks import install_hooks
from orchestrator.scan.redirect import install_stand_in, talos_hooks
from orchestrator.scan.seeding import pin_default_rng, seed_backend, seed_everything
from orchestrator.scan.serve import WorkerSession
from orchestrator.scan.session import enter_session
from orchestrator.schema import Job
from orchestrator.worker.limits import BackendLimits
from orchestrator.worker.world import prepare_world, world_hooks

_PR_SET_PDEATHSIG = 1


class PipeLine:
    """JSON lines over two inherited pipes; the supervisor's end going away ends this process."""

    def __init__(self, read: int, write: int) -> None:
        os.set_inheritable(read, False)
        os.set_inheritable(write, False)
        self._in = os.fdopen(read, "rb")
        self._out = os.fdopen(write, "wb", buffering=0)
        self._process = os.getpid()

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        self._only_here()
        self._out.write((json.dumps(message, separators=(",", ":")) + "\n").encode("utf-8", "replace"))

    def receive(self) -> dict[str, Any]:
        """Read one line."""
        self._only_here()
        line = self._in.readline()
        if not line:
            sys.stdout.flush()
            os._exit(0)
        word: dict[str, Any] = json.loads(line)
        return word

    def speak_here(self) -> None:
        """Take over the line in a process that the script forked to call Scan there; its parent waits meanwhile."""
        self._process = os.getpid()

    def _only_here(self) -> None:
        # A process that the user's code forked has the pipe too. If it comes back here it must not speak for this one.
        if os.getpid() != self._process:
            os._exit(1)


def run_script(job: Job, read: int, write: int, stage: int) -> int:
    """Run the script from its first line, with Talos's Scan taken over; the exit status is the script's own."""
    _be_the_victim()
    _end_with_parent()
    line = PipeLine(read, write) if job.role == "worker" else None
    limits = BackendLimits(job)
    try:
        limits.check_devices()
    except OrchestratorError as error:
        if line is not None:
            line.send({"type": "refuse", "error": str(error), "status": error.exit_code})
        return error.exit_code
    session: Any
    if line is not None:
        session = WorkerSession(job, limits.before_ready(line), stage)
    else:
        session = DriverSession(RunDir(job.driver), job.seed)
    enter_session(session)
    prepare_world(job)
    install_hooks({**talos_hooks(), **limits.hooks(), **world_hooks(), "numpy": _numpy})
    install_stand_in()
    random.seed(job.seed)
    seed_everything(job.seed)
    ended = _run_main(job)
    if line is not None:
        line.send({"type": "end", **ended})
    else:
        _report_driver(job, ended, session.scans)
    return int(ended.get("status", 1))


def _numpy(module: ModuleType) -> None:
    seed_backend("numpy", at_import=True)
    pin_default_rng(module)


def _be_the_victim() -> None:
    # When the container's memory runs out the kernel has to choose this process, never the supervisor.
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as stream:
            stream.write("1000")
    except OSError:
        return  # not on this kernel; the supervisor is small and therefore not the first choice anyway


def _end_with_parent() -> None:
    # A supervisor that is killed leaves nobody who knows of this process, which may hold a GPU for hours.
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    except (OSError, AttributeError):
        return  # not on this kernel; the pipe tells at the end of the trial
    if os.getppid() != parent:
        os._exit(1)


def _run_main(job: Job) -> dict[str, Any]:
    """Execute the file as Python would; how it ended as ``{kind, message, status}``."""
    try:
        module, code = _load_main(job)
    except OrchestratorError as error:
        return {"kind": "input", "message": str(error), "status": error.exit_code}
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's script is what this program is for
    except SystemExit as stop:
        status = _exit_status(stop)
        return {
            "kind": "exit" if status else "ok",
            "message": f"the script ended with exit status {status}",
            "status": status,
        }
    except OrchestratorError as error:
        line = _line_in(job.script, error)
        # A line of a file that was made for something else than a script would mean nothing to anybody.
        place = f"{os.path.basename(job.script)}:{line}: " if line and not job.folder else ""
        return {"kind": "input", "message": f"{place}{error}", "status": error.exit_code}
    except BaseException as error:  # noqa: BLE001 - the script's own failure is reported, not passed on
        _print_user_traceback(error)
        return {"kind": "exception", "message": _where(error, job.script), "status": 1}
    finally:
        _flush()
    return {"kind": "ok", "message": "", "status": 0}


def _load_main(job: Job) -> tuple[ModuleType, Any]:
    with open(job.script, "rb") as stream:
        source = stream.read()
    try:
        code = compile(source, job.script, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ScriptError(f"{job.script} is not Python: {error}") from error
    module = ModuleType("__main__")
    module.__dict__.update(__file__=job.script, __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv = [job.script, *job.arguments]
    sys.path.insert(0, job.folder or os.path.dirname(job.script))
    return module, code


def _exit_status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _print_user_traceback(error: BaseException) -> None:
    # Without the frames of this module, so that it reads as it would under plain python.
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _where(error: BaseException, script: str) -> str:
    """Name the error and the last line of the user's own file that it passed."""
    said = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
    line = _line_in(script, error)
    return f"{text} ({os.path.basename(script)}:{line})" if line else text


def _line_in(script: str, error: BaseException) -> Optional[int]:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script]
    return lines[-1] if lines else None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or the script's own object
            continue


def _report_driver(job: Job, ended: dict[str, Any], scans: int) -> None:
    if ended["kind"] == "ok" and scans == 0:
        name = os.path.basename(job.script)
        ended = {
            "kind": "input",
            "status": ScriptError.exit_code,
            "message": f"{name} ended without calling talos.Scan: call Scan in it (is it behind an if, or an argument?)",
        }
    write_json(RunDir(job.run).ended, {**ended, "scans": scans})
