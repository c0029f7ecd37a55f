"""One contract for every engine: the coordinator may rely on exactly this."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from orchestrator.copying import copy_project
from orchestrator.engine.base import Engine
from orchestrator.engine.docker import DockerEngine
from orchestrator.engine.process import ProcessEngine
from orchestrator.errors import EnvironmentNotReadyError
from orchestrator.plan.specs import Bind, ContainerSpec, View
from orchestrator.records.layout import SweepDir
from tests.conftest import wait_until

_SAY = "import os,sys,time,signal; open(os.path.join(sys.argv[1],'said.txt'),'w').write(sys.argv[2]);"


class EngineContract:
    """What an engine must do; each subclass says how one is made and what a container sees as its run directory."""

    broken: ClassVar[dict[str, object]] = {}
    """What of a spec makes a start impossible."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def folder(self, tmp_path: Path, engine: Engine) -> Iterator[SweepDir]:
        sweep = SweepDir(str(tmp_path / "runs" / "contract"))
        for run in (sweep.driver, sweep.worker(0), sweep.worker(1)):
            os.makedirs(run.path)
        yield sweep
        engine.stop(sweep.path, grace=0.0)
        engine.remove(sweep.path)

    def spec(self, folder: SweepDir, worker: int, code: str, **changes: object) -> ContainerSpec:
        raise NotImplementedError

    def said(self, folder: SweepDir, worker: int) -> Path:
        return Path(folder.worker(worker).path) / "said.txt"

    def test_info_knows_the_machine(self, engine: Engine) -> None:
        info = engine.info()
        assert info.machine.cpus >= 1
        assert info.machine.memory > 2**28
        assert info.endpoint

    def test_a_member_runs_its_command_and_its_end_is_seen(self, engine: Engine, folder: SweepDir) -> None:
        engine.start(self.spec(folder, 0, "sys.exit(7)"))
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        (ended,) = engine.ended(folder.path)
        assert (ended.member, ended.attempt, ended.exit_code) == ("w00", 1, 7)
        assert self.said(folder, 0).read_text() == "w00"

    def test_a_running_member_has_not_ended_and_stops_on_request(self, engine: Engine, folder: SweepDir) -> None:
        engine.start(self.spec(folder, 0, "time.sleep(600)"))
        wait_until(self.said(folder, 0).exists, "a sign of life")
        assert engine.ended(folder.path) == []
        engine.stop(folder.path, grace=0.0)
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        assert engine.ended(folder.path)[0].exit_code == 137

    def test_a_member_may_end_by_itself_within_the_grace(self, engine: Engine, folder: SweepDir) -> None:
        code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); open(sys.argv[1]+'/up','w').close(); time.sleep(600)"
        engine.start(self.spec(folder, 0, code))
        wait_until((Path(folder.worker(0).path) / "up").exists, "a sign of life")
        engine.stop(folder.path, grace=10.0)
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        assert engine.ended(folder.path)[0].exit_code == 3

    def test_only_the_named_members_are_stopped_and_removed(self, engine: Engine, folder: SweepDir) -> None:
        for worker in (0, 1):
            engine.start(self.spec(folder, worker, "time.sleep(600)"))
            wait_until(self.said(folder, worker).exists, "a sign of life")
        engine.stop(folder.path, ["w01"], grace=0.0)
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        assert [each.member for each in engine.ended(folder.path)] == ["w01"]
        engine.remove(folder.path, ["w01"])
        assert engine.members(folder.path) == ["w00"]

    def test_removing_is_safe_to_repeat(self, engine: Engine, folder: SweepDir) -> None:
        engine.start(self.spec(folder, 0, "pass"))
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        engine.remove(folder.path)
        engine.remove(folder.path)
        assert engine.members(folder.path) == []

    def test_a_member_that_cannot_start_is_an_engine_error_and_leaves_nothing(
        self, engine: Engine, folder: SweepDir
    ) -> None:
        with pytest.raises(EnvironmentNotReadyError):
            engine.start(self.spec(folder, 0, "pass", **self.broken))
        assert engine.members(folder.path) == []

    def test_a_copy_serves_as_a_view_on_every_engine(self, engine: Engine, folder: SweepDir, tmp_path: Path) -> None:
        run = folder.worker(0)
        os.makedirs(run.files)
        (Path(run.files) / "kept.txt").write_text("copied")
        inside = str(tmp_path / "project") if engine.isolated else run.files
        view = View(project=str(tmp_path), target=inside, upper=run.files, scratch=run.scratch, copied=True)
        engine.start(self.spec(folder, 0, f"open({inside!r}+'/kept.txt','a').write('+new')", view=view))
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        assert (Path(run.files) / "kept.txt").read_text() == "copied+new"

    def test_a_view_takes_writes_and_keeps_the_project_as_it_is(
        self, engine: Engine, folder: SweepDir, tmp_path: Path
    ) -> None:
        project = tmp_path / "data"
        project.mkdir()
        (project / "kept.txt").write_text("old")
        run = folder.worker(0)
        inside = str(project) if engine.isolated else run.files
        view = View(
            project=str(project), target=inside, upper=run.files, scratch=run.scratch, copied=not engine.isolated
        )
        if view.copied:
            copy_project(view.project, view.upper, skip=folder.path)
        code = f"p={inside!r}; open(p+'/kept.txt','a').write('+new'); open(p+'/made.txt','w').write('x')"
        engine.start(self.spec(folder, 0, code, view=view))
        wait_until(lambda: bool(engine.ended(folder.path)), "an end")
        assert engine.ended(folder.path)[0].exit_code == 0
        assert (project / "kept.txt").read_text() == "old"
        assert not (project / "made.txt").exists()
        assert (Path(run.files) / "kept.txt").read_text() == "old+new"
        assert (Path(run.files) / "made.txt").read_text() == "x"


