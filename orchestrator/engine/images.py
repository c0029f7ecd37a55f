"""Finds and builds the worker images.

An image is named by its content: where the tag is there, nothing is built, downloaded or asked.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.engine.image_base import base_python, find_image, prepare_base
from orchestrator.engine.image_recipe import ImageRequest, content_hash, image_tag, recipe_files
from orchestrator.engine.image_wheels import fetch_wheels, host_python, settings_for_stage
from orchestrator.engine.translate import engine_errors, one_line
from orchestrator.errors import EngineError, ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO

    import docker

__all__ = ["ImageRequest", "build_image", "find_image", "image_tag", "recipe_files"]

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
_LOOPBACK = re.compile(r"//([^/@]*@)?(localhost|127\.|\[::1\])", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What the builder says about itself rather than about the image.
_NOISE = re.compile(
    r"^(--->|Removing intermediate|Successfully (built|tagged|un)|\[Warning\]|Processing |Attempting |"
    r"Found existing|Uninstalling|Looking in |Requirement already|Installing collected|[IW]\d{4} |"
    r"WARNING: All log messages|Step \d+/\d+ : (ARG|LABEL|ENV))"
)


def build_image(
    client: docker.DockerClient,
    request: ImageRequest,
    *,
    environ: Mapping[str, str],
    cache: Path,
    say: Callable[[str], None],
) -> str:
    """Return the image's id, building it only if it is not there; raises ImageError or EngineError.

    ``environ`` is this machine's environment (PATH, pip and proxy variables), ``cache`` a folder of this user
    for wheels, ``say`` gets one line of progress at a time.
    """
    files = recipe_files(request.device)
    tag = image_tag(request, files)
    if found := find_image(client, tag):
        say(f"{tag} is there already")
        return found
    base = prepare_base(client, request, files, environ=environ, cache=cache, say=say)
    version, machine = base_python(client, base)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="build-") as scratch:
        arguments: dict[str, str] = {}
        if python := host_python(version, machine, environ):
            extra = fetch_wheels(request, files, python, environ=environ, cache=cache, say=say)
        else:
            extra = Path(scratch) / "extra"
            extra.mkdir()
            arguments = settings_for_stage(request, environ=environ, folder=extra, say=say)
        arguments |= _identity(request, files, base) | proxy_arguments(environ)
        with tempfile.TemporaryFile(dir=scratch) as context:
            write_context(context, files, sorted(extra.iterdir()))
            context.seek(0)
            _build(client, context, tag, arguments, say)
    built = find_image(client, tag)
    if built is None:
        raise ImageError(f"the engine built {tag} but does not know it: try again")
    say(f"built {tag}")
    return built


def proxy_arguments(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy variables in both spellings; Docker keeps these arguments out of the history."""
    names = [spelling for name in _PROXIES for spelling in (name, name.lower())]
    return {name: environ[name] for name in names if environ.get(name)}


def write_context(target: IO[bytes], files: Mapping[str, bytes], extra: Iterable[Path]) -> None:
    """Write the build context: the recipe, its Dockerfile as ``Dockerfile``, and ``extra`` in a folder."""
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo("Dockerfile" if name.startswith("Dockerfile.") else name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, BytesIO(content))
        for path in extra:
            archive.add(path, f"extra/{path.name}", recursive=False, filter=_anonymous)


def build_events(chunks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the builder worth reading; raises ImageError at the first chunk with an error.

    The error is what the tools in the build said last (pip or apt, then install.sh), else what the builder says.
    """
    tool = ours = ""
    for chunk in chunks:
        if "error" in chunk:
            said = ": ".join(filter(None, (tool, ours))) or one_line(str(chunk["error"]))
            raise ImageError(f"the image cannot be built: {said}")
        for raw in str(chunk.get("stream") or "").splitlines():
            line = one_line(_COLOUR.sub("", raw))
            if line.startswith(("ERROR:", "E: ")):
                tool = line
            elif line.startswith("talos-orch: "):
                ours = line.removeprefix("talos-orch: ")
            if line and not _NOISE.match(line):
                yield line


def _identity(request: ImageRequest, files: Mapping[str, bytes], base: str) -> dict[str, str]:
    content = content_hash(request, files)
    return {
        "BASE": base,
        "BACKEND": request.backend,
        "VERSION": request.version,
        "CONTENT": content,
        "STAGE": content,
    }


def _build(
    client: docker.DockerClient,
    context: IO[bytes],
    tag: str,
    arguments: dict[str, str],
    say: Callable[[str], None],
) -> None:
    """Run the build, and remove what it leaves behind, also when it fails."""
    # A proxy on this machine's loopback is only there for a build that shares its network.
    loopback = any(_LOOPBACK.search(value) for value in proxy_arguments(arguments).values())
    try:
        with engine_errors(f"build {tag}"):
            chunks = client.api.build(
                fileobj=context,
                custom_context=True,
                dockerfile="Dockerfile",
                tag=tag,
                buildargs=arguments,
                network_mode="host" if loopback else None,
                rm=True,
                forcerm=True,
                decode=True,
            )
            for line in build_events(chunks):
                say(line)
    finally:
        # The build stage holds every wheel once more, and the next build of this content will not happen.
        # A prune that somebody else runs at this moment refuses ours; the image is built all the same.
        with contextlib.suppress(EngineError), engine_errors("remove the build stage"):
            stage = f"talos-orch.stage={arguments['STAGE']}"
            client.images.prune(filters={"dangling": True, "label": stage})


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without this machine's owner and clock, so that equal contexts are equal to Docker's cache."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry
