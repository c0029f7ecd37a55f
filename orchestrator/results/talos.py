"""Each stage as a genuine Talos run directory, in the sweep's folder under ``talos/<experiment>/<run>``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat

from orchestrator.records.atomic import open_folder
from orchestrator.records.layout import SweepDir
from orchestrator.records.talos_run import RunIdentity, candidates, safe_experiment, write_talos_run
from orchestrator.records.text import record_values
from orchestrator.schema import StagePlan, TrialRecord

_LOG = re.compile(r"epochs-[0-9A-Za-z:_-]{1,128}\.log")
_LARGEST_LOG = 64 * 1024 * 1024


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
    for worker in sweep.workers():
        _copy_logs(sweep, worker, plan.stage, path)
    experiment = os.path.join(sweep.talos, safe_experiment(plan.experiment_name))
    os.makedirs(experiment, exist_ok=True)
    # Relative, so that the sweep's folder can be moved.
    with contextlib.suppress(FileExistsError):
        os.symlink(os.path.relpath(path, experiment), os.path.join(experiment, name))
    return name


def _copy_logs(sweep: SweepDir, worker: int, stage: int, target: str) -> None:
    """Copy what Talos's ExperimentLog has written in a worker: plain files of its names alone, since user code writes there."""
    run = sweep.worker(worker)
    with (
        contextlib.suppress(OSError),
        open_folder(run.path, os.path.relpath(run.stage(stage).talos, run.path)) as folder,
    ):
        for name in sorted(os.listdir(folder)):
            if not _LOG.fullmatch(name):
                continue
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as source:
                status = os.fstat(source.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_LOG:
                    continue
                with open(os.path.join(target, name), "wb") as copy:
                    shutil.copyfileobj(source, copy)
