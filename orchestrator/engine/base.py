"""The boundary: a frozen spec goes in, a container runs; what ended is asked for by sweep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.plan.shares import Machine
from orchestrator.plan.specs import ContainerSpec

LABEL = "talos-orch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A container that is no longer running. ``oom`` is the engine's own word; ``error`` its reason if it never started."""

    member: str
    attempt: int
    exit_code: int
    oom: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an engine is and can. ``not_enforced`` names the limits that it cannot hold.

    ``gpu_trouble`` says why it cannot give a container a GPU, None where it can.
    """

    name: str
    endpoint: str
    version: str
    machine: Machine
    gpu_trouble: str | None = None
    data_root: str | None = None
    not_enforced: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Engine(Protocol):
    """Verbs of an engine; all raise EngineError (or its kin) and nothing else of the engine's own."""

    isolated: bool
    """True where paths inside are the engine's own; False where the host's are seen."""

    def info(self) -> EngineInfo:
        """Say what this engine is and has."""

    def start(self, spec: ContainerSpec) -> None:
        """Start a container; nothing is left if it fails. ViewRefusedError where the spec's view cannot be given."""

    def ended(self, folder: str) -> list[Ended]:
        """List the sweep's containers that have ended, or vanished, so far."""

    def members(self, folder: str) -> list[str]:
        """List the sweep's containers that are there, running or not."""

    def gpu_memory(self, folder: str, uuids: list[str]) -> dict[str, dict[str, int]]:
        """Give the bytes that each of the sweep's members has on each device; none where the driver does not tell."""

    def stop(self, folder: str, members: list[str] | None = None, *, grace: float = 10.0) -> None:
        """End containers: SIGTERM, then SIGKILL after ``grace`` seconds; all of the sweep's when not named."""

    def remove(self, folder: str, members: list[str] | None = None) -> None:
        """Remove ended containers and what they leave (volumes, work folders). Safe to repeat."""
