"""A genuine Talos 2 run directory out of merged records, so that everything of Talos that opens one opens ours.

``metadata.json``, ``checkpoint.json``, ``round_data.jsonl``, ``results.csv`` and ``models/``, in the form of Talos 2.0.10.
Needs no Talos and none of the user's code: the values in the records are encoded as Talos encodes them.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import Any, Optional

from orchestrator.records.atomic import write_text
from orchestrator.records.table import Table, Values, talos_table
from orchestrator.schema import COMPLETED, TrialRecord
from orchestrator.space import encode

_VERSION = "1.0"
_LONGEST_PART = 120


@dataclass(frozen=True)
class RunIdentity:
    """``name`` is the run folder's, ``<time>_<hash>``; ``space`` the encoded candidates of each key."""

    name: str
    experiment_name: str
    space: dict[str, list[Any]]
    seed: Optional[int]
    status: str
    objective: Optional[str] = None
    minimize: bool = False

    @property
    def digest(self) -> str:
        """A hash that tells this run from others."""
        told = [self.name, self.experiment_name, self.space, self.seed]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def candidates(description: list[Any], records: list[TrialRecord]) -> dict[str, list[Any]]:
    """List each key's values: the planned ones where they are plain, else those that were run, in order."""
    found: dict[str, list[Any]] = {}
    for entry in description:
        values = entry.get("values")
        if values is None or any(isinstance(value, dict) for value in values):
            seen = {json.dumps(value, sort_keys=True): value for value in _column(records, entry["key"])}
            values = list(seen.values())
        found[entry["key"]] = values
    return found


def _column(records: list[TrialRecord], key: str) -> list[Any]:
    return [record.params[key] for record in records if key in record.params]


def write_talos_run(path: str, identity: RunIdentity, records: list[TrialRecord], models: str, values: Values) -> None:
    """Write the run at ``path`` from the completed ``records`` in row order; ``models`` is the folder of kept models.

    ``values`` gives a record's parameters as they are to stand in ``results.csv``. OSError where the disk refuses.
    """
    completed = [record for record in records if record.status == COMPLETED]
    os.makedirs(path, exist_ok=True)
    table = talos_table(completed, values)
    artifacts = [_artifact(path, models, record) for record in completed]
    lines = (
        _dump(_round(identity, index, record, row, table, artifact))
        for index, (record, row, artifact) in enumerate(zip(completed, table.rows, artifacts))
    )
    write_text(os.path.join(path, "round_data.jsonl"), "".join(line + "\n" for line in lines))
    details = {
        "experiment_name": identity.experiment_name,
        "experiment_id": identity.name,
        "run_dir": path,
        "status": identity.status,
        "rounds": len(completed),
        "seed": identity.seed,
        "identity_hash": identity.digest,
    }
    write_text(os.path.join(path, "metadata.json"), _dump(_metadata(identity, table, details)) + "\n")
    state = {
        "metadata": {"experiment_round": len(completed) - 1, "content_hash": identity.digest},
        "execution_state": {"parameter_columns": table.parameter_columns, "details": details},
    }
    write_text(os.path.join(path, "checkpoint.json"), _dump(state) + "\n")
    if completed:
        write_text(os.path.join(path, "results.csv"), _csv(table))


def _metadata(identity: RunIdentity, table: Table, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema_version": _VERSION,
        "experiment_name": identity.experiment_name,
        "params": identity.space,
        "identity": {},
        "identity_hash": identity.digest,
        "environment": {},
        "objective": {"metric": identity.objective, "direction": "min" if identity.minimize else "max"},
        "yaml_reference": None,
        "sfd": {},
        "parameter_columns": table.parameter_columns,
        "determinism": {"seed": identity.seed, "backend_deterministic_ops": "caller-controlled"},
        "details": details,
    }


def _round(
    identity: RunIdentity, index: int, record: TrialRecord, row: dict[str, Any], table: Table, artifact: Any
) -> dict[str, Any]:
    params = record.changed_params if record.changed_params is not None else record.params
    columns = set(table.parameter_columns.values())
    plain = {name: encode(value) for name, value in row.items() if name not in columns}
    return {
        "schema_version": _VERSION,
        "experiment_id": identity.name,
        "manifest_id": None,
        "identity_hash": identity.digest,
        "round_index": index,
        "trial_id": record.trial_id,
        "row": {**plain, **{table.parameter_columns[key]: value for key, value in params.items()}},
        "params": params,
        "parameter_columns": table.parameter_columns,
        "history": encode(record.history),
        "warnings": record.warnings,
        "artifact": artifact,
        "split_identity": None,
        "artifact_policy": {"save_models": False, "save_weights": artifact is not None, "clear_session": True},
        "predictions": None,
        "backend": record.backend or "generic",
        "seed": record.seed,
        "status": "completed",
    }


def _artifact(path: str, models: str, record: TrialRecord) -> Optional[dict[str, Any]]:
    """Put the kept model into the run and give Talos's description of it; None where none was kept."""
    if record.model is None:
        return None
    name = os.path.basename(record.model["path"])
    source, target = os.path.join(models, name), os.path.join(path, "models", name)
    if os.path.abspath(source) != os.path.abspath(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:  # another file system
            shutil.copyfile(source, target, follow_symlinks=False)
    told = {key: value for key, value in record.model.items() if key != "whole"}
    return {**told, "path": f"models/{name}", "sha256": _sha256(target)}


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)


def _csv(table: Table) -> str:
    """Write the table as Talos does, line by line as rows end: a whole number in a column that has had a fraction gets a ``.0``.

    Where a row brings a new column everything so far is written anew.
    """
    kinds: dict[str, str] = {}
    shown: list[list[Any]] = []
    begun = 0
    for place, row in enumerate(table.rows):
        new = [name for name in table.columns if name in row and name not in kinds]
        for name in (*kinds, *new):
            kinds[name] = _kind(kinds.get(name, "float" if place else "int"), row.get(name))
        if new:
            begun, shown = 0, []
        for each in table.rows[begun : place + 1]:
            shown.append([_cell(each.get(name), kinds.get(name)) for name in table.columns])
        begun = place + 1
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(shown)
    return text.getvalue()


def _kind(before: str, value: Any) -> str:
    """Say what a column is that was ``before`` and now has ``value`` too, as pandas has it: int, float, or anything."""
    if before == "any" or isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
        return "any"
    return before if isinstance(value, int) else "float"


def _cell(value: Any, kind: Optional[str]) -> Any:
    # As pandas writes them: nothing for a missing value.
    if value is None or value != value:  # noqa: PLR0124 - NaN is the only value unlike itself
        return ""
    return float(value) if kind == "float" else value


def safe_experiment(name: str) -> str:
    r"""Give a relative folder for an experiment name, always below the working directory, whatever the name.

    ``a/b`` stays as it is; ``../up``, ``/abs`` and ``C:\x`` lose what would lead out; an empty one is ``experiment``.
    """
    # What stays inside is kept as it is meant: x/../y is y.
    plain = os.path.normpath(name) if name and not re.match(r"[/\\]|[A-Za-z]:", name) else name
    parts = [re.sub(r"[\x00-\x1f:*?\"<>|]", "_", part) for part in re.split(r"[/\\]+", plain)]
    kept = [part[:_LONGEST_PART] for part in parts if part not in ("", ".", "..")]
    return "/".join(kept) or "experiment"
