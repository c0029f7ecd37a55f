"""An engine that DOCKER_HOST names, over TCP; pytest-docker brings it up from ``compose.yml``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import docker
import pytest

from tests.conftest import Bench


@pytest.fixture(scope="session")
def docker_compose_command() -> str:
    """The plugin where there is one, else the program of older distributions."""
    if shutil.which("docker-compose"):
        return "docker-compose"
    return "docker compose"


@pytest.fixture(scope="session")
def docker_compose_file() -> str:
    return str(Path(__file__).with_name("compose.yml"))


@pytest.fixture(scope="session")
def docker_setup() -> list[str]:
    return ["up -d"]


@pytest.fixture(scope="session", autouse=True)
def _gateway_image(cpu_image: str) -> None:
    """Compose reads it when pytest-docker calls it."""
    os.environ["GATEWAY_IMAGE"] = cpu_image


@pytest.fixture(scope="session")
def endpoint(_gateway_image: None, docker_services) -> str:
    """The address of the gateway, once it answers."""
    port = docker_services.port_for("gateway", 2375)

    def answers() -> bool:
        try:
            client = docker.DockerClient(base_url=f"tcp://127.0.0.1:{port}", timeout=2)
            client.close()
        except (docker.errors.DockerException, OSError):
            return False
        return True

    docker_services.wait_until_responsive(answers, timeout=60, pause=0.2)
    return f"tcp://127.0.0.1:{port}"


def test_a_sweep_runs_on_the_engine_that_docker_host_names(bench: Bench, endpoint: str) -> None:
    env = {"DOCKER_HOST": endpoint}
    plan = bench.command("plan", "x13_duplicates.py", "--runs", str(bench.runs), env=env)
    assert endpoint.removeprefix("tcp://") in plan.out, "the endpoint is part of every plan"
    done = bench.command("launch", "x13_duplicates.py", "--runs", str(bench.runs), "--name", "sweep", env=env)
    done.folder = bench.runs / "sweep"
    assert done.code == 0, done.err
    assert list(done.table["a"]) == ["1", "1", "2"]
