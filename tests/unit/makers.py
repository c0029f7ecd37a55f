"""Plain records and plans for tests, each with what a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from orchestrator.plan.containers import World
from orchestrator.schema import Share, StagePlan, SweepFile, TrialRecord

GIB = 1024**3


def record(row: int = 0, **values: Any) -> TrialRecord:
    given = {
        "attempt": 1, "status": "completed", "params": {"a": row}, "trial_id": f"t{row}", "param_hash": f"h{row}",
        "start": "2030-01-01T00:00:00+00:00", "end": "2030-01-01T00:00:01+00:00", "duration": 1.0, "worker": 0,
    }  # fmt: skip
    if values.get("status", "completed") == "completed":
        given.update(metrics={"loss": float(row)}, history={"loss": [float(row)]})
    return TrialRecord(row=row, **{**given, **values})


def plan(rows: int, stage: int = 1, **values: Any) -> StagePlan:
    given = {
        "experiment_name": "case", "keys": ["a"], "space": [{"key": "a", "size": rows}], "fingerprint": "f",
        "selection": {"kind": "all", "total": rows}, "base_seed": 17,
    }  # fmt: skip
    return StagePlan(stage=stage, rows=rows, **{**given, **values})


def share(worker: int = 0, **values: Any) -> Share:
    given = {"cpus": 2.0, "threads": 2, "memory": 2 * GIB, "shm": GIB // 2, "pids": 512}
    return Share(worker=worker, **{**given, **values})


def sweep_file(project: str, shares: list[Share] | None = None, **values: Any) -> SweepFile:
    shares = [share()] if shares is None else shares
    given = {
        "name": "case-1", "script": f"{project}/scan.py", "arguments": ["--fast"], "project": project, "workdir": project,
        "engine": "docker", "endpoint": "http+docker://localhost", "image": "talos-orch:cpu", "image_id": "sha256:abc",
        "workers": len(shares), "seed": 5, "keep_models": "best:10", "created": "20300101-000000", "version": "0.1.0",
        "uid": 1000, "gid": 1001, "shares": [each.to_json() for each in shares],
    }  # fmt: skip
    return SweepFile(**{**given, **values})


def world(**values: Any) -> World:
    given = {
        "package": "/opt/package/orchestrator", "python": "/usr/bin/python3", "isolated": True, "limits_enforced": True,
        "user_name": "ada", "timezone": "Europe/Berlin", "network": "bridge",
    }  # fmt: skip
    return World(**{**given, **values})
