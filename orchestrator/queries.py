"""What the looking commands print, out of a sweep's folder alone."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.console import table_text
from orchestrator.coordinator.outputs import Follower
from orchestrator.errors import InputError, RecordError
from orchestrator.plan.sizes import show_size
from orchestrator.prepare import Prepared
from orchestrator.records.atomic import read_json
from orchestrator.records.layout import RunDir, SweepDir, sweeps
from orchestrator.records.text import cell
from orchestrator.results.frame import sweep_frame
from orchestrator.results.merge import collect
from orchestrator.schema import COMPLETED, FAILED, LOST, StagePlan, SweepFile, SweepState, TrialRecord
from orchestrator.words import printable, summary_lines

_ENDED = ("finished", "stopped", "failed")


def find_sweep(runs: Path, name: str) -> SweepDir:
    """Give a sweep by its name, a unique beginning of it, or the path of its folder; InputError otherwise."""
    known = list(sweeps(str(runs)))
    if os.path.isfile(os.path.join(name, "sweep.json")):
        return SweepDir(os.path.realpath(name))
    matches = [each for each in known if each.name == name] or [each for each in known if each.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(f"{name}: {len(matches)} sweeps begin so: {', '.join(each.name for each in matches[-5:])}")
    have = f"; there are: {', '.join(each.name for each in known[-5:])}" if known else " (none there; see --runs)"
    raise InputError(f"{name}: no such sweep in {runs}{have}")


def read_sweep(folder: SweepDir) -> SweepFile:
    """Read ``sweep.json``."""
    return SweepFile.from_json(read_json(folder.sweep), folder.sweep)


def read_state(folder: SweepDir) -> SweepState | None:
    """Read ``state.json``; None when the sweep never got that far."""
    try:
        return SweepState.from_json(read_json(folder.state), folder.state)
    except FileNotFoundError:
        return None


def is_watched(folder: SweepDir) -> bool:
    """Say whether a coordinator is alive for this sweep: its lock is held."""
    try:
        descriptor = os.open(folder.lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # another user's: whether its launch lives cannot be seen from here, so it is left alone
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def status_word(folder: SweepDir) -> str:
    """Give one word for how a sweep stands; ``abandoned`` when its coordinator died."""
    state = read_state(folder)
    word = state.status if state else "planned"
    return word if word in _ENDED or is_watched(folder) else "abandoned"


def stages_of(folder: SweepDir) -> list[tuple[StagePlan, list[TrialRecord]]]:
    """Read every stage: its plan, and its records so far."""
    found = []
    for number in folder.driver.stages():
        path = folder.driver.stage(number).plan
        if os.path.exists(path):
            found.append((StagePlan.from_json(read_json(path), path), collect(folder, number)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A sweep's end, for people and for programs."""

    lines: list[str]
    data: dict[str, Any]


def sweep_summary(folder: SweepDir) -> Summary:
    """Give the best rows, the failures by cause, the folder, and what to type next."""
    lines: list[str] = []
    stages = stages_of(folder)
    for plan, records in stages:
        if len(stages) > 1:
            lines.append(f"Scan {plan.stage} {plan.experiment_name!r}:")
        lines += summary_lines(records, plan.keys[:6], cell)
    lines.append(f"folder: {folder.path}")
    name = folder.name
    runs = os.path.dirname(folder.path)
    told = name if runs == os.path.join(os.getcwd(), "runs") else f"{name} --runs {runs}"
    lines.append(f"next: talos-orch results {told} (or status, logs, inspect)")
    state = read_state(folder)
    data = {
        "sweep": name,
        "folder": folder.path,
        "results": folder.results,
        **(asdict(state) if state else {}),
    }
    data.pop("exit_code", None)
    data.pop("message", None)
    return Summary(lines=lines, data=data)


def plan_text(prepared: Prepared, *, as_json: bool) -> str:
    """Print the decisions of a launch."""
    sweep, info = prepared.sweep, prepared.info
    if as_json:
        data = {
            **sweep.to_json(),
            "rows": prepared.preflight.rows,
            "image_present": prepared.image_id is not None,
        }
        return json.dumps(data, indent=1)
    rows = prepared.preflight.rows
    image = "none: this machine's own Python" if sweep.image is None else sweep.image
    if sweep.image is not None and prepared.image_id is None:
        image += " (to be built first)"
    lines = [
        f"sweep     {sweep.name}",
        f"script    {sweep.script} {' '.join(sweep.arguments)}".rstrip(),
        f"project   {sweep.project}",
        f"workdir   {sweep.workdir}",
        f"folder    {prepared.runs / sweep.name}",
        f"engine    {info.name} {info.version} at {info.endpoint}: {info.machine.cpus} cores, {show_size(info.machine.memory)}",
        f"image     {image}",
        f"rows      {'known once the script reaches its Scan' if rows is None else rows}",
        f"seed      {sweep.seed} where the script gives none; models kept: {sweep.keep_models}",
    ]
    body = []
    for share in prepared.shares.workers:
        fraction = "" if share.gpu_fraction is None else f"{share.gpu_fraction:.3f}"
        cores = f"{share.cpus:g} ({share.cpuset})" if share.cpuset else f"{share.cpus:g}"
        sizes = [show_size(share.memory), show_size(share.shm)]
        body.append([str(share.worker), share.device, fraction, cores, str(share.threads), *sizes])
    table = table_text(["worker", "device", "fraction", "cores", "threads", "memory", "shm"], body)
    lines += [f"note      {note}" for note in sweep.notes]
    return "\n".join([*lines, "", table])


