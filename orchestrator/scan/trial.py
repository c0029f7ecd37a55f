"""One row, run: seed, call, read what came back, record. The same code in all three roles."""

from __future__ import annotations

import copy
import datetime
import errno
import gc
import json
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Optional

from orchestrator.errors import ContractError
from orchestrator.scan.context import trial_context
from orchestrator.scan.memory import PeakMemory, shm_is_full
from orchestrator.scan.models import ModelStore
from orchestrator.scan.outcome import Outcome, read_outcome
from orchestrator.scan.seeding import row_seed, seed_everything
from orchestrator.schema import COMPLETED, FAILED, TrialRecord
from orchestrator.space import Domain, Selection, encode, param_hash, trial_id

_CONTAINERS = (list, dict, set)


@dataclass(frozen=True)
class Trials:
    """Everything that trials of one ``Scan`` have in common.

    ``base_seed`` None leaves the generators alone, as Talos does without a seed. ``folder`` is where callbacks of Talos's own
    write.
    """

    model: Callable[..., Any]
    data: tuple[Any, Any, Any, Any]
    domain: Domain
    selection: Selection
    base_seed: Optional[int]
    clear_session: bool = True
    print_params: bool = False
    shard_namespace: Optional[str] = None
    interruptible: bool = True
    folder: Optional[str] = None

    def params(self, row: int) -> dict[str, Any]:
        """Give a row's parameters; new containers each time, since a model may change what it is given."""
        values = self.domain.at(self.selection[row])
        return {key: _own(value) if type(value) in _CONTAINERS else value for key, value in values.items()}

    def start(self, row: int, attempt: int, place: Optional[int] = None) -> TrialRecord:
        """Give the record of a row that has just begun.

        ``place`` is how many rows run before it, where a reducer has taken some away: Talos counts seeds and identities by
        those that run.
        """
        place = row if place is None else place
        params = self.params(row)
        digest = param_hash(params)
        return TrialRecord(
            row=row,
            attempt=attempt,
            status=FAILED,
            params={key: encode(value) for key, value in params.items()},
            trial_id=trial_id(digest, place, self.shard_namespace),
            param_hash=digest,
            start=_now(),
            end="",
            duration=0.0,
            seed=None if self.base_seed is None else row_seed(self.base_seed, place),
        )


def _own(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except (TypeError, RecursionError, copy.Error):  # it holds something that cannot be copied, a module say
        return value


def run_trial(trials: Trials, begun: TrialRecord, store: Optional[ModelStore]) -> tuple[TrialRecord, Any]:
    """Run one row to its record; the model comes back too, for a caller that wants it in memory.

    Whatever the user's code raises is in the record; only where a person may press Ctrl-C (``interruptible``) does
    KeyboardInterrupt go through.
    """
    params = trials.params(begun.row)
    caught: list[dict[str, Any]] = []
    peak = PeakMemory()
    clock = time.perf_counter()
    model = None
    if trials.print_params:
        print(params, flush=True)  # noqa: T201 - Talos's own switch
    try:
        with trial_context(trials.folder, begun, params):
            outcome = _call(trials, params, begun.seed, caught)
        duration = time.perf_counter() - clock
        model = outcome.model
        descriptor = store.offer(begun.row, outcome.metrics, model) if store is not None else None
        result: dict[str, Any] = {
            "status": COMPLETED,
            "metrics": outcome.metrics,
            "history": outcome.history,
            "backend": outcome.backend,
            "model": descriptor,
        }
    except BaseException as error:  # SystemExit and the rest cost one trial, not the worker
        if isinstance(error, KeyboardInterrupt) and trials.interruptible:
            raise
        duration = time.perf_counter() - clock
        result = _failure(error)
    finally:
        _clean(trials, model)
    values = {**vars(begun), **result, "end": _now(), "duration": duration}
    values.update(warnings=caught, changed_params=_changed(begun.params, params), **peak.read())
    return TrialRecord(**values), model


def _changed(asked: dict[str, Any], params: dict[Any, Any]) -> Optional[dict[str, Any]]:
    """Give the parameters after the trial, encoded, if the model changed its dictionary; None if not, or past telling."""
    try:
        after = {str(key): encode(value) for key, value in params.items()}
        return after if json.dumps(after, sort_keys=True) != json.dumps(asked, sort_keys=True) else None
    except (TypeError, ValueError, RecursionError):  # it put something in that has no end or no name
        return None


def _call(trials: Trials, params: dict[str, Any], seed: Optional[int], caught: list[dict[str, Any]]) -> Outcome:
    _clear_backend_state(trials)
    if seed is not None:
        seed_everything(seed)
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def note(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
            caught.append(
                {"message": str(message), "category": category.__name__, "filename": filename, "line": lineno}
            )
            shown(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        output = trials.model(*trials.data, params)
    return read_outcome(output)


def _failure(error: BaseException) -> dict[str, Any]:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    said = str(error).strip().splitlines()
    summary = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
    return {
        "status": FAILED,
        "cause": _cause(error),
        "error": summary if not isinstance(error, ContractError) else str(error),
        "contract_error": isinstance(error, ContractError),
        "traceback": text,
    }


def _cause(error: BaseException) -> str:
    """Name the cause by the exception's type and, for shared memory, by what the operating system said."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OutOfMemoryError" in names:
        return "gpu-oom"
    if "ResourceExhaustedError" in names:
        return "gpu-oom" if "GPU" in str(error) else "host-oom"
    if isinstance(error, MemoryError):
        return "host-oom"
    if "shared memory" in str(error) or "/dev/shm" in str(error):  # noqa: S108 - a name to look for
        return "shm"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and shm_is_full():
        return "shm"
    return "exception"


def _clear_backend_state(trials: Trials) -> None:
    # Keras counts names and keeps a seed generator between models; a row must not depend on the rows before it.
    keras = sys.modules.get("keras")
    if trials.clear_session and keras is not None and hasattr(keras, "backend"):
        keras.backend.clear_session()


def _clean(trials: Trials, model: Any) -> None:
    if model is None or not trials.clear_session:
        return
    _clear_backend_state(trials)
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat()
