"""``DistributeParamSpace``: the rows of a scan dealt out to machines."""

from __future__ import annotations

import hashlib
import random
from numbers import Integral
from typing import TYPE_CHECKING, Any

from orchestrator.errors import ParamsValueError
from orchestrator.space.labels import shown
from orchestrator.space.params import ParamSpace
from orchestrator.space.selection import DealtRows, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.space.limits import BooleanLimit

SHUFFLED_ROWS = 10**6


class DistributeParamSpace:
    """``machines`` shards of one ``ParamSpace``: disjoint, complete, and equal in size but for one row.

    Up to 10**6 rows (after limits) the shards are those of Talos 2.0.10: the positions are shuffled with
    ``random.Random(seed)`` and cut into runs, the first ones longer. Above that a seeded permutation is
    computed row by row instead, so that a shard of any size takes no memory; there the rows are not
    Talos's. Without a seed one is drawn here, once, so the shards of this object still fit together; those
    of another process do not.

    ``param_spaces`` maps 0 .. machines-1 to their ``ParamSpace``, whose rows are computed at first use.
    More machines than rows leave the last shards empty. ParamsValueError unless ``machines`` is an integer
    above 0.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        param_keys: Iterable[str] | None = None,
        random_method: str = "uniform_mersenne",
        fraction_limit: float | None = None,
        round_limit: float | None = None,
        time_limit: str | None = None,
        boolean_limit: BooleanLimit | None = None,
        machines: int = 2,
        seed: int | None = None,
    ) -> None:
        if not isinstance(machines, Integral) or machines < 1:
            raise ParamsValueError(f"machines={shown(machines)}: give a positive integer")
        self.machines = int(machines)
        space = ParamSpace(
            params,
            param_keys,
            random_method,
            fraction_limit,
            round_limit,
            time_limit,
            boolean_limit,
            seed,
        )
        dealer = _Dealer(space, self.machines)
        self.param_spaces = {
            worker: space._shard(worker, self.machines, dealer.deal)  # noqa: SLF001 - its other half
            for worker in range(self.machines)
        }


class _Dealer:
    """Cuts the shuffled rows of ``space`` into runs; it shuffles when the first shard is asked for."""

    def __init__(self, space: ParamSpace, machines: int) -> None:
        self._space = space
        self._machines = machines
        self._seed = random.SystemRandom().getrandbits(128) if space.seed is None else space.seed
        self._shuffled: list[int] | None = None

    def deal(self, worker: int) -> Selection:
        """Return the grid indices of one machine's rows, in its visit order."""
        rows = self._space.selection
        least, longer = divmod(rows.size, self._machines)
        start = worker * least + min(worker, longer)
        size = least + (worker < longer)
        if rows.size > SHUFFLED_ROWS:
            key = hashlib.sha256(f"talos-orch shards {self._seed}".encode()).hexdigest()
            return Selection(DealtRows(rows, key, start, size))
        if self._shuffled is None:
            self._shuffled = list(range(rows.size))
            random.Random(self._seed).shuffle(self._shuffled)  # noqa: S311 - Talos's own generator
        return Selection(tuple(rows[position] for position in self._shuffled[start : start + size]))
