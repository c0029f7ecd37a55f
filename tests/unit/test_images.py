"""What a build does and says, with a fake in place of the engine."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import docker.errors
import pytest

from orchestrator.engine import image_base
from orchestrator.engine.image_base import base_python, prepare_base
from orchestrator.engine.image_recipe import ImageRequest, image_tag, recipe_files
from orchestrator.engine.images import build_events, build_image, proxy_arguments, write_context
from orchestrator.errors import ImageError

CPU = ImageRequest(device="cpu")


def quiet(line):
    """Takes progress and drops it."""


class FakeImages:
    def __init__(self, present):
        self.present = dict(present)
        self.pruned = []

    def get(self, name):
        if name not in self.present:
            raise docker.errors.ImageNotFound(f"No such image: {name}")
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
        raise docker.errors.APIError("500", explanation="lookup failed: no such host")

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
    ours = {"stream": "talos-orch: the packages could not be installed\n"}
    with pytest.raises(ImageError, match=r"for x: the packages could not be installed$"):
        list(build_events([chunks[0], ours, chunks[-1]]))


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
