"""The loop that carries a sweep from its first container to its merged result."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

from orchestrator.coordinator.clock import Clock, insist
from orchestrator.coordinator.ends import cause_of, without_word
from orchestrator.coordinator.events import Event, Notice, StageBegun, StageEnded, TrialDone
from orchestrator.coordinator.limits import StageLimits
from orchestrator.coordinator.members import Members, last_word, worker_spec_name
from orchestrator.coordinator.opening import (
    Opened,
    keep_to_own_rows,
    open_stage,
    refuse_links,
    result_counts,
    set_aside_unplanned,
)
from orchestrator.coordinator.outputs import ScriptOutput
from orchestrator.coordinator.picture import look
from orchestrator.coordinator.sampling import GpuUse
from orchestrator.coordinator.stage import Stage
from orchestrator.coordinator.stopping import DRAIN, KILL, StopSwitch
from orchestrator.engine.base import Ended
from orchestrator.errors import EngineError, EnvironmentNotReadyError, InputError, RecordError, StoppedError
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import SweepDir
from orchestrator.results.frame import frame_of, write_tables
from orchestrator.results.merge import write_merged
from orchestrator.results.talos import write_stage_run
from orchestrator.schema import COMPLETED, FAILED, LOST, StagePlan, StageResult, SweepFile

_LOOK_EVERY = 0.02  # seconds between two looks at the sweep's files
_ASK_ENGINE_EVERY = 0.25
_BEAT_EVERY = 2.0
_TICK_EVERY = 0.5
_GPUS_EVERY = 2.0
_MOST_DEATHS = 3  # of one worker's container, before it is given up
_ENGINE_PATIENCE = 120.0
_PATIENCE = 5.0  # seconds for workers to end by themselves once nothing is left to do


class Coordinator:
    """Runs one sweep, from its beginning or from where an earlier launch left it.

    ``totals`` counts over all stages; ``driver_word`` is how the script ended. In the stages that ``redo`` names, rows that
    did not complete run again.
    """

    def __init__(
        self, sweep: SweepFile, folder: SweepDir, members: Members, switch: StopSwitch, clock: Clock,
        redo: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self._sweep, self._folder, self._members = sweep, folder, members
        self._switch, self._clock, self._redo = switch, clock, redo
        self._stage: Stage | None = None
        self._limits: StageLimits | None = None
        self._stages = 0
        self._draining = False
        self._script = ScriptOutput(folder.driver)
        self._due: dict[str, float] = {}
        self._ended_totals = Counter[str]()
        self._deaths = Counter[int]()
        self._silent_since: float | None = None
        self._noted: set[str] = set()
        self._gpus = GpuUse(members.shares)
        self.stages = 0
        self.stages_ended = 0
        self.timings: dict[str, float] = {}
        self.driver_word: dict[str, Any] = {}
        self.stopped = False
        self.resumable = False

    def watch(self) -> Iterator[Event]:
        """Start the driver and see the sweep through; raises InputError and its kin, StoppedError when killed."""
        self._mark("ready_to_start")
        self._members.start_driver()
        self._mark("driver_started")
        if self._members.copied:
            yield Notice(
                text="each worker has a copy of the project and the driver works in it, since this engine gives no views"
            )
        while True:
            if self._is_due("beat", _BEAT_EVERY):
                self._members.beat()
            yield from self._script.read()
            yield from self._heed_stop()
            yield from self._next_stage()
            ended: list[Ended] = []
            if self._is_due("engine", _ASK_ENGINE_EVERY):
                ended = yield from self._ask_engine()
            if self._stage is not None:
                yield from self._advance(self._stage, ended)
            if any(each.member == "driver" for each in ended):
                break
            if self._gpus.devices and self._stage is not None and self._is_due("gpus", _GPUS_EVERY):
                yield from self._sample_gpus()
            if self._is_due("tick", _TICK_EVERY):
                yield from self._notes()
                yield look(self._stage, self._members, self.stages, self._gpus.mib)
            self._clock.sleep(_LOOK_EVERY)
        yield from self._notes()
        yield from self._script.read()
        self.driver_word = last_word(self._folder.driver) or without_word(ended, self._sweep.image, self.stages)
        if self.driver_word.get("kind") == "ok":
            set_aside_unplanned(self._folder)
        self._mark("script_ended")

    def _ask_engine(self) -> Generator[Event, None, list[Ended]]:
        """List what has ended; an engine that does not answer for a while (it is restarted, say) is waited for."""
        now = self._clock.steady()
        try:
            ended = self._members.ended()
        except EngineError as error:
            if self._silent_since is None:
                self._silent_since = now
                yield Notice(text=f"{error}; waiting for it up to {_ENGINE_PATIENCE:.0f} s", level="warning")
            if now - self._silent_since > _ENGINE_PATIENCE:
                raise
            return []
        self._silent_since = None
        return ended

    def _sample_gpus(self) -> Iterator[Event]:
        with contextlib.suppress(EngineError):  # whether it is gone is asked elsewhere
            for text in self._gpus.take(self._members.gpu_memory()):
                yield Notice(text=text, level="warning")

    def _notes(self) -> Iterator[Event]:
        """Pass on what the workers noticed about the script, each thing once."""
        for text in self._members.notes():
            if text not in self._noted:
                self._noted.add(text)
                yield Notice(text=text, level="warning")

    @property
    def totals(self) -> Counter[str]:
        """Count ``rows`` and recorded rows by status, over all stages and the one that runs."""
        return self._ended_totals + (self._stage.counts() if self._stage is not None else Counter())

    def _mark(self, what: str) -> None:
        self.timings.setdefault(what, round(self._clock.steady() - self._clock.started, 3))

    def _is_due(self, what: str, every: float) -> bool:
        now = self._clock.steady()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every
        return True

    # -- stages --------------------------------------------------------------------------------------------------

    def _next_stage(self) -> Iterator[Event]:
        """Begin the stage that is planned next, if one is; pass over those that an earlier launch brought to their end."""
        place = self._folder.driver.stage(self.stages + 1)
        if self._stage is not None or not os.path.exists(place.plan):
            return
        plan = StagePlan.from_json(read_json(place.plan), place.plan)
        self.stages += 1
        self._mark("planned")
        if os.path.exists(place.result):
            result = StageResult.from_json(read_json(place.result), place.result)
            self._ended_totals += result_counts(result)
            self.stages_ended += 1
            self.stopped = self.stopped or result.status == "paused"
            return
        keep_to_own_rows(self._folder, place, plan, self._members.alive)
        opened = open_stage(plan, self._folder, self._members.alive, self._clock.wall(), redo=plan.stage in self._redo)
        if self._draining or plan.rows == 0:
            ending = (
                ("paused", "stopped before this Scan") if self._draining else ("complete", "there are no rows to run")
            )
            yield from self._finish(opened.stage, *ending)
            return
        yield from self._begin(opened)

    def _begin(self, opened: Opened) -> Iterator[Event]:
        """Give the rows that are to be dealt to workers, starting as many as it takes."""
        stage, plan = opened.stage, opened.stage.plan
        asked = self._members.most
        if opened.known:
            yield Notice(text=f"{opened.known} of {plan.rows} rows are recorded already; {opened.rows} are dealt anew")
        elif plan.rows < asked:
            yield Notice(text=f"{asked} workers asked for and {plan.rows} rows to run: {plan.rows} workers are enough")
        self._members.start_workers(min(asked, opened.rows))
        stage.workers = sorted(self._members.alive)[: plan.rows]
        if opened.rows and not stage.workers:
            raise StoppedError("no worker is left to run the rows of this Scan; look into workers/*/log.txt")
        self._stage, self._limits = stage, opened.limits
        if opened.rows:
            stage.deal(opened.ranges)
        self._mark("workers_started")
        yield StageBegun(plan=plan, workers=len(stage.workers))

    def _advance(self, stage: Stage, ended: list[Ended]) -> Iterator[Event]:
        limits = self._limits or StageLimits(stage)
        for record in stage.read_new():
            if record.status == COMPLETED:
                self._mark("first_result")
            if record.contract_error and stage.completed == 0:
                limits.refuse(f"row {record.row}: {record.error}")
            limits.heed(record)
            yield TrialDone(record=record)
            if not self._sweep.keep_going and limits.ending is None:
                stage.check_alike()
        limits.look(self._clock.wall())
        for each in ended:
            if each.member != "driver":
                yield from self._worker_ended(stage, each)
        refused = limits.ending is not None and limits.ending[0] == "refused"
        if stage.finished and not refused:
            dropped = f"{len(stage.dropped)} rows taken away by reduction_method" if stage.dropped else None
            yield from self._finish(stage, "complete", dropped)
        elif self._draining and not self._members.alive:
            stage.set_aside()
            yield from self._finish(stage, "paused", "stopped on request")
        elif limits.ending is not None:
            if limits.ended:
                yield from self._end_early(stage, *limits.ending)
        elif not self._draining:
            stage.balance()

    def _end_early(self, stage: Stage, status: str, reason: str) -> Iterator[Event]:
        for record in stage.read_new():  # written between the last look and the worker's last chunk
            yield TrialDone(record=record)
        stage.set_aside()
        yield from self._finish(stage, status, reason)

    def _finish(self, stage: Stage, status: str, reason: str | None) -> Iterator[Event]:
        """Merge, write the table, and let the driver go on; ``result.json`` comes last."""
        place = self._folder.driver.stage(stage.plan.stage)
        refuse_links(self._folder, place)
        records = write_merged(self._folder, stage.plan.stage, stage.standing(), self._sweep.keep_models)
        write_tables(frame_of(records), place.results)
        run_name = write_stage_run(self._folder, stage.plan, records, status, self._clock.wall())
        counts = stage.counts()
        self._ended_totals += counts
        completed, failed, lost = counts[COMPLETED], counts[FAILED], counts[LOST]
        resumable = status == "paused" and self._draining
        result = StageResult(
            stage.plan.stage, status, stage.plan.rows, completed, failed, lost, reason, run_name, resumable=resumable
        )
        write_json(place.result, result.to_json())
        self.stages_ended += 1
        self._mark("rows_done")
        self.stopped = self.stopped or status != "complete"
        self.resumable = self.resumable or resumable
        self._stage = None
        yield StageEnded(result=result)

    # -- ends ----------------------------------------------------------------------------------------------------

    def _worker_ended(self, stage: Stage, ended: Ended) -> Iterator[Event]:
        number = int(ended.member[1:])
        if number not in self._members.alive or (ended.attempt < self._members.attempts[number] and not ended.error):
            return
        self._members.alive.discard(number)
        for record in stage.read_new():  # its last records count before its rows go to others
            yield TrialDone(record=record)
        word = self._members.last_word(number)
        if self._draining or stage.finished:
            return
        said = str(word.get("message") or "")
        unfit = word.get("reason") in ("refused", "script-ended", "failed")
        cause, text = ("unknown", said) if said else cause_of(ended)
        heirs = [worker for worker in stage.workers if worker in self._members.alive]
        stage.workers = heirs
        lost = stage.rescue(number, heirs, f"worker {number}: {text}", cause, killed=not word)
        if lost is not None:
            yield Notice(
                text=f"row {lost.row} ended its worker's container twice and is given up: {text}",
                level="warning",
            )
        if unfit and not heirs:
            back = "; put the script back as it was, or launch a new sweep" if stage.taken_over else ""
            kind = EnvironmentNotReadyError if word.get("status") == EnvironmentNotReadyError.exit_code else InputError
            raise kind(f"no worker can run this script's rows; worker {number}: {text}{back}")
        yield Notice(text=f"worker {number} ended: {text}", level="warning")
        if word.get("reason") != "fresh":
            self._deaths[number] += 1
        if not unfit and self._deaths[number] < _MOST_DEATHS:
            self._members.replace(number)
            stage.workers = sorted([*heirs, number])
        elif not heirs:
            raise StoppedError(f"no worker is left; the last one, worker {number}, ended: {text}")

    def _heed_stop(self) -> Iterator[Event]:
        self._switch.read_request(self._folder.stop)
        if self._switch.level >= KILL:
            self.stopped = True
            raise KeyboardInterrupt
        if self._switch.level == DRAIN and not self._draining:
            self._draining = True
            if self._stage is not None:
                self._stage.set_aside()
            self._members.ask_to_stop()
            yield Notice(
                text="stopping: rows in hand finish, the others are left (again, or stop --now, ends it at once)"
            )

    def settle(self) -> None:
        """End what still runs, workers first by themselves, and remove every container and volume."""
        with contextlib.suppress(OSError):  # the folder may be gone or full: then they are ended from outside alone
            self._members.ask_to_stop()
        deadline = self._clock.steady() + _PATIENCE
        while self._clock.steady() < deadline and self._switch.level < KILL:
            gone = {each.member for each in insist(self._clock, self._members.ended)}
            if all(worker_spec_name(number) in gone for number in self._members.alive):
                break
            self._clock.sleep(_LOOK_EVERY)
        grace = 0.0 if self._switch.level >= KILL else 2.0
        insist(self._clock, lambda: self._members.end(grace=grace))
        insist(self._clock, self._members.clean)
        if self._stage is not None:  # it was cut off: what was recorded meanwhile counts all the same
            with contextlib.suppress(RecordError, OSError):
                list(self._stage.read_new())
