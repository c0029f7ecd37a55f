"""The sweep's containers as the coordinator handles them: start together, notice ends, end together."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from orchestrator.copying import copy_project
from orchestrator.engine.base import Ended, Engine
from orchestrator.errors import RecordError, ViewRefusedError
from orchestrator.plan.containers import World, driver_spec, worker_spec
from orchestrator.plan.shares import SharePlan
from orchestrator.plan.specs import ContainerSpec
from orchestrator.records.atomic import read_json, write_json, write_text
from orchestrator.records.layout import RunDir, SweepDir
from orchestrator.schema import Job, Share, SweepFile

_LONGEST_NOTE, _MOST_NOTES = 500, 20  # user code can write there too
_TOGETHER = 8  # starts at a time; each is a handful of engine calls


class Members:
    """Driver and workers of one sweep.

    ``alive`` holds the workers that are running; ``copied`` says that they have copies of the project instead of views.
    """

    def __init__(self, engine: Engine, sweep: SweepFile, folder: SweepDir, shares: SharePlan, world: World) -> None:
        self._engine, self._sweep, self._folder, self._world = engine, sweep, folder, world
        self._driver_share = shares.driver
        self._shares = {share.worker: share for share in shares.workers}
        self.attempts: dict[int, int] = {}
        self.alive: set[int] = set()
        self.copied = False

    @property
    def most(self) -> int:
        """How many workers may run at a time."""
        return len(self._shares)

    def adopt(self, number: int) -> None:
        """Take over a worker that an earlier launch started and that still runs."""
        job = Job.from_json(read_json(self._folder.worker(number).job), self._folder.worker(number).job)
        self.attempts[number] = job.attempt
        self.alive.add(number)

    def start_driver(self) -> None:
        """Start the driver, and settle how the project is kept as it was for the workers.

        Where the engine has no views, every worker's copy is made now, before the script's first line.
        """
        run = self._folder.driver
        for path in (run.files, run.scratch) if self._world.isolated else ():
            os.makedirs(path, exist_ok=True)
        try:
            self._start_driver(view=True)
        except ViewRefusedError:
            self.copied = True
            # The folder of all sweeps, not only this one's, is left out where it lies in the project.
            copy_project(self._sweep.project, self._folder.pristine, skip=os.path.dirname(self._folder.path))
            with ThreadPoolExecutor(_TOGETHER) as pool:
                list(pool.map(self._copy, [number for number in self._shares if number not in self.alive]))
            self._start_driver(view=False)

    def _start_driver(self, *, view: bool) -> None:
        spec, job = driver_spec(self._sweep, self._folder, self._driver_share, self._world, view=view)
        self._prepare(self._folder.driver, job)
        self._engine.start(spec)

    def _copy(self, number: int) -> None:
        copy_project(self._folder.pristine, self._folder.worker(number).files, skip="")

    def start_workers(self, count: int) -> list[int]:
        """Start workers that were never started, all at the same time, until ``count`` are running; their numbers."""
        fresh = [number for number in sorted(self._shares) if number not in self.attempts]
        new = fresh[: max(0, count - len(self.alive))]
        with ThreadPoolExecutor(_TOGETHER) as pool:
            for number, _ in zip(new, pool.map(self._start_worker, new), strict=True):
                self.alive.add(number)
        return new

    def _start_worker(self, number: int) -> None:
        attempt = self.attempts.get(number, 0) + 1
        self.attempts[number] = attempt
        share = self._shares[number]
        spec, job = worker_spec(self._sweep, self._folder, share, self._world, attempt, copied=self.copied)
        run = self._folder.worker(number)
        self._prepare(run, job)
        for path in (run.files, run.scratch) if self._world.isolated else (run.files,):
            os.makedirs(path, exist_ok=True)
        write_json(run.share, share.to_json())
        self._engine.start(spec)

    def replace(self, number: int) -> None:
        """Start a dead worker again, in its own run directory and with the project as it was at the beginning."""
        self._remove([worker_spec_name(number)])
        run = self._folder.worker(number)
        for path in (run.ended, run.limits):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        # What the script wrote so far is kept, but a script that is run again must not find it.
        os.rename(run.files, f"{run.files}.{self.attempts[number]}")
        if self.copied:
            self._copy(number)
        self._start_worker(number)
        self.alive.add(number)

    def _prepare(self, run: RunDir, job: Job) -> None:
        os.makedirs(run.path, exist_ok=True)
        write_json(run.job, job.to_json())
        write_text(run.alive, "")

    def beat(self) -> None:
        """Touch what tells every member that its coordinator lives."""
        for run in (self._folder.driver, *(self._folder.worker(number) for number in self.alive)):
            with contextlib.suppress(FileNotFoundError):
                os.utime(run.alive)

    def ended(self) -> list[Ended]:
        """List what has ended; a member that vanished without a trace counts as killed."""
        found = {each.member: each for each in self._engine.ended(self._folder.path)}
        there = set(self._engine.members(self._folder.path))
        for name in ("driver", *(worker_spec_name(number) for number in self.alive)):
            if name not in there:
                found.setdefault(
                    name,
                    Ended(member=name, attempt=1, exit_code=137, error="it was removed by somebody else"),
                )
        return list(found.values())

    @property
    def shares(self) -> dict[int, Share]:
        """What each worker may use."""
        return self._shares

    def gpu_memory(self) -> dict[int, dict[str, int]]:
        """Give the bytes that each worker has on each of its devices, as the driver counts them."""
        uuids = sorted({uuid for share in self._shares.values() for uuid in share.gpus})
        found = self._engine.gpu_memory(self._folder.path, uuids)
        return {number: found[name] for number in self.alive if (name := worker_spec_name(number)) in found}

    def last_word(self, number: int) -> dict[str, Any]:
        """Read how a worker says that it ended; empty if it could not say."""
        return last_word(self._folder.worker(number))

    def device(self, number: int) -> str:
        """Name a worker's device, for people."""
        return self._shares[number].device

    def is_ready(self, number: int) -> bool:
        """Say whether a worker has got as far as its Scan: it then writes down what limits hold."""
        return os.path.exists(self._folder.worker(number).limits)

    def notes(self) -> list[str]:
        """List what the workers have noticed about the script."""
        found: list[str] = []
        for number in self.attempts:
            try:
                beat = read_json(self._folder.worker(number).beat)
            except (OSError, RecordError):
                continue
            notes = beat.get("notes") if isinstance(beat, dict) else None
            found += [str(note)[:_LONGEST_NOTE] for note in notes[:_MOST_NOTES]] if isinstance(notes, list) else []
        return found

    def ask_to_stop(self) -> None:
        """Have every worker end after the row in hand."""
        for number in self.attempts:
            write_text(self._folder.worker(number).stop, "")

    def end(self, grace: float) -> None:
        """End everything, workers and driver."""
        self._engine.stop(self._folder.path, grace=grace)

    def _remove(self, members: list[str] | None) -> None:
        self._engine.remove(self._folder.path, members)

    def clean(self) -> None:
        """Remove every container and volume of this sweep."""
        self._remove(None)


def worker_spec_name(number: int) -> str:
    """Give a worker's member name."""
    return ContainerSpec.member_name("worker", number)


def last_word(run: RunDir) -> dict[str, Any]:
    """Read a role's ``ended.json``; empty where there is none or it is damaged (user code can write there)."""
    try:
        word = read_json(run.ended)
    except (OSError, RecordError):
        return {}
    return word if isinstance(word, dict) else {}
