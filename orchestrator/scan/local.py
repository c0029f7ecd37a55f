"""``Scan`` outside any sweep: the trials run here, one after another."""

from __future__ import annotations

import datetime
import os
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Optional

from orchestrator.errors import ContractError
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import StageDir
from orchestrator.records.talos_run import RunIdentity, candidates, safe_experiment, write_talos_run
from orchestrator.records.text import record_values
from orchestrator.records.trial_log import TrialLog
from orchestrator.scan.call import ScanCall, StageOutcome
from orchestrator.scan.models import KeepPolicy, ModelStore
from orchestrator.scan.rules import is_past, refuse_past
from orchestrator.scan.trial import run_trial
from orchestrator.schema import COMPLETED, StageResult, TrialRecord


class LocalSession:
    """Runs rows in this process and records them under ``<experiment_name>/<time>_<hash>/``."""

    seed: Optional[int] = None

    def __init__(self, keep_models: str = "best:10") -> None:
        self._policy = KeepPolicy.parse(keep_models)

    def run(self, call: ScanCall) -> StageOutcome:
        """Run every row; Ctrl-C ends the scan after the rows that are done, as in Talos."""
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d_%H%M%S_%f")
        folder = StageDir(
            os.path.join(os.path.abspath(safe_experiment(call.experiment_name)), f"{stamp}_{uuid.uuid4().hex[:8]}")
        )
        refuse_past(call.deadline, call.trials.selection.size)
        if call.reducer is not None:
            call.reducer.check()
        call = replace(call, trials=replace(call.trials, folder=folder.path))
        log = TrialLog(folder.trials)
        store = ModelStore(folder.models, self._policy) if call.keep else None
        records: list[TrialRecord] = []
        status, reason = "complete", None
        try:
            for record in self._rows(call, store, records):
                log.append(record)
                records.append(record)
                if call.target is not None and call.target.is_reached(record):
                    reason = f"{call.target.describe()} reached"
                    break
                if is_past(call.deadline):
                    status, reason = "paused", "time_limit"
                    break
        except KeyboardInterrupt:
            status, reason = "paused", "interrupted"
        finally:
            log.close()
        done = sum(record.status == COMPLETED for record in records)
        rows = call.trials.selection.size
        write_json(folder.result, StageResult(1, status, rows, done, len(records) - done, 0, reason).to_json())
        run = RunIdentity(
            name=os.path.basename(folder.path),
            experiment_name=call.experiment_name,
            space=candidates(call.trials.domain.describe(), records),
            seed=call.seed,
            status=status,
            objective=call.objective,
            minimize=call.minimize,
        )
        write_talos_run(folder.path, run, records, folder.models, record_values)
        return StageOutcome(records, status, folder.path, rows, reason, folder.path)

    @staticmethod
    def _rows(call: ScanCall, store: Optional[ModelStore], records: list[TrialRecord]) -> Iterator[TrialRecord]:
        """Run the rows that no reducer has taken away; ContractError if the first result is none."""
        gone: set[int] = set()
        rows = call.trials.selection.size
        for row in range(rows):
            if row in gone:
                continue
            record, _ = run_trial(call.trials, call.trials.start(row, 1, len(records)), store)
            if record.contract_error and not any(each.status == COMPLETED for each in records):
                raise ContractError(record.error)
            yield replace(record, worker=0)
            if call.progress:
                sys.stderr.write(f"\r{row + 1}/{rows}")
            if (
                call.reduction is not None
                and call.reducer is not None
                and len(records) % (call.reduction.interval or 1) == 0
            ):
                gone |= set(call.reducer.reduce(records, gone))