def _spec(folder: SweepDir, worker: int, **changes: object) -> ContainerSpec:
    run = folder.worker(worker).path
    values: dict = {
        "sweep": folder.name, "folder": folder.path, "role": "worker", "worker": worker, "attempt": 1, "image": None,
        "environment": {}, "workdir": "/", "run": run, "uid": os.getuid(), "gid": os.getgid(),
        "binds": (), "memory": 2**28, "shm": 2**26, "cpus": 1.0, "pids": 100, "network": "none",
    }  # fmt: skip
    return ContainerSpec(**{**values, **changes})


class TestProcessEngine(EngineContract):
    """Plain processes."""

    broken: ClassVar[dict[str, object]] = {"command": ("/no/such/program",)}

    @pytest.fixture
    def engine(self) -> Engine:
        return ProcessEngine(dict(os.environ))

    def spec(self, folder: SweepDir, worker: int, code: str, **changes: object) -> ContainerSpec:
        run = folder.worker(worker).path
        command = (sys.executable, "-c", _SAY + code, run, f"w{worker:02d}")
        return _spec(folder, worker, **{"command": command, **changes})


class TestDockerEngine(EngineContract):
    """Containers."""

    broken: ClassVar[dict[str, object]] = {"image": "talos-orch/no-such-image:none"}

    @pytest.fixture
    def engine(self, docker_ready: None) -> Iterator[Engine]:
        found = DockerEngine(os.environ)
        yield found
        found.client.close()

    @pytest.fixture(autouse=True)
    def _image(self, cpu_image: str) -> None:
        self.image = cpu_image

    def spec(self, folder: SweepDir, worker: int, code: str, **changes: object) -> ContainerSpec:
        bind = Bind(source=folder.worker(worker).path, target="/run-dir")
        command = ("python3", "-c", _SAY + code, "/run-dir", f"w{worker:02d}")
        return _spec(folder, worker, **{"command": command, "image": self.image, "binds": (bind,), **changes})
