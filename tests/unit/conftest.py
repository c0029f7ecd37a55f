"""Unit tests reach no Docker Engine, and the property tests among them have no deadline on a busy machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # makers.py, also for the folders below

settings.register_profile("unit", deadline=None, max_examples=60)
settings.load_profile("unit")


@pytest.fixture(autouse=True)
def _no_docker(request, monkeypatch):
    """A client that would connect raises instead; only a socket under the test's own folder is let through."""
    try:
        import docker
    except ImportError:
        return
    construct = docker.DockerClient.__init__

    def refuse(self, *arguments, **options):
        url = str(options.get("base_url") or (arguments[0] if arguments else ""))
        if "tmp_path" in request.fixturenames and str(request.getfixturevalue("tmp_path")) in url:
            construct(self, *arguments, **options)
            return
        raise AssertionError("a unit test tried to reach a Docker Engine")

    monkeypatch.setattr(docker.DockerClient, "__init__", refuse)
