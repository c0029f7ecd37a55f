"""``Scan`` in the driver: write the plan, wait for the coordinator's word, read the merged records."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from typing import Any, Optional

from orchestrator.errors import ContractError, OrchestratorError, SpaceMismatchError, StoppedError
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import RunDir, StageDir
from orchestrator.records.trial_log import read_log
from orchestrator.scan.call import ScanCall, StageOutcome, seed_what_follows
from orchestrator.scan.drift import fingerprint
from orchestrator.scan.pulse import Pulse
from orchestrator.scan.reduction import Reducer
from orchestrator.scan.rules import refuse_past
from orchestrator.scan.trial import Trials
from orchestrator.scan.turns import Turns, same_but_for_time, several
from orchestrator.schema import StagePlan, StageResult, TrialRecord
from orchestrator.space import Selection

_LOOK_EVERY = 0.01  # seconds; one stat of one file


class DriverSession:
    """The sweep's driver; ``seed`` is the sweep's own, for a Scan without one."""

    def __init__(self, run: RunDir, seed: int) -> None:
        self.seed: Optional[int] = seed
        self._run = run
        self._pulse = Pulse(run.alive)
        self._turns = Turns(run.turns)

    @property
    def scans(self) -> int:
        """How many times Scan was called."""
        return self._turns.count

    def run(self, call: ScanCall) -> StageOutcome:
        """Have the workers run every row; StoppedError when the coordinator is gone.

        Scans that threads or forked processes call at the same time come one after another.
        """
        with self._turns.alone():
            stage = self._choose(call)
            self._turns.take(stage)
            return self._run_stage(call, stage)

    def _choose(self, call: ScanCall) -> int:
        """Give the number of this Scan: of the plan of an earlier launch that is its own, else the next that is free.

        SpaceMismatchError where there are such plans and none is its own, unless other threads or processes may come to
        them yet.
        """
        taken = self._turns.taken
        planned = [each for each in self._run.stages() if os.path.exists(self._run.stage(each).plan)]
        open_ones = [each for each in planned if each not in taken]
        trouble: Optional[SpaceMismatchError] = None
        fitting: dict[int, str] = {}
        for number in open_ones:
            path = self._run.stage(number).plan
            plan = StagePlan.from_json(read_json(path), path)
            try:
                agree(call.trials, plan)
            except SpaceMismatchError as error:
                trouble = trouble or error
            else:
                fitting[number] = plan.experiment_name
        # By name where Scans come in any order; a name may hold the time, and then another Scan of that place is this one.
        named = next((number for number, name in fitting.items() if name == call.experiment_name), None)
        if named is not None:
            return named
        similar = (number for number, name in fitting.items() if same_but_for_time(name, call.experiment_name))
        near = next(iter(fitting), None) if not several() else next(similar, None)
        if near is not None:
            return near
        if trouble is not None and not several():
            raise SpaceMismatchError(
                f"Scan {open_ones[0]} is not the one that this sweep began with ({trouble}): its rows stay as they are; "
                "put the script back as it was, or launch a new sweep"
            ) from trouble
        used = {*planned, *taken}
        return next(number for number in range(1, len(used) + 2) if number not in used)

    def _run_stage(self, call: ScanCall, stage: int) -> StageOutcome:
        folder = self._run.stage(stage)
        os.makedirs(folder.path, exist_ok=True)
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "flush", bool)()
        call = self._plan(call, folder, stage)
        reductions = Reductions(folder, call.reducer) if call.reducer is not None else None
        while not os.path.exists(folder.result):
            if reductions is not None:
                reductions.answer()
            if self._pulse.stopped():
                raise StoppedError("the coordinator is gone: start the sweep again")
            time.sleep(_LOOK_EVERY)
        outcome = read_outcome_of(folder)
        seed_what_follows(call, outcome.records)
        return replace(outcome, trials=call.trials)

    def _plan(self, call: ScanCall, folder: StageDir, stage: int) -> ScanCall:
        """Write the plan; where an earlier launch of the sweep has written it, go on with that one."""
        if os.path.exists(folder.plan):
            plan = StagePlan.from_json(read_json(folder.plan), folder.plan)
            if call.reducer is not None:
                call.reducer.check()
            if plan.data is not None and plan.data != fingerprint(call.trials.data):
                sys.stderr.write(
                    f"talos-orch: Scan {stage}: the data are not those of the rows that are recorded; they have changed since, "
                    "or the script draws them anew each time\n"
                )
            return replace(call, trials=agree(call.trials, plan))
        refuse_past(call.deadline, call.trials.selection.size)
        if call.reducer is not None:
            call.reducer.check()
        plan = make_plan(stage, call)
        if os.path.exists(folder.plan_before):
            before = StagePlan.from_json(read_json(folder.plan_before), folder.plan_before)
            if is_same(before, plan):
                plan, call = before, replace(call, trials=agree(call.trials, before))
            else:
                folder.forget_reductions()
        write_json(folder.plan, plan.to_json())
        return call


class Reductions:
    """Answers the coordinator's requests to reduce, one after another; the reducer keeps what it has seen."""

    def __init__(self, folder: StageDir, reducer: Reducer) -> None:
        self._folder, self._reducer = folder, reducer
        self._next = 1
        self._records: list[TrialRecord] = []
        self._gone: set[int] = set()

    def answer(self) -> None:
        """Look for the next request and answer it: ``{"removed": rows}``, or ``{"error": why}``."""
        if not os.path.exists(self._folder.reduction(self._next, "request.json")):
            return
        self._records += read_log(self._folder.reduction(self._next, "records.jsonl"))
        path = self._folder.reduction(self._next, "answer.json")
        if os.path.exists(path):  # given in an earlier launch
            answer = read_json(path)
        else:
            answer = self._look()
            write_json(path, answer)
        self._gone |= set(answer.get("removed", []))
        self._next += 1

    def _look(self) -> dict[str, Any]:
        try:
            return {"removed": self._reducer.reduce(self._records, self._gone)}
        except OrchestratorError as error:
            return {"error": str(error)}


