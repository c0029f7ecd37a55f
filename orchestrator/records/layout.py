"""The names of all files of a sweep; nothing else in the program spells them.

::

    runs/<sweep>/
      sweep.json  state.json  results.csv
      driver/      job.json  log.txt  out.txt  err.txt  scan-01/{plan.json, result.json, trials.jsonl, models/}
      workers/00/  job.json  worker.json  limits.json  log.txt  files/  scan-01/{queue/, active/, trials.jsonl, models/}
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_STAGE = re.compile(r"scan-(\d{2,})$")
_WORKER = re.compile(r"\d{2,}$")


@dataclass(frozen=True)
class StageDir:
    """One ``Scan`` call's folder, in the driver's or in a worker's run directory."""

    path: str

    @property
    def plan(self) -> str:
        """The driver's plan."""
        return os.path.join(self.path, "plan.json")

    @property
    def plan_before(self) -> str:
        """The plan of an earlier launch, whose records count if the driver comes to the same one again."""
        return os.path.join(self.path, "plan.before.json")

    @property
    def result(self) -> str:
        """The coordinator's word that the stage has ended."""
        return os.path.join(self.path, "result.json")

    @property
    def trials(self) -> str:
        """The trial log: a worker's own, or in the driver's folder the merged one."""
        return os.path.join(self.path, "trials.jsonl")

    @property
    def models(self) -> str:
        """Kept models and weights."""
        return os.path.join(self.path, "models")

    @property
    def queue(self) -> str:
        """Chunks waiting."""
        return os.path.join(self.path, "queue")

    @property
    def active(self) -> str:
        """The chunk in hand."""
        return os.path.join(self.path, "active")

    @property
    def left(self) -> str:
        """Chunks taken out by a stop, for a later resume."""
        return os.path.join(self.path, "left")

    @property
    def talos(self) -> str:
        """The stage as a Talos 2 run directory, one folder with the run's name."""
        return os.path.join(self.path, "talos")

    @property
    def halt(self) -> str:
        """Its presence tells a worker to begin no other row of this stage."""
        return os.path.join(self.path, "halt")

    def reduction(self, number: int, part: str) -> str:
        """Give a file of one look by the reducer: ``records.jsonl``, ``request.json`` or ``answer.json``."""
        return os.path.join(self.path, f"reduce-{number:03d}.{part}")

    def forget_reductions(self) -> None:
        """Delete what a reducer was asked and answered: it was about other rows."""
        for name in os.listdir(self.path):
            if name.startswith("reduce-"):
                os.unlink(os.path.join(self.path, name))

    @property
    def results(self) -> str:
        """This stage's table."""
        return os.path.join(self.path, "results.csv")


@dataclass(frozen=True)
class RunDir:
    """The mounted directory of one role: ``driver/`` or ``workers/NN/``."""

    path: str

    def stage(self, number: int) -> StageDir:
        """Give stage ``number`` (from 1)."""
        return StageDir(os.path.join(self.path, f"scan-{number:02d}"))

    def stages(self) -> list[int]:
        """List the stage numbers that are there, in order."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(int(match.group(1)) for match in map(_STAGE.match, names) if match)

    @property
    def job(self) -> str:
        """What the role has to do."""
        return os.path.join(self.path, "job.json")

    @property
    def share(self) -> str:
        """A worker's share."""
        return os.path.join(self.path, "worker.json")

    @property
    def limits(self) -> str:
        """What was applied in the container."""
        return os.path.join(self.path, "limits.json")

    @property
    def log(self) -> str:
        """All output of this role."""
        return os.path.join(self.path, "log.txt")

    @property
    def out(self) -> str:
        """The script's own standard output (driver only)."""
        return os.path.join(self.path, "out.txt")

    @property
    def err(self) -> str:
        """The script's own standard error (driver only)."""
        return os.path.join(self.path, "err.txt")

    @property
    def files(self) -> str:
        """What the script wrote in this worker's view of the project."""
        return os.path.join(self.path, "files")

    @property
    def scratch(self) -> str:
        """The kernel's work folder for that view."""
        return os.path.join(self.path, ".work")

    @property
    def stop(self) -> str:
        """Its presence tells a worker to end after the row in hand."""
        return os.path.join(self.path, "stop")

    @property
    def beat(self) -> str:
        """What the worker is doing now; rewritten at each trial."""
        return os.path.join(self.path, "now.json")

    @property
    def turns(self) -> str:
        """Locked by the thread or process whose Scan it is."""
        return os.path.join(self.path, ".turns")

    @property
    def alive(self) -> str:
        """Touched by the coordinator while it lives."""
        return os.path.join(self.path, "alive")

    @property
    def ended(self) -> str:
        """How the role ended, in its own words."""
        return os.path.join(self.path, "ended.json")


@dataclass(frozen=True)
class SweepDir:
    """A sweep's folder."""

    path: str

    @property
    def name(self) -> str:
        """The sweep's name: the folder's."""
        return os.path.basename(self.path)

    @property
    def sweep(self) -> str:
        """What was asked."""
        return os.path.join(self.path, "sweep.json")

    @property
    def settings(self) -> str:
        """The options of its launch, for a resume; readable by its owner alone, since they hold variables."""
        return os.path.join(self.path, "launch.json")

    @property
    def state(self) -> str:
        """How it stands."""
        return os.path.join(self.path, "state.json")

    @property
    def stop(self) -> str:
        """A request to stop, left by ``talos-orch stop``."""
        return os.path.join(self.path, "stop.json")

    @property
    def lock(self) -> str:
        """Held by the coordinator while it lives."""
        return os.path.join(self.path, ".lock")

    @property
    def results(self) -> str:
        """The merged table."""
        return os.path.join(self.path, "results.csv")

    @property
    def written(self) -> str:
        """What was in the project in the place of what the script wrote, and a list of that, for a resume."""
        return os.path.join(self.path, "written")

    @property
    def pristine(self) -> str:
        """The project as it was, while the sweep runs, where the engine gives no views."""
        return os.path.join(self.path, ".project")

    @property
    def talos(self) -> str:
        """Talos 2 run directories by experiment, each a link into the driver's folder."""
        return os.path.join(self.path, "talos")

    @property
    def driver(self) -> RunDir:
        """The driver's run directory."""
        return RunDir(os.path.join(self.path, "driver"))

    @property
    def workers_path(self) -> str:
        """The folder of all workers."""
        return os.path.join(self.path, "workers")

    def worker(self, number: int) -> RunDir:
        """Give worker ``number``'s run directory (from 0)."""
        return RunDir(os.path.join(self.workers_path, f"{number:02d}"))

    def roles(self) -> list[RunDir]:
        """List the run directories of the driver and of every worker that is there."""
        return [self.driver, *(self.worker(number) for number in self.workers())]

    def workers(self) -> list[int]:
        """List the worker numbers that are there, in order."""
        try:
            names = os.listdir(self.workers_path)
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if _WORKER.match(name))


def free_name(path: str) -> str:
    """Give ``path`` with the first number at its end that is not taken: ``files`` becomes ``files.1``."""
    number = 1
    while os.path.lexists(f"{path}.{number}"):
        number += 1
    return f"{path}.{number}"


def sweeps(runs: str) -> Iterator[SweepDir]:
    """Yield the sweeps under a runs folder, oldest name first; a folder without ``sweep.json`` is none."""
    try:
        names = sorted(os.listdir(runs))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        folder = SweepDir(os.path.join(runs, name))
        if os.path.isfile(folder.sweep):
            yield folder
