"""Which engine, and which image on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from orchestrator.engine.base import Engine, EngineInfo
from orchestrator.engine.docker import DockerEngine
from orchestrator.engine.gpus import local_gpus
from orchestrator.engine.image_recipe import Backend, Device
from orchestrator.engine.images import ImageRequest, build_image, find_image, image_tag, recipe_files
from orchestrator.engine.process import ProcessEngine
from orchestrator.engine.topology import local_topology
from orchestrator.engine.translate import engine_errors
from orchestrator.errors import ImageError
from orchestrator.plan.devices import Gpu

if TYPE_CHECKING:
    from orchestrator.config import Settings, Surroundings

__all__ = [
    "build_worker_image",
    "docker_engine",
    "erase_scratch",
    "find_worker_image",
    "image_request",
    "local_gpus",
    "open_engine",
    "same_engine",
    "worker_image_name",
]

_TENSORFLOW = frozenset(("tensorflow", "keras"))
_TORCH = frozenset(("torch",))


def open_engine(kind: str, around: Surroundings, gpus: tuple[Gpu, ...]) -> Engine:
    """Give the engine; EngineError when it does not answer."""
    if kind == "process":
        return ProcessEngine(around.environ, gpus, local_topology())
    return docker_engine(around, gpus)


def same_engine(engine: Engine, info: EngineInfo, endpoint: str) -> Engine | None:
    """Give the engine at ``endpoint``: this one, or plain processes of this machine; None for one that is not asked here."""
    if endpoint == info.endpoint:
        return engine
    processes = ProcessEngine({})
    return processes if endpoint == processes.info().endpoint else None


def docker_engine(around: Surroundings, gpus: tuple[Gpu, ...] = ()) -> DockerEngine:
    """Connect to the endpoint that the environment names, as the Docker client does."""
    return DockerEngine(around.environ, gpus, local_topology())


def image_request(settings: Settings, device: str, imports: frozenset[str]) -> ImageRequest:
    """Choose the worker image by what the script imports: one backend where it is clear, else both."""
    if settings.backend is not None:
        return worker_request(device, settings.backend)
    tensorflow, torch = bool(imports & _TENSORFLOW), bool(imports & _TORCH)
    if tensorflow == torch:
        return worker_request(device, "both")
    return worker_request(device, "tensorflow" if tensorflow else "torch")


def worker_request(device: str, backend: str) -> ImageRequest:
    """Name one of our images; SettingsError for a device or backend that there is no image for."""
    return ImageRequest(device=cast("Device", device), backend=cast("Backend", backend))


def find_worker_image(
    engine: Engine, asked: str | None, request: ImageRequest | None, before: str | None = None
) -> tuple[str, str | None]:
    """Give (name, id) of the image to use; id None for one of ours that is still to build.

    An image with both backends serves where it is there. ``before`` is the id that an earlier launch of the sweep had; it
    wins where the engine still has it. ImageError for a user's own image that the engine lacks.
    """
    assert isinstance(engine, DockerEngine)  # noqa: S101 - only that one has images
    if before is not None:
        with engine_errors(f"find image {before}"):
            if find_image(engine.client, before) is not None:
                return asked or before, before
    if asked is not None:
        with engine_errors(f"find image {asked}"):
            found = find_image(engine.client, asked)
        if found is None:
            raise ImageError(f"--image {asked}: this engine does not have it; docker pull {asked}, or build it first")
        return asked, found
    assert request is not None  # noqa: S101 - given whenever no image is named
    both = worker_request(request.device, "both")
    for candidate in (request, both):
        tag = image_tag(candidate, recipe_files(candidate.device))
        with engine_errors(f"find image {tag}"):
            found = find_image(engine.client, tag)
        if found is not None:
            return tag, found
    return image_tag(request, recipe_files(request.device)), None


def build_worker_image(engine: Engine, request: ImageRequest, around: Surroundings, say: Callable[[str], None]) -> str:
    """Build (or find) one of our images; its id."""
    assert isinstance(engine, DockerEngine)  # noqa: S101 - only that one has images
    return build_image(engine.client, request, environ=around.environ, cache=Path(around.cache), say=say)


def worker_image_name(
    device: str, backend: str, *, base: str | None, wheels: Path | None, torch_index: str | None
) -> tuple[str, ImageRequest]:
    """Give (name, request) of one of our images, as ``talos-orch build`` is asked for it."""
    kind, backends = cast("Device", device), cast("Backend", backend)  # ImageRequest checks them itself
    request = ImageRequest(device=kind, backend=backends, base=base, wheels=wheels, torch_index=torch_index)
    return image_tag(request, recipe_files(request.device)), request


def erase_scratch(engine: Engine, image: str | None, parent: str, names: list[str]) -> None:
    """Delete the kernel's root-owned work folders under a sweep, with a container's help where the caller may not."""
    if isinstance(engine, DockerEngine) and image and names:
        engine.erase_as_root(image, parent, names)
