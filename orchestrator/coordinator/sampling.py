"""GPU memory of each worker while trials run, as the driver on this machine counts it."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.plan.devices import CUDA_CONTEXT_MIB
from orchestrator.plan.sizes import MIB, show_size
from orchestrator.schema import Share


class GpuUse:
    """What each worker has on its devices. ``mib`` is the newest sample by worker, over all its devices.

    A limit that a framework holds covers its own allocator alone: what other libraries take shows here.
    """

    def __init__(self, shares: Mapping[int, Share]) -> None:
        self._limits = {number: share.gpu_bytes for number, share in shares.items() if share.gpus}
        self._told: set[int] = set()
        self.mib: dict[int, float] = {}

    @property
    def devices(self) -> bool:
        """Say whether there is anything to look at."""
        return bool(self._limits)

    def take(self, sample: Mapping[int, Mapping[str, int]]) -> list[str]:
        """Take note of bytes by worker and device; a sentence for each worker that is over its share for the first time."""
        said = []
        self.mib = {number: round(sum(used.values()) / MIB, 1) for number, used in sample.items()}
        for number, used in sample.items():
            limit = self._limits.get(number)
            if limit is None or number in self._told:
                continue
            most = limit + CUDA_CONTEXT_MIB * MIB
            device, taken = max(used.items(), key=lambda item: item[1], default=("", 0))
            if taken > most:
                self._told.add(number)
                said.append(
                    f"worker {number} has {show_size(taken)} on GPU {device}, over its share of {show_size(limit)} and "
                    f"{CUDA_CONTEXT_MIB} MiB of context: another library than its backend takes it, perhaps"
                )
        return said
