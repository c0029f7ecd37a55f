"""Device requests through a real engine to a stand-in for NVIDIA's hook: which worker was given what, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from tests.conftest import Bench, Done, recorded_rows, wait_until

HERE = Path(__file__).parent / "standin"
# Of this run alone: leases hold over all sweeps of a machine, those of a second run of these tests too.
GPUS = [f"GPU-0000000{number}-1111-2222-3333-{os.getpid():012d}" for number in range(4)]
SCRIPT = """import os, sys, time, talos
def model(x, y, xv, yv, p):
    time.sleep(float(sys.argv[1]))
    return {'loss': [float(p['a'])], 'devices': [float(len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')))]}, None
talos.Scan([1], [1], {'a': list(range(8))}, model, 'gpus', x_val=[1], y_val=[1], multi_input=True)
"""


@dataclass
class Engine:
    """A second engine, in a network of its own, that finds the stand-in's hook where the real one would be."""

    folder: Path
    client: docker.DockerClient
    image: str

    @property
    def hook(self) -> Path:
        return self.folder / "bin" / "nvidia-container-runtime-hook"

    @property
    def address(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def set(self, mode: str, inventory: list[str] = GPUS) -> None:
        (self.folder / "bin" / "mode").write_text(mode)
        (self.folder / "bin" / "inventory").write_text("\n".join(inventory))
        (self.folder / "bin" / "log.jsonl").write_text("")

    @property
    def log(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "bin" / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def engine(cpu_image: str, client: docker.DockerClient) -> Iterator[Engine]:
    if os.getuid() != 0:
        pytest.skip("only root can start a second engine")
    missing = [name for name in ("unshare", "dockerd", "ip") if shutil.which(name) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"CI=true, and a second engine needs {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"a second engine needs {', '.join(missing)}")
    folder = Path(tempfile.mkdtemp(prefix="gpus-", dir="/tmp"))
    shutil.copytree(HERE, folder / "bin", ignore=shutil.ignore_patterns("__pycache__"))
    command = (
        f"ip link set lo up; exec dockerd --data-root {folder}/data --exec-root {folder}/exec --pidfile {folder}/pid "
        f"-H unix://{folder}/docker.sock --bridge=none --iptables=false --ip6tables=false --ip-masq=false"
    )
    with open(folder / "dockerd.log", "wb") as log:
        process = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", command], stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"},
        )  # fmt: skip
    try:
        wait_until(lambda: _answers(folder) or process.poll() is not None, "the second engine's answer")
        assert process.poll() is None, (folder / "dockerd.log").read_text()
        second = docker.DockerClient(base_url=f"unix://{folder}/docker.sock")
        # The base of the worker image has Python and is small; the trials here need no backend.
        base = next(image for image in client.images.list("talos-orch/base") if image.tags)
        second.images.load(base.save(named=True))
        found = Engine(folder, second, base.tags[0])
        found.set("real")
        yield found
        second.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        subprocess.run(["umount", f"{folder}/data"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(f"{folder}/docker.sock")
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b"200 OK" in line.recv(1000)
        except OSError:
            return False


@pytest.fixture
def launch(bench: Bench, engine: Engine):
    engine.set("real")
    (bench.home / "gpus.py").write_text(SCRIPT)

    def run(*options: str, name: str = "sweep", seconds: str = "0.1", gpus: list[str] = GPUS[:2], wait: bool = True):
        env = {
            "DOCKER_HOST": engine.address, "PYTHONPATH": str(HERE), "STANDIN_GPUS": ",".join(gpus),
            "PATH": f"{engine.folder}/bin:{os.environ['PATH']}",
        }  # fmt: skip
        given = ("gpus.py", "--image", engine.image, "--network", "none", "--memory", "300m", *options)
        if wait:
            return bench.launch(*given, name=name, args=(seconds,), env=env)
        return bench.start(*given, name=name, args=(seconds,), env=env)

    yield run
    left = [each.name for each in engine.client.containers.list(all=True)]
    assert left == [], "nothing is left on the second engine"
    assert engine.client.volumes.list() == []


def limits(done: Done, worker: int) -> dict:
    return json.loads((done.folder / f"workers/{worker:02d}/limits.json").read_text())


def test_four_workers_on_two_gpus_have_one_each_in_one_request(launch, engine: Engine) -> None:
    done = launch("--gpus", "all", "--workers", "4")
    assert done.code == 0, done.err
    given = {entry["hostname"]: entry["asked"] for entry in engine.log}
    assert given == {"w00": GPUS[:1], "w01": GPUS[1:2], "w02": GPUS[:1], "w03": GPUS[1:2]}
    assert len(engine.log) == 4, "the hook was called once for each worker, and not for the driver"
    for worker in range(4):
        found = limits(done, worker)
        assert found["gpus"] == found["gpus_seen"] == given[f"w{worker:02d}"]
        assert found["environment"]["CUDA_VISIBLE_DEVICES"] == found["gpus"][0]
        assert found["gpu_fraction"] == float(found["environment"]["XLA_PYTHON_CLIENT_MEM_FRACTION"]) == 0.475
        assert found["mismatch"] is None
    assert set(done.table["gpu"]) <= set(GPUS[:2])


def test_a_worker_with_several_gpus_has_them_in_one_request(launch, engine: Engine) -> None:
    done = launch("--gpus", "3,2,1,0", "--gpus-per-worker", "2", gpus=GPUS)
    assert done.code == 0, done.err
    given = {entry["hostname"]: entry["asked"] for entry in engine.log}
    assert given == {"w00": [GPUS[3], GPUS[2]], "w01": [GPUS[1], GPUS[0]]}
    assert limits(done, 0)["gpu_fraction"] is None
    assert set(done.table["devices"]) == {"2.0"}


def test_the_engine_is_asked_for_uuids_once(launch, engine: Engine, bench: Bench) -> None:
    process = launch("--gpus", "1", "--workers", "1", "--gpu-fraction", "0.25", seconds="1", wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 1, "a row")
    (worker,) = engine.client.containers.list(filters={"label": "talos-orch.member=w00"})
    (request,) = worker.attrs["HostConfig"]["DeviceRequests"]
    assert (request["DeviceIDs"], request["Count"]) == ([GPUS[1]], 0)
    assert request["Capabilities"] == [["gpu", "compute", "utility"]]
    assert bench.finish(process).code == 0


@pytest.mark.parametrize(
    ("mode", "inventory", "words"),
    [
        ("real", GPUS[2:], "unknown device"),
        ("fail", GPUS, "initialization error"),
        ("nothing", GPUS, "no NVIDIA driver answers in this worker"),
        ("other", GPUS, f"GPU {GPUS[0]} is not visible in this worker; visible are: {GPUS[1]}"),
    ],
)
def test_what_an_engine_does_not_give_is_one_line(
    launch, engine: Engine, mode: str, inventory: list[str], words: str
) -> None:
    engine.set(mode, inventory)
    done = launch("--gpus", "0", "--workers", "1")
    assert done.code == 5, done.err
    assert words in done.error_line
    assert "Traceback" not in done.err


def test_a_hook_that_is_gone_is_one_line(launch, engine: Engine) -> None:
    hidden = engine.hook.with_name("hidden")
    engine.hook.rename(hidden)
    stand_in = engine.hook.with_name("elsewhere") / engine.hook.name
    stand_in.parent.mkdir()
    try:
        missing = launch("--gpus", "0", "--workers", "1", name="missing")
        assert missing.code == 5
        assert "nvidia-container-toolkit" in missing.error_line
    finally:
        hidden.rename(engine.hook)
        stand_in.parent.rmdir()


def test_two_sweeps_cannot_have_the_same_memory(launch, engine: Engine, bench: Bench) -> None:
    first = launch("--gpus", "0", "--workers", "1", name="first", seconds="1", wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "first") >= 1, "a row")
    refused = launch("--gpus", "0,1", "--workers", "2", name="second")
    assert refused.code == 5
    assert f"GPU {GPUS[0]}: 100% of it is in use by first" in refused.error_line
    assert not (bench.runs / "second").exists()
    beside = launch("--gpus", "1", "--workers", "1", name="beside")
    assert beside.code == 0, beside.err
    waits = launch("--gpus", "0", "--workers", "1", "--wait-for-gpu", "120", name="second")
    assert waits.code == 0, waits.err
    assert "waiting up to 120 s" in waits.err
    assert bench.finish(first, "first").code == 0


def test_workers_that_outlive_their_launch_keep_their_gpus(launch, engine: Engine, bench: Bench) -> None:
    first = launch("--gpus", "0", "--workers", "1", name="first", seconds="1", wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "first") >= 1, "a row")
    first.kill()
    first.communicate()
    refused = launch("--gpus", "0", "--workers", "1", name="second")
    assert refused.code == 5
    assert "in use by first" in refused.error_line
    env = {"DOCKER_HOST": engine.address, "PYTHONPATH": str(HERE), "STANDIN_GPUS": ",".join(GPUS[:2]),
           "PATH": f"{engine.folder}/bin:{os.environ['PATH']}"}  # fmt: skip
    resumed = bench.resume(name="first", env=env)
    assert resumed.code == 0, resumed.err
    assert "1 of them still running" in resumed.err
    time.sleep(0.1)
    assert launch("--gpus", "0", "--workers", "1", name="second").code == 0
