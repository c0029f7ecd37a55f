"""Kept models: which rows' models stay on disk, how they are written, how they come back.

Files are written and read only inside containers (or by the user's own process), never unpickled on the host.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pickle
import types
import warnings
import zipfile
from dataclasses import dataclass
from typing import Any, Optional

from orchestrator.errors import InputError
from orchestrator.scan.objective import rank_key
from orchestrator.scan.outcome import backend_of

WHOLE = ".module.pt"


@dataclass(frozen=True)
class KeepPolicy:
    """``best`` keeps the ``count`` best rows by *each* metric, so that any ``best_model(metric)`` finds its model."""

    kind: str  # best | all | none
    count: int = 10

    @classmethod
    def parse(cls, text: str) -> KeepPolicy:
        """Read ``best``, ``best:N``, ``all`` or ``none``; InputError otherwise."""
        kind, _, count = text.partition(":")
        if kind in ("all", "none") and not count:
            return cls(kind)
        if kind == "best" and (not count or (count.isdigit() and int(count) > 0)):
            return cls(kind, int(count or 10))
        raise InputError(f"--keep-models {text!r}: give best, best:N, all or none")


class KeptRows:
    """The rows whose models are worth keeping, as results come in; the same rule in a worker and in the merge."""

    def __init__(self, policy: KeepPolicy) -> None:
        self.policy = policy
        self._best: dict[str, list[tuple[float, int]]] = {}
        self._all: set[int] = set()

    def offer(self, row: int, metrics: dict[str, Any]) -> tuple[bool, set[int]]:
        """Consider a row: (is it kept, the rows that are no longer)."""
        if self.policy.kind == "none":
            return False, set()
        if self.policy.kind == "all":
            self._all.add(row)
            return True, set()
        before = self.rows()
        for metric, value in metrics.items():
            best = self._best.setdefault(metric, [])
            best.append((rank_key(metric, value), row))
            best.sort()
            del best[self.policy.count :]
        after = self.rows()
        return row in after, before - after

    def rows(self) -> set[int]:
        """List the rows kept now."""
        return self._all | {row for best in self._best.values() for _, row in best}


class ModelStore:
    """The models folder of one worker's stage."""

    def __init__(self, folder: str, policy: KeepPolicy) -> None:
        self.folder = folder
        self._kept = KeptRows(policy)
        self._files: dict[int, list[str]] = {}

    def remember(self, row: int, metrics: dict[str, Any], descriptor: Optional[dict[str, Any]]) -> None:
        """Take note of a row that an earlier process of this worker recorded."""
        self._settle(row, metrics)
        if descriptor is not None:
            self._files[row] = model_files(descriptor)

    def offer(self, row: int, metrics: dict[str, Any], model: Any) -> Optional[dict[str, Any]]:
        """Write the model if its row is among the best so far; the descriptor of what was written, or None."""
        if model is None or not self._settle(row, metrics):
            return None
        os.makedirs(self.folder, exist_ok=True)
        try:
            descriptor = save_model(model, os.path.join(self.folder, str(row)))
        except Exception as error:  # noqa: BLE001 - the result counts more than the file; the row can be trained again
            warnings.warn(f"the model of row {row} could not be saved: {type(error).__name__}: {error}", stacklevel=2)
            return None
        self._files[row] = model_files(descriptor)
        return descriptor

    def _settle(self, row: int, metrics: dict[str, Any]) -> bool:
        kept, gone = self._kept.offer(row, metrics)
        for old in gone:
            for name in self._files.pop(old, []):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.folder, name))
        return kept


def save_model(model: Any, stem: str) -> dict[str, Any]:
    """Write one model in its framework's own format; ``stem`` is the path without suffix.

    The descriptor is Talos's own, ``path`` relative to the stage folder: ``models/<row>.<suffix>``. A Torch module is
    written twice, its weights as Talos does and, where it can be pickled, ``whole``.
    """
    backend = backend_of(model)
    folder = "models/"
    if backend in ("keras", "tensorflow") and hasattr(model, "save"):
        model.save(stem + ".keras")
        return {"backend": backend, "format": "keras", "path": folder + os.path.basename(stem) + ".keras"}
    if backend == "torch":
        return {"backend": backend, **_save_torch(model, stem, folder)}
    with open(stem + ".pkl", "wb") as stream:
        pickle.dump(model, stream)
    return {"backend": "generic", "format": "pickle", "path": folder + os.path.basename(stem) + ".pkl"}


