"""Which of the three in-container programs to be."""

from __future__ import annotations

import os
import sys

from orchestrator.records.atomic import read_json
from orchestrator.schema import Job


def main(arguments: list[str]) -> int:
    """Run ``supervise JOB``, ``drive JOB`` or ``trial JOB READ_FD WRITE_FD STAGE``; the process's exit status."""
    verb, path = arguments[0], arguments[1]
    job = Job.from_json(read_json(path), path)
    if verb == "supervise":
        from orchestrator.worker.supervisor import Supervisor

        return Supervisor(job).run()
    if verb == "drive":
        from orchestrator.worker.drive import drive

        return drive(job)
    from orchestrator.worker.trial_process import run_script

    sys.path.pop(0)
    read, write, stage = (int(argument) for argument in arguments[2:5])
    if not os.path.exists(job.script):
        sys.stderr.write(f"talos-orch: {job.script} is not in the container\n")
        return 2
    return run_script(job, read, write, stage)
