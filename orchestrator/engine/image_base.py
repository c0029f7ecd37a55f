"""The base image: here already, or pulled, or built from distribution packages without a registry."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import docker.errors

from orchestrator.engine.image_recipe import NEWEST_PYTHON, OLDEST_PYTHON, base_tag, default_base
from orchestrator.engine.translate import FOREIGN, engine_errors, one_line, reason
from orchestrator.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.engine.image_recipe import ImageRequest

_PROBE = "import platform, sys; print('%d %d %s' % (sys.version_info[:2] + (platform.machine(),)))"
_OS_RELEASE = Path("/etc/os-release")


def find_image(client: docker.DockerClient, tag: str) -> str | None:
    """Return the id of a local image, None where there is none of that name."""
    with engine_errors(f"look for image {tag}"):
        try:
            return str(client.images.get(tag).id)
        except docker.errors.ImageNotFound:
            return None


def prepare_base(
    client: docker.DockerClient,
    request: ImageRequest,
    files: Mapping[str, bytes],
    *,
    environ: Mapping[str, str],
    cache: Path,
    say: Callable[[str], None],
) -> str:
    """Make sure that a base image is in the engine, and return its name.

    Only a base that nobody asked for by name is replaced by one of distribution packages. Raises ImageError.
    """
    base = default_base(request, files)
    if find_image(client, base):
        return base
    say(f"pulling {base}")
    failure = _pull(client, base)
    if failure is None:
        return base
    if request.base is not None:
        raise ImageError(
            f"cannot pull the base image {base}: {failure}: check the name, load it with `docker load`, "
            "or leave out --base"
        )
    tag = base_tag(files["images/base.sh"], _release(), platform.machine())
    if find_image(client, tag):
        say(f"{base} cannot be pulled: using {tag}, built earlier from distribution packages")
        return tag
    _require_mmdebstrap(base, failure, environ, say)
    say(f"{base} cannot be pulled ({failure}): building a base from distribution packages, about 20 s")
    _bootstrap(client, tag, files["images/base.sh"], environ, cache)
    return tag


def base_python(client: docker.DockerClient, base: str) -> tuple[str, str]:
    """Return the base's Python version ("3.11") and machine ("x86_64"); raises ImageError if unfit."""
    try:
        with engine_errors(f"run python3 in {base}"):
            output = client.containers.run(
                base,
                ["python3", "-c", _PROBE],
                remove=True,
                network_disabled=True,
                entrypoint=[],
                labels=["talos-orch.probe"],
            )
    except docker.errors.ContainerError as error:
        raise ImageError(f"python3 fails in the base image {base}: {one_line(str(error))}") from error
    major, minor, machine = output.decode().split()
    if not OLDEST_PYTHON <= (int(major), int(minor)) <= NEWEST_PYTHON:
        raise ImageError(f"the base image {base} has Python {major}.{minor}: Talos needs 3.11 to 3.13")
    return f"{major}.{minor}", machine


def _pull(client: docker.DockerClient, base: str) -> str | None:
    """None when it worked, else why not."""
    try:
        for chunk in client.api.pull(base if _has_tag(base) else f"{base}:latest", stream=True, decode=True):
            if "error" in chunk:
                return one_line(str(chunk["error"]))
    except FOREIGN as error:
        return reason(error)
    return None


def _has_tag(base: str) -> bool:
    return "@" in base or ":" in base.rpartition("/")[2]


def _release() -> str:
    """Return the text that names this machine's distribution release, empty where there is none."""
    return _OS_RELEASE.read_text() if _OS_RELEASE.is_file() else ""


def _require_mmdebstrap(base: str, failure: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    path = environ.get("PATH")
    if shutil.which("mmdebstrap", path=path):
        return
    if os.geteuid() == 0 and shutil.which("apt-get", path=path):
        say("installing mmdebstrap from the distribution")
        quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "mmdebstrap"],
        ):
            subprocess.run(command, env=quiet, capture_output=True, check=False)
        if shutil.which("mmdebstrap", path=path):
            return
    raise ImageError(
        f"cannot pull {base} ({failure}), and a base from distribution packages needs mmdebstrap: install it "
        "(apt-get install mmdebstrap), or load a base image and name it with --base"
    )


def _bootstrap(client: docker.DockerClient, tag: str, script: bytes, environ: Mapping[str, str], cache: Path) -> None:
    """Run base.sh and import what it made under ``tag``."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="base-") as folder:
        archive = Path(folder) / "base.tar"
        # The script goes in through stdin: an installed package's files need not be executable.
        done = subprocess.run(
            ["sh", "-s", str(archive)], input=script, env=dict(environ), capture_output=True, check=False
        )
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise ImageError(
                f"mmdebstrap could not build a base: {lines[-1] if lines else 'no output'}: try again as "
                "root, or load a base image and name it with --base"
            )
        repository, _, version = tag.partition(":")
        with engine_errors("import the base image"):
            said = client.api.import_image_from_file(
                str(archive), repository=repository, tag=version, changes=["LABEL talos-orch.base=mmdebstrap"]
            )
    if find_image(client, tag) is None:
        raise ImageError(f"the engine did not import the base image: {one_line(str(said))}")
