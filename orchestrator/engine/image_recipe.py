"""What an image is made of, decided without Docker.

The tag is a hash over everything here that shapes the image, so that equal requests meet the same image and a
changed recipe makes another one. Wheels are not part of it: the versions that matter are pinned, and `launch`
must find the image that `build --wheels` made.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orchestrator.version
from orchestrator.errors import ImageError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

Device = Literal["cpu", "gpu"]
Backend = Literal["tensorflow", "torch", "both"]

DEVICES: tuple[Device, ...] = ("cpu", "gpu")
BACKENDS: tuple[Backend, ...] = ("tensorflow", "torch", "both")
REPOSITORY = "talos-orch"
# What the pinned Talos accepts.
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)

_ARGUMENT = re.compile(r"^ARG (?P<name>[A-Z_]+)=(?P<value>\S+)$", re.MULTILINE)
_VERSIONS = ("TENSORFLOW", "TORCH", "TALOS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One worker image: for which device, with which backends, on which base.

    ``base`` None means the recipe's default. ``wheels`` is a folder that replaces every package index.
    ``torch_index`` is an index that is asked in addition to those of pip's settings.
    """

    device: Device
    backend: Backend = "both"
    base: str | None = None
    wheels: Path | None = None
    torch_index: str | None = None
    version: str = orchestrator.version.__version__

    def __post_init__(self) -> None:
        for name, value, accepted in (("device", self.device, DEVICES), ("backend", self.backend, BACKENDS)):
            if value not in accepted:
                raise SettingsError(f"unknown {name} {value!r}: use one of {', '.join(accepted)}")
        if self.wheels is not None and not any(self.wheels.glob("*.whl")):
            raise SettingsError(f"no wheels in {self.wheels}: name a folder that holds .whl files")


def recipe_files(device: Device) -> dict[str, bytes]:
    """Read what shapes the image, by path in the build context; raises ImageError if a file is missing."""
    root = _recipe_root()
    names = (
        f"Dockerfile.{device}",
        "images/install.sh",
        "images/base.sh",
        "images/common.txt",
        f"images/{device}-tensorflow.txt",
        f"images/{device}-torch.txt",
    )
    try:
        return {name: (root / name).read_bytes() for name in names}
    except OSError as error:
        raise ImageError(f"{error.filename} is missing from this installation: install talos-orch again") from error


def image_tag(request: ImageRequest, files: Mapping[str, bytes]) -> str:
    """Name the image: ``talos-orch/cpu:both-<12 hex>``, equal for equal content."""
    return f"{REPOSITORY}/{request.device}:{request.backend}-{content_hash(request, files)}"


def content_hash(request: ImageRequest, files: Mapping[str, bytes]) -> str:
    """Twelve hex digits over the recipe, the base and the versions; base.sh has a tag of its own."""
    facts = [request.device, request.backend, request.base or "", request.version]
    digest = hashlib.sha256("\0".join(facts).encode())
    for name in sorted(set(files) - {"images/base.sh"}):
        digest.update(f"\0{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()[:12]


def default_base(request: ImageRequest, files: Mapping[str, bytes]) -> str:
    """Return the base that is asked for: the request's own, or the default of the Dockerfile."""
    return request.base or _arguments(request, files)["BASE"]


def pinned_versions(request: ImageRequest, files: Mapping[str, bytes]) -> dict[str, str]:
    """TENSORFLOW, TORCH and TALOS as the Dockerfile pins them: the variables of the requirement files."""
    arguments = _arguments(request, files)
    return {name: arguments[name] for name in _VERSIONS}


def requirement_names(request: ImageRequest) -> tuple[str, ...]:
    """Return the requirement files of this request, by their path in the context."""
    parts = ("tensorflow", "torch") if request.backend == "both" else (request.backend,)
    return ("images/common.txt", *(f"images/{request.device}-{part}.txt" for part in parts))


def base_tag(script: bytes, release: str, machine: str) -> str:
    """Name a base ``talos-orch/base:<12 hex>``: what base.sh builds on this release and machine."""
    digest = hashlib.sha256(b"\0".join((script, release.encode(), machine.encode())))
    return f"{REPOSITORY}/base:{digest.hexdigest()[:12]}"


def _arguments(request: ImageRequest, files: Mapping[str, bytes]) -> dict[str, str]:
    text = files[f"Dockerfile.{request.device}"].decode()
    return {match["name"]: match["value"] for match in _ARGUMENT.finditer(text)}


def _recipe_root() -> Path:
    """Find the Dockerfiles: inside the installed package, or in the repository of an editable install."""
    package = Path(orchestrator.version.__file__).parent
    installed = package / "dockerfiles"
    return installed if installed.is_dir() else package.parent
