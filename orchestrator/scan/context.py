"""What Talos tells its own callbacks about the trial that runs, such as where ``ExperimentLog`` writes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, Optional

from orchestrator.schema import TrialRecord


@contextlib.contextmanager
def trial_context(folder: Optional[str], record: TrialRecord, params: dict[str, Any]) -> Iterator[None]:
    """Set Talos's trial context, where the script uses what asks for it; ``folder`` stands in for the run directory."""
    module = sys.modules.get("talos.experiment.context")
    if module is None or folder is None:
        yield
        return
    token = module.set_trial_context(
        {
            "run_dir": folder,
            "experiment_name": os.path.basename(os.path.dirname(folder)),
            "experiment_id": os.path.basename(folder),
            "trial_id": record.trial_id,
            "model_id": record.row,
            "params": params,
        }
    )
    try:
        yield
    finally:
        module.reset_trial_context(token)