def _save_torch(model: Any, stem: str, folder: str) -> dict[str, Any]:
    import torch

    name = os.path.basename(stem)
    torch.save({key: _on_cpu(value) for key, value in model.state_dict().items()}, stem + ".pt")
    whole: Optional[str] = folder + name + WHOLE
    try:
        torch.save(model, stem + WHOLE)
    except (pickle.PicklingError, AttributeError, TypeError):  # its class is local to a function
        whole = None
        with contextlib.suppress(OSError):
            os.unlink(stem + WHOLE)
    factory = _importable(type(model))
    return {
        "format": "torch_state_dict",
        "path": folder + name + ".pt",
        "whole": whole,
        "factory": factory,
        "factory_source": None,
        "config": {},
        "factory_required": factory is None,
    }


def _on_cpu(value: Any) -> Any:
    return value.detach().cpu() if hasattr(value, "detach") else value


def _importable(cls: type) -> Optional[str]:
    """Name a class that anybody can import and call without arguments; None for any other."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return None
    try:
        inspect.signature(cls).bind()
    except (TypeError, ValueError):
        return None
    return f"{cls.__module__}:{cls.__qualname__}"


def model_files(descriptor: dict[str, Any]) -> list[str]:
    """Name the files of a kept model, without folder."""
    paths = (descriptor.get("path"), descriptor.get("whole"))
    return [os.path.basename(str(path)) for path in paths if path]


def load_model(
    descriptor: dict[str, Any],
    stage_folder: str,
    custom_objects: Optional[dict[str, Any]] = None,
    history: Optional[dict[str, Any]] = None,
) -> Any:
    """Bring a kept model back; LookupError when the file alone does not give the whole of it (a local class, say).

    ``custom_objects`` are the names that Keras may meet in it, ``history`` what it has as ``model.history.history``.
    """
    path = os.path.join(stage_folder, descriptor["path"])
    form = descriptor["format"]
    if form == "keras":
        return _load_keras(path, custom_objects or {}, history or {})
    if form == "torch_state_dict":
        return _load_torch(descriptor, stage_folder)
    if form == "pickle":
        with open(path, "rb") as stream:
            return pickle.load(stream)  # noqa: S301 - written by this sweep's own worker, read in its driver container
    raise LookupError(path)


def _load_torch(descriptor: dict[str, Any], stage_folder: str) -> Any:
    if not descriptor.get("whole"):
        raise LookupError(descriptor["path"])
    import torch

    return torch.load(os.path.join(stage_folder, descriptor["whole"]), map_location="cpu", weights_only=False)


def _load_keras(path: str, custom_objects: dict[str, Any], history: dict[str, Any]) -> Any:
    import keras

    try:
        model = keras.models.load_model(path, custom_objects=custom_objects, safe_mode=False)
    except Exception:  # noqa: BLE001 - what it was compiled with may be local to a function, as Talos's own metrics are
        model = _load_uncompiled(keras, path, custom_objects)
    if not hasattr(model, "history"):
        model.history = types.SimpleNamespace(history=history, epoch=list(range(_epochs(history))))
    return model


def _load_uncompiled(keras: Any, path: str, custom_objects: dict[str, Any]) -> Any:
    """Load layers and weights, and compile anew with what of it can be; LookupError where not even those can be had."""
    try:
        model = keras.models.load_model(path, custom_objects=custom_objects, safe_mode=False, compile=False)
        with zipfile.ZipFile(path) as whole:
            how = json.loads(whole.read("config.json")).get("compile_config") or {}
    except Exception as error:  # a layer that is local to a function: only training it again gives it whole
        raise LookupError(path) from error
    metrics = [each for each in how.get("metrics") or [] if isinstance(each, str)]
    with contextlib.suppress(Exception):  # it predicts without, and that is what it is kept for
        known = {
            name: keras.saving.deserialize_keras_object(how[name]) for name in ("optimizer", "loss") if how.get(name)
        }
        model.compile(**known, metrics=metrics or None)
    return model


def _epochs(history: dict[str, Any]) -> int:
    return max((len(series) for series in history.values()), default=0)
