"""The story of a resume: take stock of a sweep's folder, then carry on as a launch does.

Nothing that an earlier launch wrote is deleted that a person might want: the driver's output and files are set aside under
numbered names, records stay where they are, and workers are numbered on, so that no folder is ever used twice. What is
recorded is the truth; queues are only what was meant to be done and are dealt anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.config import Settings, Surroundings, restore_settings
from orchestrator.coordinator.clock import Clock
from orchestrator.coordinator.members import worker_spec_name
from orchestrator.coordinator.stopping import StopSwitch
from orchestrator.engine.base import Engine
from orchestrator.errors import InputError, RecordError
from orchestrator.prepare import Prepared, prepare
from orchestrator.queries import read_state, read_sweep
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import RunDir, StageDir, SweepDir, free_name
from orchestrator.results.merge import collect
from orchestrator.run import (
    FAILED_TRIALS,
    Finished,
    Say,
    Show,
    carry_out,
    gpus_of,
    locked,
    members_of,
    provide_image,
    remember_launch,
    remove_scratch,
    stamp_of,
    write_decisions,
)
from orchestrator.schema import COMPLETED, Job, Share, StageResult, SweepFile
from orchestrator.writeback import take_out

_GRACE = 10.0  # seconds for a worker that is not wanted any more; its row in hand is run again


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """What an earlier launch left: how it was asked for, and the workers that still run."""

    settings: Settings
    around: Surroundings
    arguments: tuple[str, ...]
    changed: bool
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """What a resume goes on with: stages from ``first`` on (0: none), and those in which failed rows run again."""

    first: int
    redo: frozenset[int]
    workers_can_go_on: bool


def resume(
    folder: SweepDir, flags: Mapping[str, Any], around: Surroundings, switch: StopSwitch, clock: Clock,
    show: Show, say: Say, *, rerun_failed: bool = False,
) -> Finished:  # fmt: skip
    """Go on with a sweep that did not come to its end, with other workers, memory or GPUs if ``flags`` say so.

    InputError where another command is at work on it. One that has finished is left alone, unless ``rerun_failed`` asks for
    its failed rows to run again.
    """
    with locked(folder):
        sweep = read_sweep(folder)
        done = _is_done(folder, rerun_failed=rerun_failed)
        if done is not None:
            say(str(done.message))
            return done
        left = _recall(folder, flags, around)
        prepared = prepare(left.settings, left.around, left.arguments, stamp_of(clock), sweep)
        prepared = provide_image(prepared, left.settings, left.around, say)
        _say_what_changed(sweep, prepared.sweep, say)
        opening = _survey(folder, sweep, rerun_failed=rerun_failed)
        _end_elsewhere(prepared.engine, left.path, folder)
        running = _take_stock(prepared.engine, folder, keep=not left.changed and opening.workers_can_go_on)
        prepared = _number_on(prepared, sweep, folder, running, stamp_of(clock), opening.redo)
        # Before anything is taken back: where the GPUs are not to be had, the folder stays as it was.
        with gpus_of(prepared, folder, left.settings.wait_for_gpu, clock, say):
            _reopen(folder, opening)
            _set_driver_aside(folder)
            for path in take_out(prepared.sweep.project, folder.written, free_name(folder.driver.files)):
                say(f"note: {path} was written by the script and changed since: it stays, and the script meets it")
            remove_scratch(prepared, folder, skip=running)
            write_decisions(prepared, folder)
            remember_launch(folder, left.settings, left.around, left.arguments)
            members = members_of(prepared, folder)
            for number in running:
                members.adopt(number)
            kept = f", {len(running)} of them still running" if running else ""
            say(f"sweep {folder.name}: resumed with {prepared.sweep.workers} workers{kept}, folder {folder.path}")
            for note in prepared.sweep.notes:
                say(f"note: {note}")
            switch.armed = True
            return carry_out(prepared, folder, members, switch, clock, show, opening.redo)


def _is_done(folder: SweepDir, *, rerun_failed: bool) -> Finished | None:
    state = read_state(folder)
    if state is None or state.status != "finished":
        return None
    if state.exit_code == FAILED_TRIALS:
        if rerun_failed:
            return None
        return Finished(
            exit_code=FAILED_TRIALS,
            folder=folder,
            message=f"{folder.name} is finished; {state.failed + state.lost} rows failed (--rerun failed runs them again)",
        )
    said = "no row of it failed" if rerun_failed else "there is nothing left to run"
    return Finished(exit_code=0, folder=folder, message=f"{folder.name} is finished: {said}")


def _recall(folder: SweepDir, flags: Mapping[str, Any], around: Surroundings) -> _Left:
    """Read how the sweep was launched, and put ``flags`` over it."""
    try:
        launched = read_json(folder.settings)
        settings = restore_settings(launched["settings"], flags, folder.settings)
        there = Path(launched["folder"])
        arguments = tuple(map(str, launched["arguments"]))
        path = str(launched.get("path") or folder.path)
    except FileNotFoundError:
        raise InputError(f"{folder.name}: {folder.settings} is not there, so its options are not known") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder.settings}: not the options of a launch ({error!r})") from error
    settings = replace(settings, runs=os.path.dirname(folder.path), script=read_sweep(folder).script)
    given = any(
        value is not None for name, value in flags.items() if name not in ("build", "keep_going", "wait_for_gpu")
    )
    return _Left(settings=settings, around=replace(around, folder=there), arguments=arguments, changed=given, path=path)


def _say_what_changed(before: SweepFile, now: SweepFile, say: Say) -> None:
    if before.script_sha256 not in (None, now.script_sha256):
        say(f"note: {now.script} has changed since; rows that are recorded stay as they are")
    if before.image_id not in (None, now.image_id):
        say("note: the image of the earlier rows is gone; the other rows run in a new one")


def _take_stock(engine: Engine, folder: SweepDir, *, keep: bool) -> list[int]:
    """Remove what is left of the driver and of ended workers; give the numbers of workers that still run and may go on.

    Without ``keep`` those are ended too: they were started with other limits.
    """
    there = engine.members(folder.path)
    ended = {each.member for each in engine.ended(folder.path)}
    running = []
    for number in folder.workers() if keep else ():
        run = folder.worker(number)
        told_to_end = os.path.exists(run.ended) or os.path.exists(run.stop)
        lives = worker_spec_name(number) in there and worker_spec_name(number) not in ended
        if lives and not told_to_end and _is_known(run):
            running.append(number)
    kept = {worker_spec_name(number) for number in running}
    unwanted = [member for member in there if member not in kept]
    if unwanted:
        engine.stop(folder.path, unwanted, grace=_GRACE)
        engine.remove(folder.path, unwanted)
    return running


def _is_known(run: RunDir) -> bool:
    """Say whether a worker's files tell what it is: one whose files are gone is better ended."""
    try:
        Share.from_json(read_json(run.share), run.share)
        Job.from_json(read_json(run.job), run.job)
    except (OSError, RecordError):
        return False
    return True


