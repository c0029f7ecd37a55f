"""``Scan`` outside any sweep: the trials run here, one after another."""

from __future__ import annotations

import datetime
import os
import sys
import uuid
from dataclasses import replace
from typing import Optional

from orchestrator.errors import ContractError
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import StageDir
from orchestrator.records.trial_log import TrialLog
from orchestrator.scan.call import ScanCall, StageOutcome
from orchestrator.scan.models import KeepPolicy, ModelStore
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
        folder = StageDir(os.path.join(os.path.abspath(call.experiment_name), f"{stamp}_{uuid.uuid4().hex[:8]}"))
        log = TrialLog(folder.trials)
        store = ModelStore(folder.models, self._policy) if call.keep else None
        records: list[TrialRecord] = []
        status = "complete"
        try:
            for row in range(call.trials.selection.size):
                record, _ = run_trial(call.trials, call.trials.start(row, 1), store)
                if record.contract_error and not any(each.status == COMPLETED for each in records):
                    raise ContractError(record.error)
                record = replace(record, worker=0)
                log.append(record)
                records.append(record)
                if call.progress:
                    sys.stderr.write(f"\r{row + 1}/{call.trials.selection.size}")
        except KeyboardInterrupt:
            status = "paused"
        finally:
            log.close()
        done = sum(record.status == COMPLETED for record in records)
        rows = call.trials.selection.size
        write_json(folder.result, StageResult(1, status, rows, done, len(records) - done, 0).to_json())
        return StageOutcome(records, status, folder.path, rows)