def make_plan(stage: int, call: ScanCall) -> StagePlan:
    """Write down a call so that a worker can check that its own is the same."""
    trials = call.trials
    return StagePlan(
        stage=stage,
        experiment_name=call.experiment_name,
        rows=trials.selection.size,
        keys=list(trials.domain.keys),
        space=trials.domain.describe(),
        fingerprint=trials.domain.fingerprint(),
        selection=trials.selection.to_json(),
        base_seed=trials.base_seed or 0,
        seed=call.seed,
        objective=call.objective,
        minimize=call.minimize,
        keep=call.keep,
        shard_namespace=trials.shard_namespace,
        target=[call.target.metric, call.target.threshold, call.target.minimize] if call.target else None,
        deadline=call.deadline,
        data=fingerprint(trials.data),
        reduction_interval=call.reduction.interval if call.reduction else None,
    )


def is_same(one: StagePlan, other: StagePlan) -> bool:
    """Say whether two plans have the same rows with the same seeds, so that records of one are records of the other."""
    return (one.fingerprint, one.selection, one.rows, one.base_seed) == (
        other.fingerprint, other.selection, other.rows, other.base_seed
    )  # fmt: skip


def agree(trials: Trials, plan: StagePlan) -> Trials:
    """Take rows, seeds and plain values from a plan; SpaceMismatchError when this script built another space."""
    return replace(
        trials,
        domain=trials.domain.adopt(plan.space),
        selection=Selection.from_json(plan.selection),
        base_seed=plan.base_seed,
        shard_namespace=plan.shard_namespace,
    )


def read_outcome_of(folder: StageDir) -> StageOutcome:
    """Read a stage that has ended; ContractError when no row gave a usable result."""
    result = StageResult.from_json(read_json(folder.result), folder.result)
    records = read_log(folder.trials)
    if result.status == "refused":
        raise ContractError(result.reason)
    run = os.path.join(folder.talos, result.run_name) if result.run_name else None
    return StageOutcome(records, result.status, folder.path, result.rows, result.reason, run)
