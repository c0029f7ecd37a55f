"""``Scan`` in the driver: write the plan, wait for the coordinator's word, read the merged records."""

from __future__ import annotations

import os
import sys
import time
from typing import Optional

from orchestrator.errors import ContractError, StoppedError
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import RunDir, StageDir
from orchestrator.records.trial_log import read_log
from orchestrator.scan.call import ScanCall, StageOutcome
from orchestrator.scan.pulse import Pulse
from orchestrator.schema import StagePlan, StageResult

_LOOK_EVERY = 0.01  # seconds; one stat of one file


class DriverSession:
    """The sweep's driver; ``seed`` is the sweep's own, for a Scan without one."""

    def __init__(self, run: RunDir, seed: int) -> None:
        self.seed: Optional[int] = seed
        self._run = run
        self._stage = 0
        self._pulse = Pulse(run.alive)

    @property
    def scans(self) -> int:
        """How many times Scan was called."""
        return self._stage

    def run(self, call: ScanCall) -> StageOutcome:
        """Have the workers run every row; StoppedError when the coordinator is gone."""
        self._stage += 1
        folder = self._run.stage(self._stage)
        os.makedirs(folder.path, exist_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        write_json(folder.plan, make_plan(self._stage, call).to_json())
        while not os.path.exists(folder.result):
            if self._pulse.stopped():
                raise StoppedError("the coordinator is gone: start the sweep again")
            time.sleep(_LOOK_EVERY)
        return read_outcome_of(folder)


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
    )


def read_outcome_of(folder: StageDir) -> StageOutcome:
    """Read a stage that has ended; ContractError when no row gave a usable result."""
    result = StageResult.from_json(read_json(folder.result), folder.result)
    records = read_log(folder.trials)
    if result.status == "refused":
        raise ContractError(result.reason)
    return StageOutcome(records, result.status, folder.path, result.rows, result.reason)
