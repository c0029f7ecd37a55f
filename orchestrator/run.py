"""The story of a launch."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from orchestrator.config import Settings, Surroundings, stored_settings
from orchestrator.coordinator.clock import Clock
from orchestrator.coordinator.coordinator import Coordinator
from orchestrator.coordinator.events import Event, StageBegun, StageEnded, Tick
from orchestrator.coordinator.members import Members
from orchestrator.coordinator.stopping import StopSwitch
from orchestrator.engine.open import build_worker_image, erase_scratch, same_engine
from orchestrator.errors import EnvironmentNotReadyError, ImageError, InputError, OrchestratorError
from orchestrator.leases import BusyError, Holder, leased
from orchestrator.prepare import Prepared, prepare
from orchestrator.records.atomic import write_json, write_text
from orchestrator.records.layout import SweepDir
from orchestrator.results.frame import sweep_frame, write_tables
from orchestrator.schema import COMPLETED, FAILED, LOST, SCHEMA, SweepFile, SweepState
from orchestrator.writeback import WriteBack

FAILED_TRIALS, STOPPED, KILLED = 3, 4, 130

Show = Callable[[Event], None]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a launch ended. ``message`` is one line, or None when all went well."""

    exit_code: int
    folder: SweepDir
    message: str | None = None


def launch(
    settings: Settings, around: Surroundings, arguments: tuple[str, ...], switch: StopSwitch, clock: Clock,
    show: Show, say: Say,
) -> Finished:  # fmt: skip
    """Prepare, build what is missing, run, merge, clean up."""
    prepared = prepare(settings, around, arguments, stamp_of(clock))
    prepared = provide_image(prepared, settings, around, say)
    folder = SweepDir(str(prepared.runs / prepared.sweep.name))
    with gpus_of(prepared, folder, settings.wait_for_gpu, clock, say):
        create_folder(prepared, folder)
        remember_launch(folder, settings, around, arguments)
        say(f"sweep {prepared.sweep.name}: {len(prepared.shares.workers)} workers, folder {folder.path}")
        for note in prepared.sweep.notes:
            say(f"note: {note}")
        switch.armed = True
        with locked(folder):
            return carry_out(prepared, folder, members_of(prepared, folder), switch, clock, show)


@contextlib.contextmanager
def gpus_of(prepared: Prepared, folder: SweepDir, patience: float | None, clock: Clock, say: Say) -> Iterator[None]:
    """Hold the sweep's parts of GPUs on this machine; wait ``patience`` seconds for others to give them back."""

    def still_runs(holder: Holder) -> bool:
        if not os.path.isdir(holder.folder):
            return False
        engine = same_engine(prepared.engine, prepared.info, holder.engine)
        try:
            gone = {each.member for each in engine.ended(holder.folder)} if engine is not None else set()
            return engine is None or any(member not in gone for member in engine.members(holder.folder))
        except (OrchestratorError, OSError):
            return True  # nobody can tell, and two sweeps on one device hurt both

    parts = prepared.shares.gpu_parts(prepared.info.machine)
    deadline = clock.steady() + (patience or 0.0)
    waiting = False
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(leased(parts, folder.name, folder.path, prepared.info.endpoint, still_runs))
                break
            except BusyError as error:
                if clock.steady() >= deadline:
                    raise
                if not waiting:
                    say(f"waiting up to {patience:.0f} s: {str(error).partition(';')[0]}")
                waiting = True
                clock.sleep(1.0)
        yield


def members_of(prepared: Prepared, folder: SweepDir) -> Members:
    """Give the sweep's containers to be, none of them started."""
    return Members(prepared.engine, prepared.sweep, folder, prepared.shares, prepared.world)


def provide_image(prepared: Prepared, settings: Settings, around: Surroundings, say: Say) -> Prepared:
    """Build the worker image if it is one of ours and missing; ImageError if that is not wanted or fails."""
    if prepared.request is None or prepared.image_id is not None:
        return prepared
    if not settings.build:
        raise ImageError(f"{prepared.image} is not built yet: talos-orch build {prepared.request.device}")
    say(f"building the worker image {prepared.image}, once (some minutes)")
    built = build_worker_image(prepared.engine, prepared.request, around, say)
    return replace(prepared, image_id=built, sweep=replace(prepared.sweep, image_id=built))


