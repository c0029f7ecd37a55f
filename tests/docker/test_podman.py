"""A sweep on Podman, through its Docker-compatible socket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.conftest import Bench, wait_until
from tests.docker.test_gpus import HERE, _answers

SCRIPT = """import talos
def model(x, y, xv, yv, p):
    open('left.txt', 'a').write('x')
    return {'loss': [p['a'] / 2]}, None
scan = talos.Scan([1], [1], {'a': list(range(6))}, model, 'pod', x_val=[1], y_val=[1], multi_input=True)
print([history['loss'] for history in scan.round_history])
"""


@pytest.fixture(scope="module")
def podman(cpu_image: str, client: docker.DockerClient) -> Iterator[tuple[str, str]]:
    """Podman's service, with storage of its own: its address, and an image with Python."""
    if os.getuid() != 0:
        pytest.skip("only root can start Podman's service with storage of its own")
    if shutil.which("podman") is None and os.environ.get("CI") == "true":
        pytest.fail("CI=true, and there is no podman (images/engine.sh compose)", pytrace=False)
    if shutil.which("podman") is None:
        pytest.skip("there is no podman (images/engine.sh compose installs it)")
    folder = Path(tempfile.mkdtemp(prefix="pod-", dir="/tmp"))
    # Its own defaults ask for more than this machine may have to give.
    (folder / "containers.conf").write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n')
    command = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--runtime", "runc",
               "--cgroup-manager", "cgroupfs"]  # fmt: skip
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [*command, "system", "service", "--time", "0", f"unix://{folder}/docker.sock"], stdout=log, stderr=log,
            env={**os.environ, "CONTAINERS_CONF": f"{folder}/containers.conf"},
        )  # fmt: skip
    try:
        wait_until(lambda: _answers(folder) or process.poll() is not None, "Podman's answer")
        assert process.poll() is None, (folder / "log").read_text()
        second = docker.DockerClient(base_url=f"unix://{folder}/docker.sock")
        base = next(image for image in client.images.list("talos-orch/base") if image.tags)
        second.images.load(base.save(named=True))
        second.close()
        yield f"unix://{folder}/docker.sock", base.tags[0]
    finally:
        process.terminate()
        process.wait(60)
        subprocess.run([*command, "system", "reset", "--force"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_sweep_on_the_cpu_is_limited_and_leaves_nothing(bench: Bench, podman: tuple[str, str]) -> None:
    address, image = podman
    (bench.home / "pod.py").write_text(SCRIPT)
    done = bench.launch(
        "pod.py", "--image", image, "--network", "none", "--memory", "300m", env={"DOCKER_HOST": address}
    )
    assert done.code == 0, done.err
    assert done.out == "[[0.0], [0.5], [1.0], [1.5], [2.0], [2.5]]\n"
    limits = json.loads((done.folder / "workers/00/limits.json").read_text())
    assert limits["cgroup"]["memory_bytes"] == str(300 * 1024**2)
    assert list(done.folder.glob("workers/*/files/left.txt"))
    assert not (bench.home / "left.txt").exists(), "a worker has a copy of the project of its own"
    second = docker.DockerClient(base_url=address)
    assert second.containers.list(all=True) == []
    second.close()


def test_gpus_are_refused_and_not_quietly_left_out(bench: Bench, podman: tuple[str, str]) -> None:
    address, image = podman
    (bench.home / "pod.py").write_text(SCRIPT)
    env = {"DOCKER_HOST": address, "PYTHONPATH": str(HERE), "STANDIN_GPUS": "GPU-00000001"}
    done = bench.launch("pod.py", "--image", image, "--gpus", "0", env=env)
    assert done.code == 5
    assert "ignores requests for GPUs: use Podman 5.4 or newer, or Docker" in done.error_line
    planned = bench.command("plan", "pod.py", "--image", image, env={"DOCKER_HOST": address})
    assert "Podman " in planned.out
