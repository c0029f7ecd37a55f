"""What an engine is, by its own words: Docker or Podman, rootless or with shifted user ids, and what it cannot do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PODMAN = "Podman Engine"
# Before, its Docker-compatible socket starts a container that asks for GPUs without them, and says nothing.
_PODMAN_WITH_GPUS = (5, 4)
_LIMITS = {"MemoryLimit": "memory", "CpuCfsQuota": "cpus", "PidsLimit": "pids"}


def describe(version: Mapping[str, Any], api: str) -> str:
    """Name an engine with its version: ``24.0.7 (API 1.43)``, or ``Podman 4.3.1 (API 1.41)``."""
    podman = podman_version(version)
    name = f"Podman {podman}" if podman else str(version.get("Version"))
    return f"{name} (API {api})"


def podman_version(version: Mapping[str, Any]) -> str | None:
    """Give Podman's version; None for Docker's engine."""
    parts = version.get("Components") or []
    return next((str(each.get("Version")) for each in parts if each.get("Name") == PODMAN), None)


def ignored_limits(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the limits that this engine takes and does not hold, as rootless ones do without delegated control groups."""
    return tuple(limit for key, limit in _LIMITS.items() if about.get(key) is False)


def gpu_trouble(about: Mapping[str, Any], version: Mapping[str, Any], *, hook: bool) -> str | None:
    """Say why this engine cannot give a container a GPU; None where it can. ``hook``: NVIDIA's is on this machine's path."""
    podman = podman_version(version)
    if podman is not None:
        numbers = tuple(int(part) for part in re.findall(r"\d+", podman)[:2])
        if numbers < _PODMAN_WITH_GPUS:
            return f"Podman {podman} ignores requests for GPUs: use Podman 5.4 or newer, or Docker"
        return None
    # Engines up to 28 find the toolkit's hook on the daemon's path and do not say so; on this machine we can look.
    if "nvidia" in about.get("Runtimes", {}) or about.get("DiscoveredDevices") or hook:
        return None
    return "this Docker Engine has no NVIDIA runtime: install the package nvidia-container-toolkit and restart Docker"


def notes(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what is worth knowing before a sweep starts on this engine."""
    found = []
    security = " ".join(map(str, about.get("SecurityOptions") or []))
    if "name=userns" in security:
        found.append(
            "this engine shifts user ids (userns-remap): files in run folders belong to other numbers than yours; "
            "it may not be able to write into them at all"
        )
    if "name=rootless" in security:
        found.append("this engine is rootless: what it cannot limit is named here, if anything")
    if "name=selinux" in security:
        found.append("SELinux is on: containers may be denied the project; label it, or see docker run --security-opt")
    ignored = ignored_limits(about)
    if ignored:
        found.append(f"this engine does not hold limits of {', '.join(ignored)}: they are not enforced")
    system = str(about.get("OperatingSystem") or "")
    if "Docker Desktop" in system:
        found.append(
            "Docker Desktop: only folders that it shares can be seen, and its virtual machine's memory is what there is"
        )
    if "WSL2" in str(about.get("KernelVersion") or ""):
        found.append("WSL2 shows every GPU to every container: CUDA_VISIBLE_DEVICES is what keeps workers apart")
    return tuple(found)
