"""How pip is asked for the packages of an image, and what a build stage without a pip here is handed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from orchestrator.engine.image_recipe import ImageRequest, recipe_files
from orchestrator.engine.image_wheels import (
    download_command,
    fetch_wheels,
    host_python,
    pip_environ,
    settings_for_stage,
    wheels_key,
)
from orchestrator.errors import ImageError

CPU = ImageRequest(device="cpu")


def quiet(line):
    """Takes progress and drops it."""


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "six-1-py3-none-any.whl").write_bytes(b"x")
    return folder


def test_a_wheel_folder_replaces_every_index_and_setting(wheels, tmp_path):
    request = replace(CPU, wheels=wheels)
    command = download_command(request, "python3", tmp_path, tmp_path / "out")
    assert command[-3:] == ["--no-index", "--find-links", str(wheels)]
    environ = pip_environ(request, recipe_files("cpu"), {"PATH": "/bin", "PIP_FIND_LINKS": "/x"})
    assert "PIP_FIND_LINKS" not in environ
    assert (environ["PIP_CONFIG_FILE"], environ["TORCH"], environ["PATH"]) == (os.devnull, "2.13.0", "/bin")


def test_without_wheels_pip_keeps_this_machines_settings(tmp_path):
    environ = pip_environ(CPU, recipe_files("cpu"), {"PIP_INDEX_URL": "u"})
    assert environ["PIP_INDEX_URL"] == "u"
    command = download_command(replace(CPU, torch_index="t"), "python3", tmp_path, tmp_path)
    assert command[-2:] == ["--extra-index-url", "t"]


def test_another_wheel_in_the_folder_means_another_cache(wheels):
    request, files = replace(CPU, wheels=wheels), recipe_files("cpu")
    before = wheels_key(request, files, "python3.11")
    assert before == wheels_key(request, files, "python3.11")
    (wheels / "more-1-py3-none-any.whl").write_bytes(b"y")
    assert before != wheels_key(request, files, "python3.11")


def test_kept_wheels_are_used_without_asking_pip(tmp_path):
    files = recipe_files("cpu")
    kept = tmp_path / f"wheels-{wheels_key(CPU, files, 'no-such-python')}"
    kept.mkdir()
    assert fetch_wheels(CPU, files, "no-such-python", environ={}, cache=tmp_path, say=quiet) == kept


def test_a_failing_pip_is_one_line_with_advice_and_leaves_nothing(tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found for torch==2.13.0+cpu'\nexit 1\n")
    fake.chmod(0o755)
    cache = tmp_path / "cache"
    with pytest.raises(ImageError, match=r"torch==2\.13\.0\+cpu: add the Torch project's index"):
        fetch_wheels(CPU, recipe_files("cpu"), str(fake), environ=dict(os.environ), cache=cache, say=quiet)
    assert list(cache.iterdir()) == []


def test_a_python_of_another_version_or_machine_is_not_used():
    environ = {"PATH": ""}
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert host_python("2.7", os.uname().machine, environ) is None
    assert host_python(own, "riscv128", environ) is None


def test_settings_for_the_stage_leave_out_places_of_this_machine(tmp_path, wheels):
    constraints, bundle, folder = tmp_path / "c.txt", tmp_path / "ca.pem", tmp_path / "extra"
    constraints.write_text("six<2\n")
    bundle.write_text("certificate")
    folder.mkdir()
    environ = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "index.example/simple",
        "PIP_EXTRA_INDEX_URL": "file:///srv/a other.example/simple",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONSTRAINT": str(constraints),
        "SSL_CERT_FILE": str(bundle),
    }
    found = settings_for_stage(replace(CPU, torch_index="t"), environ=environ, folder=folder, say=quiet)
    assert found["PIP_INDEX_URL"] == "index.example/simple"
    assert found["PIP_EXTRA_INDEX_URL"] == "other.example/simple"
    assert found["TORCH_INDEX"] == "t"
    assert sorted(os.listdir(folder)) == ["ca.pem", "constraints.txt", "six-1-py3-none-any.whl"]


def test_offline_wheels_reach_the_stage_with_no_setting(tmp_path, wheels):
    folder = tmp_path / "extra"
    folder.mkdir()
    assert settings_for_stage(replace(CPU, wheels=wheels), environ={}, folder=folder, say=quiet) == {}
    assert sorted(os.listdir(folder)) == ["offline", "six-1-py3-none-any.whl"]
