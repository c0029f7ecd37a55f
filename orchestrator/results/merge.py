"""All workers' records of a stage into one log in row order, with the models that are worth keeping beside it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import replace

from orchestrator.records.atomic import open_folder, write_text
from orchestrator.records.layout import SweepDir
from orchestrator.records.trial_log import outranks, read_log
from orchestrator.scan.models import KeepPolicy, KeptRows, model_files
from orchestrator.schema import COMPLETED, TrialRecord


def collect(sweep: SweepDir, stage: int, *, merged: bool = True) -> list[TrialRecord]:
    """Read a stage's records in row order: the merged log once the stage has ended, the workers' own logs before.

    Without ``merged`` the workers' own in any case.

    Of several records of one row a completed one counts, then the last attempt. Raises RecordError on damage.
    """
    whole = sweep.driver.stage(stage).trials
    if merged and os.path.exists(whole):
        return read_log(whole)
    rows: dict[int, TrialRecord] = {}
    for worker in sweep.workers():
        for record in read_log(sweep.worker(worker).stage(stage).trials):
            if record.row not in rows or outranks(record, rows[record.row]):
                rows[record.row] = record
    return [rows[row] for row in sorted(rows)]


def write_merged(sweep: SweepDir, stage: int, records: Iterable[TrialRecord], keep_models: str) -> list[TrialRecord]:
    """Write the merged log and copy the kept models into the driver's directory; the records as written.

    A record's ``model`` is left only where its file is there.
    """
    folder = sweep.driver.stage(stage)
    ordered = sorted(records, key=lambda record: record.row)
    kept = KeptRows(KeepPolicy.parse(keep_models))
    for record in ordered:
        if record.status == COMPLETED:
            kept.offer(record.row, record.metrics)
    best = kept.rows()
    written = [
        replace(record, model=record.model if record.row in best and _copy_model(sweep, stage, record) else None)
        for record in ordered
    ]
    lines = (json.dumps(record.to_json(), ensure_ascii=False, separators=(",", ":")) for record in written)
    os.makedirs(folder.path, exist_ok=True)
    write_text(folder.trials, "".join(line + "\n" for line in lines))
    return written


def _copy_model(sweep: SweepDir, stage: int, record: TrialRecord) -> bool:
    if record.model is None:
        return False
    names = model_files(record.model)
    run = sweep.worker(record.worker)
    target = sweep.driver.stage(stage).models
    try:
        # Step by step from the worker's own folder, following no link: user code may have put one anywhere in there,
        # and what it leads to would then be readable in the driver.
        with open_folder(run.path, os.path.relpath(run.stage(stage).models, run.path)) as folder:
            return bool(names) and all(_copy_file(folder, target, name) for name in names)
    except OSError:
        return False


def _copy_file(folder: int, target_folder: str, name: str) -> bool:
    if name in ("", ".", "..") or not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.makedirs(target_folder, exist_ok=True)
    target = os.path.join(target_folder, name)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    try:
        os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError:  # another file system
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
    return True