def list_text(runs: Path, *, as_json: bool) -> str:
    """List sweeps, with their state and rows."""
    rows = []
    for folder in sorted(sweeps(str(runs)), key=lambda each: read_sweep(each).created):
        state = read_state(folder)
        if state is not None and status_word(folder) == "abandoned":
            state = recount(folder, state)
        rows.append({"name": folder.name, "status": status_word(folder), "rows": state.rows if state else 0,
                     "completed": state.completed if state else 0, "failed": state.failed + state.lost if state else 0,
                     "folder": folder.path})  # fmt: skip
    if as_json:
        return json.dumps(rows, indent=1)
    if not rows:
        return f"no sweeps in {runs}"
    keys = ["name", "status", "rows", "completed", "failed"]
    return table_text(keys, [[str(row[key]) for key in keys] for row in rows])


def status_text(folder: SweepDir, *, as_json: bool) -> str:
    """Say how a sweep stands, from its files: they are newer than ``state.json`` while it runs."""
    sweep, state, word = read_sweep(folder), read_state(folder), status_word(folder)
    stages = stages_of(folder)
    workers = []
    for share in sweep.shares:
        number = int(share["worker"])
        own = [record for _, records in stages for record in records if record.worker == number]
        failed = sum(record.status != COMPLETED for record in own)
        workers.append({"worker": number, "device": ",".join(share["gpus"]) or "cpu", "completed": len(own) - failed,
                        "failed": failed, "state": _worker_state(folder.worker(number), word)})  # fmt: skip
    scans = [{"scan": plan.stage, "experiment": plan.experiment_name, "rows": plan.rows, "recorded": len(records)}
             for plan, records in stages]  # fmt: skip
    if as_json:
        data = {"name": folder.name, "status": word, "scans": scans, "workers": workers,
                "exit_code": state.exit_code if state else None, "message": state.message if state else None}  # fmt: skip
        return json.dumps(data, indent=1)
    lines = [f"{folder.name}: {word}" + (f" ({state.message})" if state and state.message else "")]
    lines += [
        f"Scan {scan['scan']} {scan['experiment']!r}: {scan['recorded']}/{scan['rows']} rows recorded" for scan in scans
    ]
    keys = ["worker", "device", "state", "completed", "failed"]
    lines.append(table_text(keys, [[str(worker[key]) for key in keys] for worker in workers]).rstrip("\n"))
    for plan, records in stages:
        lines += summary_lines(records, plan.keys[:6], cell)
    return "\n".join(printable(line) for line in lines)


def _worker_state(run: RunDir, sweep_word: str) -> str:
    if sweep_word in _ENDED:
        return "ended"
    try:
        beat = read_json(run.beat)
    except (OSError, RecordError):
        return "not started"
    state = str(beat.get("state", "?")) if isinstance(beat, dict) else "?"
    return f"was {state}" if sweep_word == "abandoned" else state


def recount(folder: SweepDir, state: SweepState) -> SweepState:
    """Count the records themselves, where nobody keeps ``state.json`` up to date any more."""
    statuses = [record.status for _, records in stages_of(folder) for record in records]
    return replace(state, completed=statuses.count(COMPLETED), failed=statuses.count(FAILED), lost=statuses.count(LOST))


def print_log(folder: SweepDir, worker: int | None, *, follow: bool, sleep: Callable[[float], None]) -> None:
    """Copy a role's log to stdout, as text without control characters when that is a terminal."""
    run = folder.driver if worker is None else folder.worker(worker)
    if worker is not None and worker not in folder.workers():
        raise InputError(
            f"{folder.name} has no worker {worker}; it has {', '.join(map(str, folder.workers())) or 'none'}"
        )
    clean: Callable[[str], str] = printable if sys.stdout.isatty() else str
    follower = Follower(run.log)
    while True:
        watched = follow and is_watched(folder)
        while text := follower.read():
            sys.stdout.write(clean(text))
        sys.stdout.flush()
        if not watched:
            return
        sleep(0.2)


def inspect_text(folder: SweepDir, worker: int | None) -> str:
    """Give everything that the files say, as one JSON document."""
    if worker is None:
        parts = {
            "sweep": folder.sweep,
            "state": folder.state,
            "driver_job": folder.driver.job,
            "driver_ended": folder.driver.ended,
        }
    else:
        if worker not in folder.workers():
            raise InputError(
                f"{folder.name} has no worker {worker}; it has {', '.join(map(str, folder.workers())) or 'none'}"
            )
        run = folder.worker(worker)
        parts = {
            "share": run.share,
            "limits": run.limits,
            "job": run.job,
            "now": run.beat,
            "ended": run.ended,
        }
    return json.dumps({name: _read_or_none(path) for name, path in parts.items()}, indent=1, ensure_ascii=False)


def _read_or_none(path: str) -> Any:
    try:
        return read_json(path)
    except OSError:
        return None


def results_text(folder: SweepDir, form: str) -> str:
    """Give the merged table as it is now."""
    frame = sweep_frame(folder)
    if form == "csv":
        return str(frame.to_csv(index=False))
    if form == "json":
        return str(frame.to_json(orient="records", indent=1, double_precision=15))
    hidden = ("start", "end", "execution_time", "_warnings", "_trial_id", "_param_hash")
    shown = frame.drop(columns=[name for name in hidden if name in frame])
    body = [[_cell_text(value) for value in row] for row in shown.itertuples(index=False)]
    return (
        table_text([str(name) for name in shown.columns], body)
        if len(shown)
        else f"no rows recorded yet in {folder.name}"
    )


def _cell_text(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN is the only value unlike itself
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
