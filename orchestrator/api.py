"""``launch`` and ``resume`` from Python."""

from __future__ import annotations

import datetime
import os
import time
from dataclasses import dataclass
from typing import Any

import pandas as pd

from orchestrator.config import load_settings, read_surroundings
from orchestrator.console import LineView
from orchestrator.coordinator.clock import Clock
from orchestrator.coordinator.stopping import StopSwitch
from orchestrator.queries import find_sweep
from orchestrator.records.layout import SweepDir
from orchestrator.results.frame import sweep_frame
from orchestrator.resuming import resume as run_resume
from orchestrator.run import Finished
from orchestrator.run import launch as run_launch


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedSweep:
    """A sweep that has ended. ``exit_code`` is the command line's; ``message`` says why it is not 0."""

    folder: str
    exit_code: int
    message: str | None

    @property
    def results(self) -> pd.DataFrame:
        """The merged table, failed rows included (column ``status``)."""
        return sweep_frame(SweepDir(self.folder))


def launch(script: str, *arguments: str, workers: int | None = None, gpus: Any = None, **options: Any) -> LaunchedSweep:
    """Run a script as ``talos-orch launch`` does and wait for its end.

    ``options`` are the command's, with underscores: ``memory="4g"``, ``engine="process"``. Raises an OrchestratorError
    for what is known to be wrong before any container starts.
    """
    around = read_surroundings(os.environ)
    listed = ",".join(map(str, gpus)) if isinstance(gpus, (list, tuple)) else gpus
    settings = load_settings(
        {"script": script, "workers": workers, "gpus": listed, **options}, os.environ, around.folder
    )
    view = LineView()
    return _ended(run_launch(settings, around, arguments, StopSwitch(), _clock(), view.show, view.say))


def resume(folder: str, *, rerun_failed: bool = False, **options: Any) -> LaunchedSweep:
    """Go on with a sweep, given by its folder, as ``talos-orch resume`` does and wait for its end.

    ``options`` are the command's, with underscores: ``workers=4``, ``memory="4g"``. Raises an OrchestratorError as
    ``launch`` does, and where another command is at work on the sweep.
    """
    around, view = read_surroundings(os.environ), LineView()
    return _ended(
        run_resume(
            find_sweep(around.folder, folder), options, around, StopSwitch(), _clock(), view.show, view.say,
            rerun_failed=rerun_failed,
        )
    )  # fmt: skip


def _ended(finished: Finished) -> LaunchedSweep:
    return LaunchedSweep(folder=finished.folder.path, exit_code=finished.exit_code, message=finished.message)


def _clock() -> Clock:
    return Clock(steady=time.monotonic, wall=_now, sleep=time.sleep, started=time.monotonic())


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat()
