"""What every kind of test may use: the command line in a subprocess, the engine, the cases in a copy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
EXAMPLES = ROOT / "examples"
PATIENCE = 300  # seconds after which a command counts as hanging; not a measure of speed


def _engine_trouble() -> str | None:
    """Say why no Docker Engine can be used; None when one can."""
    from orchestrator.engine.docker import DockerEngine
    from orchestrator.errors import OrchestratorError

    try:
        DockerEngine(os.environ).info()
    except OrchestratorError as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def docker_ready() -> None:
    """Give way only to a missing engine, and never silently where a machine runs the tests."""
    trouble = _engine_trouble()
    if trouble and os.environ.get("CI") == "true":
        pytest.fail(f"CI=true and {trouble}", pytrace=False)
    if trouble:
        pytest.skip(trouble)


@pytest.fixture(scope="session")
def cpu_image(docker_ready: None) -> str:
    """The worker image with both backends, built if it is not there yet."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", "build", "cpu"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def table(self) -> pd.DataFrame:
        """``results.csv``, every cell as text, so that equality means the same characters."""
        return pd.read_csv(self.folder / "results.csv", dtype=str, keep_default_na=False)

    @property
    def state(self) -> dict:
        return json.loads((self.folder / "state.json").read_text())

    def records(self, worker: int, scan: int = 1) -> list[dict]:
        path = self.folder / "workers" / f"{worker:02d}" / f"scan-{scan:02d}" / "trials.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def error_line(self) -> str:
        lines = [line for line in self.err.splitlines() if line.startswith("talos-orch: error:")]
        assert len(lines) == 1, self.err
        return lines[0]


@dataclass
class Bench:
    """A folder with a copy of the cases, in which the command line is used as a person would."""

    home: Path
    runs: Path
    processes: list[subprocess.Popen] = field(default_factory=list)

    def command(self, *arguments: str, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", *arguments],
            cwd=self.home, capture_output=True, text=True, check=False, timeout=PATIENCE,
            env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr, self.runs)

    def launch(
        self,
        script: str,
        *options: str,
        name: str = "sweep",
        args: Sequence[str] = (),
        env: dict[str, str] | None = None,
    ) -> Done:
        done = self.command("launch", script, *self._common(name, options), "--", *args, env=env)
        done.folder = self.runs / name
        return done

    def start(
        self,
        script: str,
        *options: str,
        name: str = "sweep",
        args: Sequence[str] = (),
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen:
        """Launch without waiting."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli", "launch", script, *self._common(name, options), "--", *args],
            cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        self.processes.append(process)
        return process

    def resume(self, *options: str, name: str = "sweep", env: dict[str, str] | None = None) -> Done:
        done = self.command("resume", name, "--runs", str(self.runs), *options, env=env)
        done.folder = self.runs / name
        return done

    def start_resume(self, *options: str, name: str = "sweep") -> subprocess.Popen:
        """Resume without waiting."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.cli", "resume", name, "--runs", str(self.runs), *options],
            cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def finish(self, process: subprocess.Popen, name: str = "sweep") -> Done:
        out, err = process.communicate(timeout=PATIENCE)
        return Done(process.returncode, out, err, self.runs / name)

    def _common(self, name: str, options: Sequence[str]) -> list[str]:
        return ["--runs", str(self.runs), "--name", name, *options]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that will come, however slow the machine."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    home = tmp_path / "project"
    # Not what a launch by hand has left there: each run folder lies in a folder named by its experiment.
    left = {str(path.parents[1]) for path in CASES.glob("**/round_data.jsonl")}

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name == "__pycache__" or os.path.join(folder, name) in left}

    shutil.copytree(CASES, home, ignore=ignore)
    found = Bench(home, tmp_path / "runs")
    yield found
    for process in found.processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    if found.runs.exists():
        done = found.command("clean", "--yes", "--runs", str(found.runs))
        assert done.code == 0, done.err


def recorded_rows(folder: Path) -> int:
    """Count the records of all workers so far."""
    return sum(len(path.read_text().splitlines()) for path in folder.glob("workers/*/scan-01/trials.jsonl"))