def _end_elsewhere(engine: Engine, path: str, folder: SweepDir) -> None:
    """End what still runs under the path that the folder had before it was moved: it writes into it all the same.

    Not where that path is still there: this folder is a copy then, and the other sweep none of its business.
    """
    if path != folder.path and not os.path.lexists(path) and engine.members(path):
        engine.stop(path, grace=_GRACE)
        engine.remove(path)


def _number_on(
    prepared: Prepared, before: SweepFile, folder: SweepDir, running: list[int], stamp: str, redo: frozenset[int]
) -> Prepared:
    """Give the new workers numbers that were never used, and the running ones the shares that they have."""
    planned = list(prepared.shares.workers)
    kept = []
    for number in running:
        path = folder.worker(number).share
        share = Share.from_json(read_json(path), path)
        kept.append(share)
        same = [each for each in planned if each.gpus == share.gpus]
        if planned:
            planned.remove((same or planned)[0])
    used = [*folder.workers(), *(int(share["worker"]) for share in before.shares)]
    first = max(used, default=-1) + 1
    fresh = [replace(share, worker=first + place) for place, share in enumerate(planned)]
    sweep = replace(
        prepared.sweep,
        created=before.created,
        workers=len(kept) + len(fresh),
        shares=[*before.shares, *(share.to_json() for share in fresh)],
        resumes=[
            *before.resumes,
            {"at": stamp, "running": running, "started": [share.worker for share in fresh], "redo": sorted(redo)},
        ],
    )
    return replace(prepared, sweep=sweep, shares=replace(prepared.shares, workers=(*kept, *fresh)))


def _survey(folder: SweepDir, sweep: SweepFile, *, rerun_failed: bool) -> _Opening:
    """Find the first stage that has not come to its end, and the stages in which failed rows are to run again."""
    asked = set(sweep.resumes[-1].get("redo", [])) if sweep.resumes else set()
    redo: set[int] = set()
    first, had_result = 0, False
    for number in folder.driver.stages():
        result = _read_result(folder.driver.stage(number))
        records = collect(folder, number, merged=False)
        failed = any(record.status != COMPLETED for record in records)
        unfinished = result is None or result.resumable or not _is_end(result)
        # Where nothing completed somebody has corrected something by now, or there would be no point in going on. And an
        # earlier resume that was to run them again did not get to its end.
        hopeless = all(record.status != COMPLETED for record in records)
        if failed and (rerun_failed or (unfinished and (hopeless or number in asked))):
            redo.add(number)
        if first == 0 and (unfinished or number in redo):
            first, had_result = number, result is not None
    # A living worker keeps in mind which rows it has recorded, and what Scans before its own have returned.
    return _Opening(first=first, redo=frozenset(redo), workers_can_go_on=not redo and not had_result)


def _reopen(folder: SweepDir, opening: _Opening) -> None:
    """Take back the end of stages that a resume goes on with.

    A stage after such a one may come out otherwise when the script runs again: its plan is set aside, to be compared.
    """
    for number in folder.driver.stages():
        place = folder.driver.stage(number)
        if not 0 < opening.first <= number:
            continue
        if number > opening.first and os.path.exists(place.plan):
            os.replace(place.plan, place.plan_before)
        _take_back_end(folder, place)


def _is_end(result: StageResult) -> bool:
    return result.status in ("complete", "paused")


def _read_result(place: StageDir) -> StageResult | None:
    try:
        return StageResult.from_json(read_json(place.result), place.result)
    except FileNotFoundError:
        return None


def _take_back_end(folder: SweepDir, place: StageDir) -> None:
    for path in (place.result, place.trials, place.results):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    shutil.rmtree(place.talos, ignore_errors=True)
    for experiment, _, names in os.walk(folder.talos):
        for name in names:
            path = os.path.join(experiment, name)
            if os.path.islink(path) and not os.path.exists(path):
                os.unlink(path)


def _set_driver_aside(folder: SweepDir) -> None:
    """Let the driver begin anew: its last word goes, its output and files are kept under numbered names."""
    run: RunDir = folder.driver
    for path in (run.ended, folder.stop):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    for path in (run.out, run.err, run.files):
        if os.path.lexists(path):
            os.rename(path, free_name(path))
