"""Stop a sweep from elsewhere, and sweep up what dead launches left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from orchestrator.config import Surroundings
from orchestrator.engine.base import Engine
from orchestrator.engine.docker import DockerEngine
from orchestrator.engine.open import erase_scratch, open_engine
from orchestrator.errors import EngineError
from orchestrator.queries import is_watched, read_sweep, status_word
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import SweepDir, sweeps


def stop_sweep(folder: SweepDir, around: Surroundings, *, now: bool) -> str:
    """Ask the coordinator to stop; where it is gone, end and remove the sweep's containers. A sentence on what was done."""
    if is_watched(folder):
        write_json(folder.stop, {"schema": 1, "now": now})
        return f"{folder.name}: asked to stop{' at once' if now else ', rows in hand finish'}"
    engine = open_engine(read_sweep(folder).engine, around, ())
    members = engine.members(folder.path)
    if not members:
        return f"{folder.name}: nothing is running ({status_word(folder)})"
    engine.stop(folder.path, grace=0.0 if now else 10.0)
    engine.remove(folder.path)
    _erase(engine, folder)
    return f"{folder.name}: its launch was gone; ended and removed {', '.join(members)}"


def clean_leftovers(runs: Path, around: Surroundings, *, everywhere: bool, remove: bool) -> list[str]:
    """Find what belongs to no living launch; with ``remove`` take it away. One line per sweep.

    ``everywhere`` takes in the sweeps of every folder that have something on the Docker Engine.
    """
    engines: list[Engine] = [open_engine("process", around, ())]
    folders = {folder.path for folder in sweeps(str(runs))}
    try:
        docker = open_engine("docker", around, ())
        engines.append(docker)
        if isinstance(docker, DockerEngine):
            folders |= {path for path in docker.folders() if everywhere or os.path.dirname(path) == str(runs)}
    except EngineError:
        pass  # without an engine there can be no containers of it to find
    lines = []
    for path in sorted(folders):
        folder = SweepDir(path)
        if is_watched(folder):
            continue
        found = [(engine, engine.members(path)) for engine in engines]
        scratch = [os.path.basename(run.path) for run in folder.roles() if os.path.exists(run.scratch)]
        names = [f"{member}" for _, members in found for member in members]
        if not names and not scratch:
            continue
        what = ", ".join([*names, *(f"work folder of {name}" for name in scratch)])
        lines.append(f"{'removed' if remove else 'would remove'}: {folder.path}: {what}")
        if remove:
            for engine, members in found:
                if members:
                    engine.stop(path, grace=2.0)
                    engine.remove(path)
                _erase(engine, folder)
    if lines and not remove:
        lines.append("nothing is removed without --yes")
    return lines or ["nothing to clean"]


def _erase(engine: Engine, folder: SweepDir) -> None:
    left = []
    for run in folder.roles():
        shutil.rmtree(run.scratch, ignore_errors=True)
        if os.path.exists(run.scratch):
            left.append(os.path.relpath(run.scratch, folder.path))
    if left:
        erase_scratch(engine, read_sweep(folder).image_id, folder.path, left)
