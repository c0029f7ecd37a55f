"""talos-orch: a Talos sweep on many workers, one merged result.

The public names are loaded when asked for, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from orchestrator.version import __version__

_PUBLIC = {
    "Scan": "orchestrator.scan.api",
    "ParamSpace": "orchestrator.space",
    "DistributeParamSpace": "orchestrator.space",
    "parallel_gpu_jobs": "orchestrator.devices",
    "multi_gpu": "orchestrator.devices",
    "force_cpu": "orchestrator.devices",
    "launch": "orchestrator.api",
    "resume": "orchestrator.api",
}

__all__ = [*_PUBLIC, "__version__"]  # noqa: PLE0604 - all strings


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'orchestrator' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
