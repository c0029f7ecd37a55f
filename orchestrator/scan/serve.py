"""``Scan`` in a worker's trial process: run the rows that the supervisor names, until it says to go on."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Optional, Protocol

from orchestrator.errors import InputError
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import RunDir
from orchestrator.records.trial_log import read_log
from orchestrator.scan.call import OneAtATime, ScanCall, StageOutcome, seed_what_follows
from orchestrator.scan.drift import Drift, fingerprint
from orchestrator.scan.driver import agree, read_outcome_of
from orchestrator.scan.models import KeepPolicy, ModelStore
from orchestrator.scan.seeding import read_generators
from orchestrator.scan.trial import Trials, run_trial
from orchestrator.schema import Job, StagePlan


class Line(Protocol):
    """The line to the supervisor: one JSON object each way at a time."""

    def send(self, message: dict[str, Any]) -> None:
        """Say something."""

    def receive(self) -> dict[str, Any]:
        """Wait for the next word; ends this process when the supervisor is gone."""


class WorkerSession:
    """A trial process. Stages before ``stage`` have ended: their Scan returns at once, so that the script goes on."""

    def __init__(self, job: Job, line: Line, stage: int) -> None:
        self.seed: Optional[int] = job.seed
        self._job = job
        self._line = line
        self._first = stage
        self._stage = 0
        self._alone = OneAtATime()

    def run(self, call: ScanCall) -> StageOutcome:
        """Serve this call's rows, then give the merged outcome as the driver has it."""
        with self._alone:
            return self._run_stage(call)

    def _run_stage(self, call: ScanCall) -> StageOutcome:
        self._stage += 1
        folder = RunDir(self._job.driver).stage(self._stage)
        try:
            call = replace(call, trials=self._agree(call.trials, call.experiment_name))
        except InputError as error:
            self._line.send({"type": "refuse", "error": str(error)})
            self._line.receive()  # nothing more is asked of this process; the supervisor ends it
        if self._stage >= self._first:
            self._serve(call)
        outcome = read_outcome_of(folder)
        seed_what_follows(call, outcome.records)
        return replace(outcome, trials=call.trials)

    def _serve(self, call: ScanCall) -> None:
        own = RunDir(self._job.run).stage(self._stage)
        trials = replace(call.trials, interruptible=False)
        drift = Drift(trials.data)
        store = self._store(own.trials, own.models) if call.keep else None
        self._line.send({"type": "ready", "stage": self._stage})
        while True:
            word = self._line.receive()
            if word["type"] == "return":
                return
            begun = trials.start(word["row"], word["attempt"])
            self._line.send({"type": "begun", "record": begun.to_json()})
            drift.before()
            record, _ = run_trial(trials, begun, store)
            if begun.row == trials.selection.size - 1:
                record = replace(record, generators=read_generators())
            self._notice(drift.after())
            share = self._job.share or {}
            record = replace(record, worker=self._job.worker, device=",".join(share.get("gpus", [])) or "cpu")
            self._line.send({"type": "done", "record": record.to_json()})

    def _agree(self, trials: Trials, name: str) -> Trials:
        """Take rows and plain values from the plan; SpaceMismatchError when this script built another space."""
        path = RunDir(self._job.driver).stage(self._stage).plan
        plan = StagePlan.from_json(read_json(path), path)
        agreed = agree(trials, name, plan)
        if plan.data is not None and plan.data != fingerprint(trials.data):
            self._notice(
                "this worker's data are not the driver's: the script draws or reads them anew each time; "
                "give its generator a seed, or rows are not comparable"
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
