"""What ends a running stage early or takes rows out of it: a target, a time limit, a reducer."""

from __future__ import annotations

import datetime
import json
import os

from orchestrator.coordinator.stage import Stage
from orchestrator.errors import InputError
from orchestrator.records.atomic import read_json, write_json, write_text
from orchestrator.records.trial_log import read_log
from orchestrator.scan.rules import EVERY_ROW, Target
from orchestrator.schema import TrialRecord


class StageLimits:
    """Watches one stage. ``ending`` is (status, reason) once something has ended it, None before."""

    def __init__(self, stage: Stage) -> None:
        plan = stage.plan
        self._stage = stage
        self._target = Target.read(plan.target)
        self._deadline = plan.deadline
        self._interval = plan.reduction_interval
        self._place = stage.folder.driver.stage(plan.stage)
        self._looks = 0
        self._waiting = False
        self._unseen: list[TrialRecord] = []
        self._dropped: set[int] = set()
        self.ending: tuple[str, str] | None = None

    def catch_up(self, records: list[TrialRecord], wall: str) -> None:
        """Take over a stage that an earlier launch left: its records so far, and what reducers have said of them."""
        seen: set[int] = set()
        while os.path.exists(self._place.reduction(self._looks + 1, "request.json")):
            self._looks += 1
            seen |= {record.row for record in read_log(self._place.reduction(self._looks, "records.jsonl"))}
            self._waiting = True
            self._read_answer()
        self._stage.leave_out(self._dropped)
        for record in records:
            self.heed(record)
        if records and self.ending is None and self._is_late(wall):
            self._end("paused", "time_limit reached")
        self._unseen = [record for record in self._unseen if record.row not in seen]

    def heed(self, record: TrialRecord) -> None:
        """Take note of a record; a target on a metric that there is not refuses the stage."""
        if self._interval is not None:
            self._unseen.append(record)
        if self.ending is not None or self._target is None:
            return
        try:
            if self._target.is_reached(record):
                self._end("complete", f"{self._target.describe()} reached by row {record.row}")
        except InputError as error:
            self.refuse(str(error))

    def refuse(self, reason: str) -> None:
        """End the stage as one that cannot be: the driver's Scan raises ``reason``, and the script may go on from there."""
        if self.ending is None:
            self._end("refused", reason)

    def look(self, wall: str) -> None:
        """Do what is due: end at the deadline, ask the driver's reducer, take away the rows that it names."""
        if self.ending is not None:
            return
        if self._is_late(wall):
            self._end("paused", "time_limit reached")
        elif self._waiting:
            self._read_answer()
        elif self._interval is not None and self._stage.held_back and self._stage.settled:
            self._let_go_on(self._interval)

    def _is_late(self, wall: str) -> bool:
        return self._deadline is not None and datetime.datetime.fromisoformat(wall).timestamp() >= self._deadline

    @property
    def ended(self) -> bool:
        """Say whether the stage can be closed: something has ended it, and rows that were to run again have."""
        if self.ending is None or not self._stage.quiet:
            return False
        return self.ending[0] == "refused" or self._stage.redone

    def _end(self, status: str, reason: str) -> None:
        self.ending = (status, reason)
        if status == "refused" or self._stage.redone:
            self._stage.halt()
        else:
            self._stage.set_aside(but_redone=True)

    def _let_go_on(self, interval: int) -> None:
        """Release rows up to the next look, or look: after so many rows as in Talos, so that it sees the rows Talos sees."""
        if interval == EVERY_ROW:
            missing = 0 if self._unseen else len(self._stage.workers)
        else:
            missing = interval * (self._looks + 1) - len(self._stage.records)
        if missing > 0:
            self._stage.release(missing)
        else:
            self._ask()

    def _ask(self) -> None:
        self._looks += 1
        lines = (json.dumps(record.to_json(), ensure_ascii=False) + "\n" for record in self._unseen)
        write_text(self._place.reduction(self._looks, "records.jsonl"), "".join(lines))
        write_json(self._place.reduction(self._looks, "request.json"), {"schema": 1, "rows": len(self._stage.records)})
        self._unseen, self._waiting = [], True

    def _read_answer(self) -> None:
        path = self._place.reduction(self._looks, "answer.json")
        if not os.path.exists(path):
            return
        answer = read_json(path)
        self._waiting = False
        if "error" in answer:
            self.refuse(str(answer["error"]))
            return
        removed = {int(row) for row in answer.get("removed", [])} - self._dropped
        self._dropped |= removed
        self._stage.drop(removed)
