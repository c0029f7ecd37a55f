"""``ParamSpace``: the rows of a scan, under Talos's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Union, overload

from orchestrator.space.domain import Domain
from orchestrator.space.identity import digest
from orchestrator.space.limits import BooleanLimit, Limits, check_time_limit, seed_of
from orchestrator.space.removal import RowRemoval
from orchestrator.space.selection import Selection, draw, position_in


class ParamSpace(RowRemoval):
    """The rows of a scan, computed when asked for and never materialised.

    Arguments as in Talos 2.0.10; ParamsTypeError and ParamsValueError, both naming the key or argument,
    come from here, while rows are sampled (once) when they are first needed. ``dimensions`` is the exact
    size of the grid, ``size`` the exact number of rows after limits; ``len()`` raises OverflowError beyond
    ``sys.maxsize``.
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
        seed: int | None = None,
    ) -> None:
        self.params = params
        self.domain = Domain.of(params, param_keys)
        self.param_keys = list(self.domain.keys)
        self.random_method = random_method
        self.fraction_limit = fraction_limit
        self.round_limit = round_limit
        self.time_limit = time_limit
        self.boolean_limit = boolean_limit
        self.seed = seed_of(seed)
        self.round_counter = 0
        self.shard_id: int | None = None
        self._deal: Callable[[int], Selection] | None = None
        self._machines = 1
        self._selection: Selection | None = None
        self._limits = Limits(random_method, fraction_limit, round_limit, boolean_limit, self.seed)
        check_time_limit(time_limit)
        self._limits.check(self.domain.total)

    @property
    def p(self) -> dict[str, list[Any]]:
        """The candidates of each parameter as a list, ranges expanded."""
        return {key: list(options) for key, options in zip(self.domain.keys, self.domain.values)}

    @property
    def selection(self) -> Selection:
        """The grid index of each row, drawn at the first use and then kept."""
        if self._selection is None:
            if self._deal is not None and self.shard_id is not None:
                self._selection = self._deal(self.shard_id)
            else:
                self._selection = draw(self.domain, self._limits)
        return self._selection

    @property
    def size(self) -> int:
        """The exact number of rows."""
        return self.selection.size

    @property
    def dimensions(self) -> int:
        """The exact number of combinations in the grid, or of rows in a shard."""
        return self.domain.total if self.shard_id is None else self.size

    @property
    def shard_namespace(self) -> str | None:
        """What sets this shard's trial ids apart: 64 hex digits, or None when this is no shard.

        It covers key order, candidates, rows and their order, so shards with equal namespaces have equal
        rows.
        """
        if self.shard_id is None:
            return None
        rows = digest(self.selection.to_json())
        shard = {"domain": self.domain.fingerprint(), "machines": self._machines, "worker": self.shard_id}
        return digest({**shard, "rows": rows})

    @property
    def param_index(self) -> range:
        """The positions of the rows that ``round_parameters`` has not returned yet."""
        return range(self.round_counter, self.size)

    @property
    def param_space(self) -> Rows:
        """The rows as a sequence of lists of values in key order, computed on access."""
        return Rows(self.domain, self.selection)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return self.size > 0

    def row(self, position: int) -> dict[str, Any]:
        """Return the parameters of the row at ``position`` as a new dict; IndexError outside the rows."""
        return self.domain.at(self.selection[position_in(self.size, position)])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the parameters of every row, in visit order."""
        return map(self.domain.at, self.selection)

    def round_parameters(self) -> Union[list[Any], bool]:
        """Return the values of the next row in key order, or False when there is none left."""
        if self.round_counter >= self.size:
            return False
        values: list[Any] = self.param_space[self.round_counter]
        self.round_counter += 1
        return values

    def choose(self, selection: Selection) -> None:
        """Visit exactly the rows of ``selection``, in its order, instead of those that the limits give."""
        self._selection = selection

    def _keep(self, condition: Callable[[dict[str, Any]], Any]) -> None:
        done = self.round_counter
        indices = [self.selection[position] for position in range(self.size)]
        stay = [index for index in indices[done:] if condition(self.domain.at(index))]
        self.choose(Selection.from_json({"kind": "list", "indices": indices[:done] + stay}))

    def _round_parameters_todict(self, values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(self.param_keys, values))

    def _shard(self, shard_id: int, machines: int, deal: Callable[[int], Selection]) -> ParamSpace:
        """Return the space of one machine, whose rows ``deal(shard_id)`` gives when they are first needed."""
        shard = ParamSpace(self.params, self.param_keys, time_limit=self.time_limit, seed=self.seed)
        shard.domain = self.domain
        shard.shard_id = shard_id
        shard._machines = machines
        shard._deal = deal
        return shard


class Rows(Sequence[Any]):
    """A lazy view of rows: each a list of values in key order, a slice a list of those."""

    def __init__(self, domain: Domain, selection: Selection) -> None:
        self._domain = domain
        self._selection = selection

    def __len__(self) -> int:
        return self._selection.size

    @overload
    def __getitem__(self, position: int) -> list[Any]: ...
    @overload
    def __getitem__(self, position: slice) -> list[list[Any]]: ...
    @overload
    def __getitem__(self, position: tuple[int, int]) -> Any: ...
    def __getitem__(self, position: int | slice | tuple[int, int]) -> Any:
        size = self._selection.size
        if isinstance(position, tuple):  # as in Talos, where the rows are an array
            row, column = position
            return self[row][column]
        if isinstance(position, slice):
            return [self[each] for each in range(size)[position]]
        index = self._selection[position_in(size, position)]
        return list(self._domain.at(index).values())

    def tolist(self) -> list[list[Any]]:
        """Give all rows as lists."""
        return list(self)
