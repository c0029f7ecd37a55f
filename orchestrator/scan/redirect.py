"""``talos.Scan`` becomes ours, in every way in which a script can reach it.

Where an image has no Talos, a small stand-in of that name offers what we implement and says what to install for the rest.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable, Optional

from orchestrator.scan.hooks import Hook


def _ours(name: str) -> Any:
    return getattr(importlib.import_module("orchestrator"), name)


def _replace(*names: str) -> Hook:
    def hook(module: ModuleType) -> None:
        for name in names:
            setattr(module, name, _ours(name))

    return hook


def _top(module: ModuleType) -> None:
    """Put ours at the top; what Talos imports when its own Scan is first asked for is imported when it is asked for."""
    _replace("Scan")(module)
    theirs = module.__dict__.get("__getattr__")

    def get(name: str) -> Any:
        if name == "scan":
            importlib.import_module("talos.scan.Scan")
            return sys.modules["talos.scan"]
        if theirs is None:
            raise AttributeError(f"module 'talos' has no attribute {name!r}")
        return theirs(name)

    module.__dict__["__getattr__"] = get


def talos_hooks() -> dict[str, Hook]:
    """List what is exchanged, by module: the class at the top and where it is defined, spaces, device helpers."""
    return {
        "talos": _top,
        "talos.scan.Scan": _replace("Scan"),
        "talos.parameters.ParamSpace": _replace("ParamSpace"),
        "talos.parameters.DistributeParamSpace": _replace("DistributeParamSpace", "ParamSpace"),
        "talos.utils.gpu_utils": _replace("parallel_gpu_jobs", "multi_gpu", "force_cpu"),
    }


_STAND_IN: dict[str, tuple[str, ...]] = {
    "talos": ("Scan",),
    "talos.scan": (),
    "talos.scan.Scan": ("Scan",),
    "talos.parameters": (),
    "talos.parameters.ParamSpace": ("ParamSpace",),
    "talos.parameters.DistributeParamSpace": ("DistributeParamSpace",),
    "talos.utils": (),
    "talos.utils.gpu_utils": ("parallel_gpu_jobs", "multi_gpu", "force_cpu"),
}


class TalosStandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: asked for ``talos`` only where nothing else has it."""

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]],  # noqa: ARG002 - the import system's signature
        target: Optional[ModuleType] = None,  # noqa: ARG002
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Claim the names that we implement."""
        if fullname not in _STAND_IN:
            return None
        packages = any(other.startswith(fullname + ".") for other in _STAND_IN)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=packages)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill in our names; any other says what is missing."""
        for name in _STAND_IN[module.__name__]:
            setattr(module, name, _ours(name))
        module.__dict__["__getattr__"] = _missing(module.__name__)


def _missing(where: str) -> Callable[[str], Any]:
    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{where}.{name}"
        if full in _STAND_IN:
            return importlib.import_module(full)
        raise AttributeError(
            f"{full} needs Talos itself, which this image lacks: add talos to the image (pip install talos)"
        )

    return get


def install_stand_in() -> None:
    """Offer the stand-in behind all other finders."""
    sys.meta_path.append(TalosStandIn())