def create_folder(prepared: Prepared, folder: SweepDir) -> None:
    """Make the sweep's folder; from here on it is the only source of truth."""
    try:
        os.makedirs(prepared.runs, exist_ok=True)
        os.mkdir(folder.path)
    except FileExistsError:
        raise InputError(f"--name {prepared.sweep.name}: {folder.path} exists already; give another name") from None
    os.makedirs(folder.driver.path)
    make_cache(prepared.world.cache)
    os.makedirs(folder.workers_path)
    write_decisions(prepared, folder)


def write_decisions(prepared: Prepared, folder: SweepDir) -> None:
    """Write ``sweep.json``, and the script's text where it is not the script itself that runs."""
    if prepared.source is not None and prepared.sweep.generated is not None:
        write_text(os.path.join(folder.driver.path, prepared.sweep.generated), prepared.source)
    write_json(folder.sweep, prepared.sweep.to_json())


def remember_launch(folder: SweepDir, settings: Settings, around: Surroundings, arguments: tuple[str, ...]) -> None:
    """Keep the options as they were given, with the folder that their paths are relative to, for a resume."""
    launched = {
        "schema": SCHEMA,
        "folder": str(around.folder),
        "path": folder.path,
        "arguments": list(arguments),
        "settings": stored_settings(settings),
    }
    write_json(folder.settings, launched, mode=0o600)


def make_cache(path: str | None) -> None:
    """Make the folder of shared downloads; EnvironmentNotReadyError when it cannot be made."""
    try:
        if path is not None:
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise EnvironmentNotReadyError(
            f"{path}: cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder of yours"
        ) from error


@contextlib.contextmanager
def locked(folder: SweepDir) -> Iterator[None]:
    """Hold the sweep for one coordinator; the kernel lets go of it when its holder dies. InputError when held."""
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder.name}: another talos-orch is at work on this sweep") from None
        yield
    finally:
        os.close(descriptor)


def carry_out(
    prepared: Prepared, folder: SweepDir, members: Members, switch: StopSwitch, clock: Clock, show: Show,
    redo: frozenset[int] = frozenset(),
) -> Finished:  # fmt: skip
    """Run the sweep and leave nothing behind but its folder, however it ends.

    In the stages that ``redo`` names, rows of an earlier launch that did not complete run again.
    """
    sweep = prepared.sweep
    coordinator = Coordinator(sweep, folder, members, switch, clock, redo)
    write_state(folder, clock, "running", coordinator)
    finished = Finished(exit_code=OrchestratorError.exit_code, folder=folder, message="ended by an internal error")
    try:
        for event in coordinator.watch():
            show(event)
            if isinstance(event, Tick | StageBegun | StageEnded):
                write_state(folder, clock, "running", coordinator)
        finished = verdict(sweep, folder, coordinator)
    except KeyboardInterrupt:
        finished = Finished(exit_code=KILLED, folder=folder, message="killed: rows in hand are not recorded")
        switch.level = max(switch.level, 2)
    except (OrchestratorError, OSError) as error:
        finished = worse(Finished(exit_code=0, folder=folder), error)
        switch.level = max(switch.level, 2)  # nothing that still runs is of any use
    finally:
        steps = (
            coordinator.settle,
            lambda: keep_files(prepared, folder),
            lambda: remove_scratch(prepared, folder),
            lambda: write_results(folder),
        )
        for step in steps:
            try:
                step()
            except (OrchestratorError, OSError) as error:  # the engine or the disk is gone: what can be done still is
                finished = worse(finished, error)
        status = {0: "finished", FAILED_TRIALS: "finished", STOPPED: "stopped", KILLED: "stopped"}
        if (
            finished.exit_code == 0
        ):  # nothing will be run again from the project as it was, and nothing failed to be written
            shutil.rmtree(folder.written, ignore_errors=True)
        try:
            write_state(folder, clock, status.get(finished.exit_code, "failed"), coordinator, finished)
        except OSError as error:
            finished = worse(finished, error)
    return finished


def worse(finished: Finished, error: Exception) -> Finished:
    """Add an error to how a launch ended: the first exit code stays, and so does the first message."""
    code = error.exit_code if isinstance(error, OrchestratorError) else EnvironmentNotReadyError.exit_code
    text = str(error)
    if isinstance(error, OSError):
        text = f"{error.filename or finished.folder.path}: {error.strerror}; see to that disk, nothing recorded is lost"
    return replace(finished, exit_code=finished.exit_code or code, message=finished.message or text)


