"""Stopping, killing, limits and walls, on real containers."""

from __future__ import annotations

import json
import os
import signal
import stat
import traceback
from pathlib import Path

import docker
import pytest

from tests.conftest import Bench, recorded_rows, wait_until


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


# -- stopping ----------------------------------------------------------------------------------------------------------


def test_one_interrupt_drains_and_the_script_goes_on(bench: Bench) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", args=["1"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.send_signal(signal.SIGINT)
    done = bench.finish(process)
    assert done.code == 4, done.err
    rows = len(done.table)
    assert 2 <= rows < 8
    assert f"{rows} rows" in done.out
    assert f"{8 - rows} of 8 rows not run" in done.error_line
    left = list(done.folder.glob("workers/*/scan-01/left/*"))
    assert len(left) == 8 - rows


def test_two_interrupts_end_everything_and_keep_what_is_recorded(bench: Bench) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", args=["1"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    done = bench.finish(process)
    assert done.code == 130, done.err
    assert len(done.table) >= 2


def test_stop_from_another_terminal_drains(bench: Bench) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", args=["1"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    assert "asked to stop" in bench.command("stop", "sweep", "--runs", str(bench.runs)).err
    done = bench.finish(process)
    assert done.code == 4, done.err


def test_a_killed_worker_container_costs_no_row(bench: Bench, client: docker.DockerClient) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", args=["0.5"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    folder = str(bench.runs / "sweep")
    labels = {"label": [f"talos-orch.folder={folder}", "talos-orch.member=w01"]}
    client.containers.list(filters=labels)[0].kill()
    done = bench.finish(process)
    assert done.code == 0, done.err
    assert [int(row) for row in done.table["row"]] == list(range(8))
    assert "worker 1 ended" in done.err


def test_after_a_killed_launch_clean_finds_and_removes_everything(bench: Bench, left_over) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", args=["1"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.kill()
    process.wait()
    assert "abandoned" in bench.command("ls", "--runs", str(bench.runs)).out
    shown = bench.command("clean", "--runs", str(bench.runs)).out
    folder = bench.runs / "sweep"
    assert f"would remove: {folder}: driver, w00, w01" in shown
    assert left_over() != []
    assert f"removed: {folder}" in bench.command("clean", "--yes", "--runs", str(bench.runs)).out
    assert left_over() == []


# -- walls and limits --------------------------------------------------------------------------------------------------


def test_a_worker_runs_unprivileged_within_its_share(bench: Bench, client: docker.DockerClient) -> None:
    process = bench.start("slow_rows.py", "--workers", "2", "--memory", "512m", args=["1"])
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 1, "a row")
    labels = {"label": [f"talos-orch.folder={bench.runs / 'sweep'}", "talos-orch.member=w00"]}
    container = client.containers.list(filters=labels)[0]
    host, config = container.attrs["HostConfig"], container.attrs["Config"]
    process.send_signal(signal.SIGINT)
    bench.finish(process)
    assert config["User"] == f"{os.getuid()}:{os.getgid()}"
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["ReadonlyRootfs"] is True
    assert host["Init"] is True
    assert host["Memory"] == host["MemorySwap"] == 512 * 1024 * 1024
    assert host["PidsLimit"] >= 512
    assert host["ShmSize"] == 128 * 1024 * 1024
    assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "3"}
    assert host["AutoRemove"] is False
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert host["NanoCpus"] > 0
    writable = {mount["Destination"] for mount in container.attrs["Mounts"] if mount["RW"]}
    assert writable == {"/talos-orch/run", "/talos-orch/cache", str(bench.home)}
    assert not any("docker.sock" in mount["Source"] for mount in container.attrs["Mounts"])
    limits = json.loads((bench.runs / "sweep/workers/00/limits.json").read_text())
    assert limits["cgroup"]["memory_bytes"] == str(512 * 1024 * 1024)


def test_a_worker_sees_no_other_worker_and_cannot_change_the_driver(bench: Bench) -> None:
    (bench.home / "looks.py").write_text(
        "import os, talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    seen = sorted(os.listdir('/talos-orch'))\n"
        "    runs = os.listdir('runs/sweep')\n"
        "    try:\n"
        "        open('/talos-orch/driver/x', 'w')\n"
        "        wrote = 1.0\n"
        "    except OSError:\n"
        "        wrote = 0.0\n"
        "    return {'seen': [float(seen == ['cache', 'driver', 'lib', 'run'])], 'runs': [float(len(runs))], 'wrote': [wrote]}, None\n"
        "talos.Scan([1], [1], {'a': [1, 2, 3, 4]}, model, 'looks', x_val=[1], y_val=[1], multi_input=True)\n"
    )
    bench.runs = bench.home / "runs"
    done = bench.launch("looks.py")
    assert done.code == 0, done.err
    assert set(done.table["seen"]) == {"1.0"}
    assert set(done.table["runs"]) == {"0.0"}
    assert set(done.table["wrote"]) == {"0.0"}


def test_every_file_belongs_to_the_caller(bench: Bench, tmp_path: Path, cpu_image: str) -> None:
    """Launched as an ordinary user who may talk to Docker: a child of this process takes that user's identity."""
    socket = Path("/var/run/docker.sock")
    if os.getuid() != 0 or not socket.exists():
        pytest.fail("this test takes on another user's identity and needs root and the local socket", pytrace=False)
    user, group = 12345, 12345
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, user, group)
    for parent in tmp_path.parents:
        if parent != Path("/") and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    status = _as_user(user, group, socket.stat().st_gid, bench, cpu_image)
    assert os.waitstatus_to_exitcode(status) == 0
    folder = bench.runs / "sweep"
    strangers = [str(path) for path in (folder, *folder.rglob("*")) if path.lstat().st_uid != user]
    assert strangers == []
    assert (folder / "results.csv").exists()


def _as_user(user: int, group: int, docker_group: int, bench: Bench, image: str) -> int:
    import pkgutil
    from importlib import import_module

    import orchestrator

    # All of it now: the other user may not be able to read the folder that this Python lies in.
    for module in pkgutil.walk_packages(orchestrator.__path__, "orchestrator."):
        if module.name != "orchestrator.worker.enter":
            import_module(module.name)
    from orchestrator.cli import main

    # Once as ourselves: what is imported late is then there already, for a user who may not read this Python's folder.
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    warm = bench.home.parent / "warm"
    with pytest.raises(SystemExit):
        main(
            ["launch", str(bench.home / "x13_duplicates.py"), "--runs", str(warm), "--image", image],
            standalone_mode=False,
        )
    for number, handler in before.items():
        signal.signal(number, handler)

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([docker_group])
            os.setgid(group)
            os.setuid(user)
            os.environ.update(HOME=str(bench.home), USER="somebody")
            os.chdir(bench.home)
            script = ["launch", "writes_files.py", "--runs", str(bench.runs), "--name", "sweep", "--image", image]
            main(script, standalone_mode=False)
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:  # noqa: BLE001 - whatever it is, the parent has to see it
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]
