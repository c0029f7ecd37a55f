"""The worker container's first process: owns the queue and the records, and outlives every trial process.

It imports no backend and none of the user's code.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from datetime import datetime, timezone
from types import FrameType
from typing import Any, Optional

from orchestrator.errors import InputError
from orchestrator.records import spool
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import RunDir, StageDir
from orchestrator.records.planned import planned_params
from orchestrator.records.trial_log import TrialLog, read_log
from orchestrator.scan.pulse import Pulse
from orchestrator.schema import LOST, Job, StagePlan, TrialRecord
from orchestrator.worker.child import Child, LogFile
from orchestrator.worker.environment import clear_shared_memory, prepare
from orchestrator.worker.evidence import Death, explain, has_ended, oom_kills, peak_container_mib

_LOOK_EVERY = 0.02  # seconds between two looks into an empty queue
_STARTS = 2  # how often a trial process may die before it reaches Scan


class _End(Exception):  # noqa: N818 - not an error: the supervisor's way out, with its last word
    def __init__(self, reason: str, message: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.reason, self.message, self.status = reason, message, status


class Supervisor:
    """Serves the chunks of one worker, stage after stage, until it is told to stop."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._run = RunDir(job.run)
        self._driver = RunDir(job.driver)
        self._log = LogFile(self._run.log)
        self._pulse = Pulse(self._run.alive)
        self._child: Optional[Child] = None
        self._ready = False  # has the child said that it waits at this stage's Scan?
        self._reached = False  # did any trial process of this container get to a Scan?
        self._speaker = 0  # the process that runs the trials: the child, or one that the script forked
        self._terminated = False
        self._state = "starting"
        self._oom = oom_kills()
        self._stage = 1
        self._times: dict[str, str] = {}
        self._notes: list[str] = []

    def run(self) -> int:
        """Serve; the container's exit status. The last word is in ``ended.json``."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        prepare(self._job)
        self._say("starting")
        try:
            while True:
                self._serve_stage()
                self._stage += 1
        except _End as end:
            if self._child is not None:
                self._child.end()
            word = {"reason": end.reason, "message": end.message, "status": end.status, "stage": self._stage}
            write_json(self._run.ended, word)
            return end.status

    def _on_signal(self, _number: int, _frame: Optional[FrameType]) -> None:
        self._terminated = True

    def _say(self, state: str) -> None:
        self._times[state] = datetime.now(timezone.utc).isoformat()
        self._state = state
        word = {"state": state, "stage": self._stage, "times": self._times, "notes": self._notes}
        write_json(self._run.beat, word)

    # -- one stage -----------------------------------------------------------------------------------------------

    def _serve_stage(self) -> None:
        """Run chunks until the next stage is planned; ends by _End otherwise."""
        folder = self._run.stage(self._stage)
        log = TrialLog(folder.trials)
        done = {record.row for record in read_log(folder.trials)}
        self._ready_child()
        idle = False
        while True:
            self._check_stop()
            chunk = self._next_chunk(folder)
            if chunk is None:
                if not idle:
                    self._say("idle")
                    idle = True
                if self._next_stage_is_planned():
                    self._ready_child().send({"type": "return"})
                    self._ready = False
                    log.close()
                    return
                if self._pulse.stopped():
                    raise _End("coordinator-gone", "the queue is empty and the coordinator is gone")
                time.sleep(_LOOK_EVERY)
                continue
            if idle:
                self._say("running")
                idle = False
            for row in range(chunk.first, chunk.last + 1):
                self._check_stop()
                if os.path.exists(folder.halt):
                    spool.move(folder.active, folder.left, chunk)
                    break
                if row not in done:
                    log.append(self._run_row(row, chunk.attempt))
                    done.add(row)
            spool.finish(folder.active, chunk)

    def _next_chunk(self, folder: StageDir) -> Optional[spool.Chunk]:
        # What an earlier supervisor of this worker had in hand comes first.
        in_hand = spool.waiting(folder.active)
        return in_hand[0] if in_hand else spool.claim(folder.queue, folder.active)

    def _next_stage_is_planned(self) -> bool:
        return os.path.exists(self._driver.stage(self._stage).result) and os.path.exists(
            self._driver.stage(self._stage + 1).plan
        )

    def _check_stop(self) -> None:
        if self._terminated:
            raise _End("terminated", "told to end by a signal", 143)
        if os.path.exists(self._run.stop):
            raise _End("stopped", "told to stop")

    # -- the trial process ---------------------------------------------------------------------------------------

    def _ready_child(self) -> Child:
        """Give a trial process that waits at this stage's Scan, starting one if there is none."""
        death = None
        for _ in range(_STARTS):
            if self._child is not None and self._child.ended():
                self._bury()
            if self._child is None:
                self._child = Child(self._run.job, self._stage, [self._log], [self._log], talk=True)
            if self._ready:
                return self._child
            word = self._wait_ready(self._child)
            if word is not None:
                self._heed(word)
                self._speaker = int(word["pid"])
                self._ready = self._reached = True
                self._say("running")
                return self._child
            death = self._bury()
        raise _End("failed", f"{death.text if death else 'the trial process ended'}, before it reached Scan", 1)

    def _wait_ready(self, child: Child) -> Optional[dict[str, Any]]:
        while True:
            word = child.receive(timeout=1.0)
            if word is not None and word["type"] == "notice":
                self._take_note(str(word["text"]))
            elif word is not None or child.ended():
                return word
            self._check_stop()

    def _take_note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)
            self._say(self._state)

    def _heed(self, word: dict[str, Any]) -> None:
        if word["type"] == "refuse":
            raise _End("refused", str(word["error"]), int(word.get("status", InputError.exit_code)))
        if word["type"] == "end" and self._reached and self._child is not None and not self._ready:
            # The script got here before in this container: what it left in the project stands in its own way now.
            raise _End("fresh", f"the script has to start again from the project as it was ({word.get('message')})", 3)
        if word["type"] == "end":
            why = (
                word.get("message")
                or "the script ended in this worker without reaching the Scan that the driver reached"
            )
            raise _End("script-ended", str(why), 2)

    def _run_row(self, row: int, attempt: int) -> TrialRecord:
        child = self._ready_child()
        child.send({"type": "trial", "row": row, "attempt": attempt})
        begun: Optional[TrialRecord] = None
        while True:
            gone = child.ended() or has_ended(self._speaker)  # asked first: what it said before its end is still read
            word = child.receive(timeout=1.0)
            if word is not None and word["type"] == "begun":
                begun = TrialRecord.from_json(word["record"], "trial process")
            elif word is not None and word["type"] == "done":
                record = TrialRecord.from_json(word["record"], "trial process")
                if (record.row, record.attempt) == (row, attempt):
                    return record
            elif word is not None and word["type"] == "notice":
                self._take_note(str(word["text"]))
            elif word is not None or gone:
                # Another word than these in the middle of a trial: the script went on without it, since the process that
                # it had forked for its Scan is dead. Or it waits for that process for ever.
                return self._lost(row, attempt, begun)
            if self._terminated:
                self._check_stop()

    def _bury(self) -> Death:
        assert self._child is not None  # noqa: S101 - only called with one
        status = self._child.end()
        self._child, self._ready = None, False
        before, self._oom = self._oom, oom_kills()
        death = explain(status, before, self._oom, (self._job.share or {}).get("memory"))
        if self._job.isolated:
            clear_shared_memory()  # after the cause is known: a full one is a cause
        return death

    def _planned(self, row: int) -> dict[str, Any]:
        path = self._driver.stage(self._stage).plan
        return planned_params(StagePlan.from_json(read_json(path), path), row)

    def _lost(self, row: int, attempt: int, begun: Optional[TrialRecord]) -> TrialRecord:
        death = self._bury()
        now = datetime.now(timezone.utc)
        record = begun or TrialRecord(row, attempt, LOST, self._planned(row), "", "", now.isoformat(), "", 0.0)
        started = datetime.fromisoformat(record.start)
        return replace(
            record,
            status=LOST,
            cause=death.cause,
            error=death.text,
            end=now.isoformat(),
            duration=max(0.0, (now - started).total_seconds()),
            worker=self._job.worker,
            device=",".join((self._job.share or {}).get("gpus", [])) or "cpu",
            peak_host_mib=peak_container_mib() if self._job.limits_enforced else None,
        )