def write_results(folder: SweepDir) -> None:
    """Write the merged table of what is recorded."""
    write_tables(sweep_frame(folder), folder.results)


def verdict(sweep: SweepFile, folder: SweepDir, coordinator: Coordinator) -> Finished:
    """Turn how the script and its trials ended into an exit code and, if need be, a sentence."""
    word, totals = coordinator.driver_word, coordinator.totals
    name = os.path.basename(sweep.script)
    bad = totals[FAILED] + totals[LOST]
    if word.get("kind") == "input":
        return Finished(exit_code=int(word.get("status", 2)), folder=folder, message=str(word.get("message")))
    if coordinator.stopped:
        left = totals["rows"] - totals[COMPLETED] - bad
        return Finished(
            exit_code=STOPPED,
            folder=folder,
            message=f"stopped with {left} of {totals['rows']} rows not run" + going_on(folder, coordinator),
        )
    if word.get("kind") != "ok":
        when = "before its Scan"
        if coordinator.stages:
            ended = coordinator.stages_ended == coordinator.stages
            when = "after its Scan; the results are kept" if ended else "during its Scan; what was recorded is kept"
        return Finished(exit_code=InputError.exit_code, folder=folder, message=f"{name}: {word.get('message')}, {when}")
    if coordinator.stages > coordinator.stages_ended:
        left = totals["rows"] - totals[COMPLETED] - bad
        text = f"{name} ended while its Scan was running, with {left} of {totals['rows']} rows not run"
        return Finished(exit_code=InputError.exit_code, folder=folder, message=text)
    if bad:
        return Finished(exit_code=FAILED_TRIALS, folder=folder, message=f"{bad} of {totals['rows']} trials failed")
    return Finished(exit_code=0, folder=folder)


def going_on(folder: SweepDir, coordinator: Coordinator) -> str:
    """Say how to go on, where a resume would do more than this launch did."""
    return f"; go on with: talos-orch resume {folder.name}" if coordinator.resumable else ""


def remove_scratch(prepared: Prepared, folder: SweepDir, skip: Iterable[int] = ()) -> None:
    """Delete the work folders that the kernel leaves behind as root, and the process engine's own.

    ``skip`` are workers that are at work in theirs.
    """
    shutil.rmtree(folder.pristine, ignore_errors=True)
    left = []
    spared = {folder.worker(number) for number in skip}
    for run in folder.roles():
        if run in spared:
            continue
        for path in (run.scratch, os.path.join(run.path, ".home"), os.path.join(run.path, ".tmp")):
            shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(run.scratch):
            left.append(os.path.relpath(run.scratch, folder.path))
    erase_scratch(prepared.engine, prepared.sweep.image_id, folder.path, left)


def keep_files(prepared: Prepared, folder: SweepDir) -> None:
    """Put what the script wrote in the driver into the project; EnvironmentNotReadyError names what could not be."""
    files = folder.driver.files
    if not os.path.isdir(files):
        return
    failed = WriteBack(prepared.sweep.project, folder.written).move_in(files)
    with contextlib.suppress(OSError):
        os.rmdir(files)
    if failed:
        shown = ", ".join(failed[:3]) + (" …" if len(failed) > 3 else "")
        raise EnvironmentNotReadyError(f"the script's files could not be written to {shown}: they are in {files}")


def write_state(
    folder: SweepDir, clock: Clock, status: str, coordinator: Coordinator, finished: Finished | None = None
) -> None:
    """Rewrite ``state.json``."""
    totals = coordinator.totals
    state = SweepState(
        status=status,
        updated=clock.wall(),
        coordinator_pid=os.getpid(),
        exit_code=finished.exit_code if finished else None,
        message=finished.message if finished else None,
        stages=coordinator.stages,
        rows=totals["rows"],
        completed=totals[COMPLETED],
        failed=totals[FAILED],
        lost=totals[LOST],
        timings=coordinator.timings,
    )
    write_json(folder.state, state.to_json())


def stamp_of(clock: Clock) -> str:
    """Give the wall clock as ``YYYYMMDD-HHMMSS``."""
    return clock.wall()[:19].replace("-", "").replace(":", "").replace("T", "-")
