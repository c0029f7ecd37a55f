"""What is built, under which name, and what is said when it fails: all without Docker."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from dataclasses import replace

import pytest

from orchestrator.engine import image_base
from orchestrator.engine.image_base import base_python, prepare_base
from orchestrator.engine.image_recipe import (
    ImageRequest,
    base_tag,
    default_base,
    image_tag,
    pinned_versions,
    recipe_files,
    requirement_names,
)
from orchestrator.engine.image_wheels import (
    download_command,
    fetch_wheels,
    host_python,
    pip_environ,
    settings_for_stage,
    wheels_key,
)
from orchestrator.engine.images import build_events, build_image, proxy_arguments, write_context
from orchestrator.errors import ImageError, SettingsError

docker_errors = pytest.importorskip("docker.errors")

CPU = ImageRequest(device="cpu")


def quiet(line):
    """Takes progress and drops it."""


class FakeImages:
    def __init__(self, present):
        self.present = dict(present)
        self.pruned = []

    def get(self, name):
        if name not in self.present:
            raise docker_errors.ImageNotFound(f"No such image: {name}")
        return type("Image", (), {"id": self.present[name]})()

    def prune(self, filters):
        self.pruned.append(filters)


class FakeClient:
    """An engine that knows some images; pulling fails as it does without a network."""

    def __init__(self, present=(), python="3 11 x86_64", chunks=()):
        self.images = FakeImages(present)
        self.api = self
        self.containers = self
        self.python, self.chunks, self.built = python, chunks, []

    def pull(self, name, **_):
        raise docker_errors.APIError("500", explanation="lookup failed: no such host")

    def run(self, image, command, **_):
        return self.python.encode()

    def build(self, **options):
        self.built.append(options)
        yield from self.chunks
        self.images.present[options["tag"]] = "sha256:new"

    def import_image_from_file(self, path, *, repository, tag, changes):
        self.images.present[f"{repository}:{tag}"] = "sha256:base"


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


def test_proxies_are_passed_in_both_spellings_and_empty_ones_are_not():
    assert proxy_arguments({"http_proxy": "p", "NO_PROXY": "n", "HTTPS_PROXY": "", "OTHER": "x"}) == {
        "http_proxy": "p",
        "NO_PROXY": "n",
    }


def test_the_context_holds_the_recipe_and_no_trace_of_the_user(wheels):
    target = io.BytesIO()
    write_context(target, recipe_files("cpu"), sorted(wheels.iterdir()))
    target.seek(0)
    with tarfile.open(fileobj=target) as archive:
        members = {member.name: member for member in archive}
    assert {"Dockerfile", "images/install.sh", "extra/six-1-py3-none-any.whl"} <= set(members)
    assert {(member.uid, member.uname, member.mtime) for member in members.values()} == {(0, "", 0)}


def test_progress_leaves_out_what_the_builder_says_about_itself():
    chunks = [{"stream": "Step 1/2 : FROM x\n"}, {"stream": " ---> abc\n"}, {"stream": "\x1b[91mok\x1b[0m\n"}]
    assert list(build_events(chunks)) == ["Step 1/2 : FROM x", "ok"]


def test_a_failed_build_says_the_line_that_tells_why():
    chunks = [
        {"stream": "\x1b[91mERROR: No matching distribution found for x\x1b[0m\n"},
        {"stream": "more words\n"},
        {"error": "The command '/bin/sh -c …' returned a non-zero code: 1"},
    ]
    with pytest.raises(ImageError, match=r"cannot be built: ERROR: No matching distribution found for x$"):
        list(build_events(chunks))
    with pytest.raises(ImageError, match=r"non-zero code: 1"):
        list(build_events(chunks[-1:]))


def test_an_image_that_is_there_is_not_built_again(tmp_path):
    tag = image_tag(CPU, recipe_files("cpu"))
    client = FakeClient({tag: "sha256:old"})
    assert build_image(client, CPU, environ={}, cache=tmp_path, say=quiet) == "sha256:old"
    assert client.built == []
    assert list(tmp_path.iterdir()) == []


def test_a_build_is_labelled_tagged_and_cleaned_up(tmp_path, wheels):
    request = replace(CPU, base="mine:1", wheels=wheels)
    client = FakeClient({"mine:1": "sha256:b"}, python="3 11 other-machine", chunks=[{"stream": "Step 1\n"}])
    assert build_image(client, request, environ={}, cache=tmp_path / "cache", say=quiet) == "sha256:new"
    (options,) = client.built
    content = options["tag"].rpartition("-")[2]
    assert options["buildargs"] == {
        "BASE": "mine:1",
        "BACKEND": "both",
        "VERSION": request.version,
        "CONTENT": content,
        "STAGE": content,
    }
    assert (options["rm"], options["forcerm"], options["decode"]) == (True, True, True)
    assert client.images.pruned == [{"dangling": True, "label": f"talos-orch.stage={content}"}]
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_failed_build_is_cleaned_up_too(tmp_path, wheels):
    request = replace(CPU, base="mine:1", wheels=wheels)
    client = FakeClient({"mine:1": "b"}, python="3 11 other-machine", chunks=[{"error": "no space left"}])
    with pytest.raises(ImageError, match="no space left"):
        build_image(client, request, environ={}, cache=tmp_path, say=quiet)
    assert len(client.images.pruned) == 1


def test_a_proxy_on_the_loopback_needs_the_networks_of_this_machine(tmp_path, wheels):
    request = replace(CPU, base="mine:1", wheels=wheels)
    for proxy, network in (("http://u:p@127.0.0.1:3128", "host"), ("http://proxy.example:1", None)):
        client = FakeClient({"mine:1": "b"}, python="3 11 other-machine")
        build_image(client, request, environ={"HTTP_PROXY": proxy}, cache=tmp_path, say=quiet)
        assert client.built[0]["network_mode"] == network


def test_a_base_that_was_asked_for_by_name_is_never_replaced(tmp_path):
    request = replace(CPU, base="mine:1")
    with pytest.raises(ImageError, match=r"cannot pull the base image mine:1: lookup failed: no such host"):
        prepare_base(FakeClient(), request, recipe_files("cpu"), environ={}, cache=tmp_path, say=quiet)


def test_without_mmdebstrap_and_without_root_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(image_base.os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError, match="apt-get install mmdebstrap"):
        prepare_base(FakeClient(), CPU, recipe_files("cpu"), environ={"PATH": "/none"}, cache=tmp_path, say=quiet)


def test_a_base_from_packages_is_built_once(tmp_path):
    (tmp_path / "mmdebstrap").write_text("#!/bin/sh\n")
    (tmp_path / "mmdebstrap").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    files = recipe_files("cpu") | {"images/base.sh": b': >"$1"\n'}
    client, lines = FakeClient(), []
    first = prepare_base(client, CPU, files, environ=environ, cache=tmp_path, say=lines.append)
    assert first.startswith("talos-orch/base:")
    assert "building a base from distribution packages, about 20 s" in lines[-1]
    again = prepare_base(client, CPU, files, environ=environ, cache=tmp_path, say=lines.append)
    assert (again, "built earlier" in lines[-1]) == (first, True)


def test_a_failing_base_script_is_one_line(tmp_path):
    (tmp_path / "mmdebstrap").write_text("#!/bin/sh\n")
    (tmp_path / "mmdebstrap").chmod(0o755)
    files = recipe_files("cpu") | {"images/base.sh": b"echo one >&2; echo E: no mirror >&2; exit 1\n"}
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    with pytest.raises(ImageError, match="could not build a base: E: no mirror: try again"):
        prepare_base(FakeClient(), CPU, files, environ=environ, cache=tmp_path, say=quiet)


def test_a_base_with_a_python_that_talos_refuses_is_named():
    with pytest.raises(ImageError, match=r"x:1 has Python 3\.9: Talos needs 3\.11 to 3\.13"):
        base_python(FakeClient(python="3 9 x86_64"), "x:1")
