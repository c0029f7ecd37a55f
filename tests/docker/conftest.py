"""Tests on a real Docker Engine: each looks afterwards that nothing of its own is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.docker)


@pytest.fixture(scope="session")
def client(docker_ready: None) -> Iterator[docker.DockerClient]:
    found = docker.from_env()
    yield found
    found.close()


@pytest.fixture
def left_over(client: docker.DockerClient, tmp_path: Path):
    """Name the containers and volumes of sweeps below this test's folder."""

    def look() -> list[str]:
        labelled = {"label": "talos-orch.folder"}
        containers = [
            each["Names"][0]
            for each in client.api.containers(all=True, filters=labelled)
            if each["Labels"]["talos-orch.folder"].startswith(str(tmp_path))
        ]
        volumes = [
            volume.name
            for volume in client.volumes.list(filters=labelled)
            if volume.attrs["Labels"]["talos-orch.folder"].startswith(str(tmp_path))
        ]
        return containers + volumes

    return look


@pytest.fixture(autouse=True)
def _nothing_is_left(bench, left_over) -> Iterator[None]:
    """Look before the bench cleans up after a failed test; a test that leaves something on purpose cleans it itself."""
    yield
    assert left_over() == []
