"""``Scan`` in a worker's trial process: run the rows that the supervisor names, until it says to go on."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any, Optional, Protocol

from orchestrator.errors import InputError
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import RunDir
from orchestrator.records.trial_log import read_log
from orchestrator.scan.call import ScanCall, StageOutcome, seed_what_follows
from orchestrator.scan.drift import Drift, fingerprint
from orchestrator.scan.driver import agree, read_outcome_of
from orchestrator.scan.models import KeepPolicy, ModelStore
from orchestrator.scan.reduction import RemovedRows
from orchestrator.scan.seeding import read_generators
from orchestrator.scan.trial import Trials, run_trial
from orchestrator.scan.turns import Turns, same_but_for_time, several
from orchestrator.schema import Job, StagePlan

_LOOK_EVERY = 0.05  # seconds between two looks at whose Scan is due
_PATIENCE = 60.0  # seconds to wait for another thread to come to it


class Line(Protocol):
    """The line to the supervisor: one JSON object each way at a time."""

    def send(self, message: dict[str, Any]) -> None:
        """Say something."""

    def receive(self) -> dict[str, Any]:
        """Wait for the next word; ends this process when the supervisor is gone."""

    def speak_here(self) -> None:
        """Have this process speak, where the script forked it to call Scan there."""


class WorkerSession:
    """A trial process. Stages before ``stage`` have ended: their Scan returns at once, so that the script goes on."""

    def __init__(self, job: Job, line: Line, stage: int) -> None:
        self.seed: Optional[int] = job.seed
        self._job = job
        self._line = line
        self._first = stage
        self._turns = Turns(RunDir(job.run).turns)
        self._in_trial: Optional[tuple[int, int]] = None

    def run(self, call: ScanCall) -> StageOutcome:
        """Serve this call's rows, then give the merged outcome as the driver has it.

        InputError for a Scan within a trial.
        """
        here = (os.getpid(), threading.get_ident())
        if self._in_trial is not None and (self._in_trial == here or self._in_trial[0] != here[0]):
            raise InputError("Scan is called within a trial: call it outside the model function")
        waited = 0.0
        while True:
            with self._turns.alone():
                stage = self._turns.count + 1
                if self._is_due(call, stage) or not several() or waited > _PATIENCE:
                    self._turns.take(stage)
                    return self._run_stage(call, stage)
            time.sleep(_LOOK_EVERY)
            waited += _LOOK_EVERY

    def _is_due(self, call: ScanCall, stage: int) -> bool:
        """Say whether this is the Scan that the driver came to next; in threads they come in any order."""
        path = RunDir(self._job.driver).stage(stage).plan
        try:
            plan = StagePlan.from_json(read_json(path), path)
            agree(call.trials, plan)
        except (InputError, FileNotFoundError):
            return False
        return not several() or same_but_for_time(plan.experiment_name, call.experiment_name)

    def _run_stage(self, call: ScanCall, stage: int) -> StageOutcome:
        self._line.speak_here()
        folder = RunDir(self._job.driver).stage(stage)
        try:
            call = replace(call, trials=self._agree(call.trials, stage))
        except InputError as error:
            self._line.send({"type": "refuse", "error": str(error)})
            self._line.receive()  # nothing more is asked of this process; the supervisor ends it
        if stage >= self._first:
            self._serve(call, stage)
        outcome = read_outcome_of(folder)
        seed_what_follows(call, outcome.records)
        return replace(outcome, trials=call.trials)

    def _serve(self, call: ScanCall, stage: int) -> None:
        own = RunDir(self._job.run).stage(stage)
        trials = replace(call.trials, interruptible=False, folder=own.talos)
        # What another thread of the script changes meanwhile would look as if the model had.
        drift = Drift(trials.data) if threading.active_count() == 1 else None
        removed = RemovedRows(RunDir(self._job.driver).stage(stage))
        store = self._store(own.trials, own.models) if call.keep else None
        self._line.send({"type": "ready", "stage": stage, "pid": os.getpid()})
        while True:
            word = self._line.receive()
            if word["type"] == "return":
                return
            begun = trials.start(word["row"], word["attempt"], removed.place(word["row"]))
            self._line.send({"type": "begun", "record": begun.to_json()})
            if drift is not None:
                drift.before()
            self._in_trial = (os.getpid(), threading.get_ident())
            record, _ = run_trial(trials, begun, store)
            self._in_trial = None
            if begun.row == trials.selection.size - 1:
                record = replace(record, generators=read_generators())
            if drift is not None:
                self._notice(drift.after())
            share = self._job.share or {}
            record = replace(record, worker=self._job.worker, device=",".join(share.get("gpus", [])) or "cpu")
            self._line.send({"type": "done", "record": record.to_json()})

    def _agree(self, trials: Trials, stage: int) -> Trials:
        """Take rows and plain values from the plan; SpaceMismatchError when this script built another space."""
        path = RunDir(self._job.driver).stage(stage).plan
        plan = StagePlan.from_json(read_json(path), path)
        agreed = agree(trials, plan)
        if plan.data is not None and plan.data != fingerprint(trials.data):
            self._notice(
                "this worker's data are not those of the plan: the script draws or reads them anew each time, or they have "
                "changed since; give its generator a seed, or rows are not comparable"
            )
        return agreed

    def _notice(self, text: Optional[str]) -> None:
        if text is not None:
            self._line.send({"type": "notice", "text": text})

    def _store(self, log: str, folder: str) -> ModelStore:
        store = ModelStore(folder, KeepPolicy.parse(self._job.keep_models))
        if os.path.exists(log):
            for record in read_log(log):
                store.remember(record.row, record.metrics, record.model)
        return store
