"""What shapes an image, and the name that follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.engine.image_recipe import (
    ImageRequest,
    base_tag,
    default_base,
    image_tag,
    pinned_versions,
    recipe_files,
    requirement_names,
)
from orchestrator.errors import SettingsError

CPU = ImageRequest(device="cpu")


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "six-1-py3-none-any.whl").write_bytes(b"x")
    return folder


def test_a_tag_names_the_device_the_backend_and_the_content():
    name, _, version = image_tag(CPU, recipe_files("cpu")).partition(":")
    backend, _, digest = version.partition("-")
    assert (name, backend, len(digest)) == ("talos-orch/cpu", "both", 12)
    assert set(digest) <= set("0123456789abcdef")


def test_equal_requests_have_equal_tags():
    assert image_tag(CPU, recipe_files("cpu")) == image_tag(ImageRequest(device="cpu"), recipe_files("cpu"))


@pytest.mark.parametrize("change", [{"backend": "torch"}, {"base": "other:1"}, {"version": "9.9"}])
def test_each_part_of_a_request_changes_the_tag(change):
    files = recipe_files("cpu")
    assert image_tag(replace(CPU, **change), files) != image_tag(CPU, files)


@pytest.mark.parametrize("name", ["Dockerfile.cpu", "images/install.sh", "images/common.txt", "images/cpu-torch.txt"])
def test_each_file_of_the_recipe_changes_the_tag(name):
    files = recipe_files("cpu")
    assert image_tag(CPU, files | {name: files[name] + b"\n"}) != image_tag(CPU, files)


def test_wheels_do_not_change_the_tag_so_that_launch_finds_what_build_made(wheels):
    files = recipe_files("cpu")
    assert image_tag(replace(CPU, wheels=wheels), files) == image_tag(CPU, files)


def test_the_base_script_changes_the_base_and_not_the_worker_image():
    files = recipe_files("cpu")
    changed = files | {"images/base.sh": b"other"}
    assert image_tag(CPU, changed) == image_tag(CPU, files)
    assert base_tag(b"a", "12", "x86_64") != base_tag(b"b", "12", "x86_64")
    assert base_tag(b"a", "12", "x86_64").startswith("talos-orch/base:")


@pytest.mark.parametrize("field", [{"device": "tpu"}, {"backend": "jax"}])
def test_an_unknown_choice_names_what_is_known(field):
    with pytest.raises(SettingsError, match="use one of"):
        replace(CPU, **field)


def test_a_folder_without_wheels_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no wheels in"):
        ImageRequest(device="cpu", wheels=tmp_path)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_both_recipes_pin_the_same_versions(device):
    files = recipe_files(device)
    request = ImageRequest(device=device)
    assert pinned_versions(request, files) == {"TENSORFLOW": "2.21.0", "TORCH": "2.13.0", "TALOS": "2.0.10"}
    assert default_base(request, files) == "python:3.11-slim"


def test_both_recipes_have_the_same_instructions():
    def instructions(device):
        text = recipe_files(device)[f"Dockerfile.{device}"].decode().replace(device, "DEVICE")
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    assert instructions("cpu") == instructions("gpu")


def test_no_recipe_names_a_host():
    for device in ("cpu", "gpu"):
        assert not any(b"://" in content for content in recipe_files(device).values())


def test_a_backend_brings_only_its_own_requirements():
    assert requirement_names(replace(CPU, backend="torch")) == ("images/common.txt", "images/cpu-torch.txt")
    assert len(requirement_names(CPU)) == 3


def test_the_cpu_image_asks_for_the_cpu_build_of_torch_and_the_gpu_image_refuses_it():
    assert b"torch==${TORCH}+cpu\n" in recipe_files("cpu")["images/cpu-torch.txt"]
    assert b"!=${TORCH}+cpu" in recipe_files("gpu")["images/gpu-torch.txt"]
