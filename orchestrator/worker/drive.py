"""The driver container's first process: runs the script once in a child and keeps its output."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Optional

from orchestrator.records.atomic import write_json
from orchestrator.records.layout import RunDir
from orchestrator.schema import Job
from orchestrator.worker.child import Child, LogFile
from orchestrator.worker.environment import prepare
from orchestrator.worker.evidence import explain, oom_kills


def drive(job: Job) -> int:
    """Run the script; 0 when it ended well. How it ended is in ``ended.json``, by the child or, if it died, by us."""
    prepare(job)
    run = RunDir(job.run)
    log = LogFile(run.log)
    before = oom_kills()
    child = Child(run.job, 1, [log, LogFile(run.out)], [log, LogFile(run.err)], talk=False)

    def pass_on(number: int, _: Optional[FrameType]) -> None:
        child.signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, pass_on)
    status = child.wait()
    if not os.path.exists(run.ended):
        limit = (job.share or {}).get("memory")
        if status == 0:  # it left by os._exit, with everything done as far as it is concerned
            write_json(run.ended, {"kind": "ok", "message": "", "status": 0, "scans": len(run.stages())})
            return 0
        death = explain(status, before, oom_kills(), limit)
        text = death.text.replace("trial process", "script").replace(", in the middle of a trial", "")
        write_json(run.ended, {"kind": "died", "message": text, "status": 1, "scans": len(run.stages())})
    return 0 if status == 0 else 1
