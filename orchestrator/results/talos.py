"""Each stage as a genuine Talos run directory, in the sweep's folder under ``talos/<experiment>/<run>``."""

from __future__ import annotations

import contextlib
import os

from orchestrator.records.layout import SweepDir
from orchestrator.records.talos_run import RunIdentity, candidates, safe_experiment, write_talos_run
from orchestrator.records.text import record_values
from orchestrator.schema import StagePlan, TrialRecord


def write_stage_run(sweep: SweepDir, plan: StagePlan, records: list[TrialRecord], status: str, wall: str) -> str:
    """Write a stage's run directory and the link to it; the run's name, ``<time>_<hash>`` as Talos has it.

    ``wall`` is UTC ISO 8601. The directory itself lies in the driver's folder, where driver and workers can read it.
    """
    digits = "".join(mark for mark in wall[:26] if mark.isdigit()).ljust(20, "0")
    name = f"{digits[:8]}_{digits[8:14]}_{digits[14:20]}_{plan.fingerprint[:8]}"
    stage = sweep.driver.stage(plan.stage)
    path = os.path.join(stage.talos, name)
    identity = RunIdentity(
        name=name,
        experiment_name=plan.experiment_name,
        space=candidates(plan.space, records),
        seed=plan.seed,
        status=status,
        objective=plan.objective,
        minimize=plan.minimize,
    )
    write_talos_run(path, identity, records, stage.models, record_values)
    experiment = os.path.join(sweep.talos, safe_experiment(plan.experiment_name))
    os.makedirs(experiment, exist_ok=True)
    # Relative, so that the sweep's folder can be moved.
    with contextlib.suppress(FileExistsError):
        os.symlink(os.path.relpath(path, experiment), os.path.join(experiment, name))
    return name
