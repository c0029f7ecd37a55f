"""One stage as the coordinator sees it: the rows recorded, the chunks everywhere, and moving work to idle workers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.errors import RecordError, StoppedError
from orchestrator.plan.shards import deal, halves, left_over, missing, take
from orchestrator.records import spool
from orchestrator.records.atomic import write_text
from orchestrator.records.layout import StageDir, SweepDir
from orchestrator.records.planned import planned_params
from orchestrator.records.spool import Chunk
from orchestrator.records.trial_log import TrialLog, TrialTail, outranks
from orchestrator.schema import COMPLETED, LOST, StagePlan, TrialRecord

# How often a row may take its container with it before it counts as lost.
MOST_DEATHS = 2
# After so many rows with one and the same error, and none without, the next ones would tell nothing new.
_ALIKE = 3


@dataclass(slots=True)
class Tally:
    """Rows recorded by one worker."""

    done: int = 0
    failed: int = 0


@dataclass
class Stage:
    """``records`` by row; ``workers`` are those that may be given work; ``held_back`` are rows not dealt yet, in row order.

    ``superseded`` are records of an earlier launch whose rows are to run again.
    """

    plan: StagePlan
    folder: SweepDir
    workers: list[int]
    records: dict[int, TrialRecord] = field(default_factory=dict)
    tallies: dict[int, Tally] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    completed: int = 0
    taken_over: bool = False
    superseded: dict[int, TrialRecord] = field(default_factory=dict)
    held_back: list[Chunk] = field(default_factory=list)
    _tails: dict[int, TrialTail] = field(default_factory=dict)
    _attempts: dict[int, int] = field(default_factory=dict)
    _deaths: Counter[int] = field(default_factory=Counter)

    def of(self, worker: int) -> StageDir:
        """Give a worker's folder of this stage."""
        return self.folder.worker(worker).stage(self.plan.stage)

    def take_over(self, *, redo: bool) -> list[TrialRecord]:
        """Read what earlier launches recorded; give it in the order in which it ended. Nothing, in a first launch.

        With ``redo`` rows that did not complete are to run again. Rows that nobody recorded, and that no living worker
        holds, are ``missing`` from here on.
        """
        for _ in self.read_new():  # of several records of a row the one that counts is kept
            continue
        self.taken_over = bool(self.records)
        if redo:
            self.superseded = {row: record for row, record in self.records.items() if record.status != COMPLETED}
            for row, record in self.superseded.items():
                self._attempts[row] = record.attempt + 1
                del self.records[row]
        return sorted(self.records.values(), key=lambda record: record.end)

    def standing(self) -> list[TrialRecord]:
        """Give the records that count now; of a row that was to run again and has not, the old one."""
        return list({**self.superseded, **self.records}.values())

    @property
    def redone(self) -> bool:
        """Say whether all rows that were to run again have."""
        return self.superseded.keys() <= self.records.keys()

    def missing(self) -> list[Chunk]:
        """Give the rows to deal: all but those recorded, taken away, or in a living worker's hands."""
        taken = [Chunk(row, row) for row in (*self.records, *self.dropped)]
        attempts = dict(self._attempts)
        for worker in self.folder.workers():
            place = self.of(worker)
            for path in (place.queue, place.active, place.left):
                for chunk in spool.waiting(path):
                    if worker in self.workers and path != place.left:
                        taken.append(chunk)
                        continue
                    if chunk.size == 1 and chunk.attempt > attempts.get(chunk.first, 1):
                        attempts[chunk.first] = chunk.attempt
                    spool.finish(path, chunk)
        for chunk in spool.waiting(self._aside):
            spool.finish(self._aside, chunk)
        return missing(self.plan.rows, taken, attempts)

    def deal(self, ranges: list[Chunk]) -> None:
        """Put rows into the queues, as chunks; with a reducer they are held back, to be released as it has looked."""
        for worker in self.workers:
            for path in (self.of(worker).queue, self.of(worker).active):
                os.makedirs(path, exist_ok=True)
        if self.plan.reduction_interval is None:
            self._hand_out(ranges)
        else:
            self.held_back = ranges

    def release(self, rows: int) -> None:
        """Deal the next rows of those that are held back."""
        first, self.held_back = take(self.held_back, rows)
        self._hand_out(first)

    def _hand_out(self, ranges: list[Chunk]) -> None:
        for worker, hand in zip(self.workers, deal(ranges, len(self.workers)), strict=True):
            for chunk in hand:
                spool.put(self.of(worker).queue, chunk)

    @property
    def settled(self) -> bool:
        """Say whether every row that was dealt is recorded."""
        waiting = sum(chunk.size for chunk in self.held_back)
        return len(self.records) + len(self.dropped) + waiting >= self.plan.rows

    def counts(self) -> Counter[str]:
        """Count ``rows``, and what is recorded by status."""
        found = Counter(record.status for record in self.standing())
        found["rows"] = self.plan.rows
        return found

    @property
    def finished(self) -> bool:
        """Say whether every row is recorded, or was taken away by a reducer."""
        return len(self.records) + len(self.dropped) >= self.plan.rows

    def halt(self) -> None:
        """Have no other row begun; rows in hand finish."""
        for worker in self.folder.workers():
            os.makedirs(self.of(worker).path, exist_ok=True)
            write_text(self.of(worker).halt, "")
        self.set_aside()

    @property
    def quiet(self) -> bool:
        """Say whether nobody has a row in hand."""
        return not any(spool.waiting(self.of(worker).active) for worker in self.workers)

    def drop(self, rows: set[int]) -> None:
        """Take rows away from those that are held back; others stay."""
        kept: list[Chunk] = []
        for chunk in self.held_back:
            named = {row for row in rows if chunk.first <= row <= chunk.last}
            self.dropped |= named
            kept += left_over(chunk, named, tried=None) if named else [chunk]
        self.held_back = kept

    def leave_out(self, rows: set[int]) -> None:
        """Count rows as taken away that are neither recorded nor in anybody's hands, before they are dealt."""
        held = [chunk for worker in self.workers for chunk in spool.waiting(self.of(worker).active)]
        self.dropped |= {
            row for row in rows - set(self.records) if not any(chunk.first <= row <= chunk.last for chunk in held)
        }

    def _refuse_links(self, worker: int) -> None:
        """Raise RecordError where user code has put a link in the place of a folder that we write to."""
        place = self.of(worker)
        for path in (place.path, place.queue, place.active, place.left):
            if os.path.islink(path):
                raise RecordError(f"{path}: the script has replaced this folder by a link; it is not followed")

    def read_new(self) -> Iterator[TrialRecord]:
        """Yield the records written since the last look, of all workers that ever had rows."""
        for worker in self.folder.workers():
            self._refuse_links(worker)
            tail = self._tails.setdefault(worker, TrialTail(self.of(worker).trials))
            for record in tail.read():
                if record.row >= self.plan.rows or record.attempt < self._attempts.get(record.row, 1):
                    continue
                before = self.records.get(record.row)
                if before is not None and not outranks(record, before):
                    continue
                self.records[record.row] = record
                tally = self.tallies.setdefault(worker, Tally())
                tally.done += record.status == COMPLETED
                tally.failed += record.status != COMPLETED
                self.completed += record.status == COMPLETED
                self.completed -= before is not None and before.status == COMPLETED
                yield record

    def check_alike(self) -> None:
        """Raise StoppedError when the first rows have all failed with one and the same error, and rows are left."""
        enough = max(_ALIKE, len(self.workers))
        if self.completed or len(self.records) < enough or self.finished:
            return
        errors = {(record.cause, record.error) for record in self.records.values()}
        if len(errors) == 1:
            ((_, error),) = errors
            raise StoppedError(
                f"the first {len(self.records)} of {self.plan.rows} rows all failed alike: {error}; "
                "correct the script, or go on all the same with --keep-going"
            )

    # -- moving work ---------------------------------------------------------------------------------------------

    def balance(self) -> None:
        """Give every idle worker the last waiting chunk of the worker with most rows waiting."""
        queues = {worker: spool.waiting(self.of(worker).queue) for worker in self.workers}
        for worker, queue in queues.items():
            if queue:
                continue
            idle = not spool.waiting(self.of(worker).active)
            victim = max(queues, key=lambda other: sum(chunk.size for chunk in queues[other]))
            waiting = queues[victim]
            # A busy worker takes only from one that could not start the chunk soon itself.
            if not waiting or victim == worker or (not idle and len(waiting) < 2):
                continue
            chunk = waiting.pop()
            if chunk.size > 1 and not waiting:
                self._take_half(victim, worker, chunk)
            else:
                spool.move(self.of(victim).queue, self.of(worker).queue, chunk)

    def _take_half(self, victim: int, thief: int, chunk: Chunk) -> None:
        aside = self._aside
        if spool.move(self.of(victim).queue, aside, chunk):
            first, second = halves(chunk)
            spool.put(self.of(victim).queue, first)
            spool.put(self.of(thief).queue, second)
            spool.finish(aside, chunk)

    def rescue(
        self, worker: int, heirs: list[int], error: str, cause: str, *, killed: bool = True
    ) -> TrialRecord | None:
        """Deal what a dead worker held to ``heirs``; a row that took its container too often is recorded as lost.

        One that ended by itself (not ``killed``) had no row running: nothing is counted against the one it held.

        Returns that record, if any. Without heirs the chunks stay where they are, for a replacement.
        """
        place = self.of(worker)
        recorded = frozenset(self.records)
        lost = None
        rest: list[Chunk] = []
        for chunk in spool.waiting(place.active):
            # Rows of a chunk run in order, so the first one without a record was running.
            running = next((row for row in range(chunk.first, chunk.last + 1) if row not in recorded), None)
            running = running if killed else None
            if running is not None:
                self._deaths[running] += 1
            if running is not None and self._deaths[running] >= MOST_DEATHS:
                lost = self._record_lost(worker, running, chunk.attempt, error, cause)
                recorded |= {running}
                running = None
            rest += left_over(chunk, recorded, tried=running)
            spool.finish(place.active, chunk)
        targets = heirs or [worker]
        for number, chunk in enumerate(rest):
            spool.put(self.of(targets[number % len(targets)]).queue, chunk)
        if heirs:
            for number, chunk in enumerate(spool.waiting(place.queue)):
                spool.move(place.queue, self.of(heirs[number % len(heirs)]).queue, chunk)
        return lost

    def _record_lost(self, worker: int, row: int, attempt: int, error: str, cause: str) -> TrialRecord:
        params = planned_params(self.plan, row)
        record = TrialRecord(
            row=row, attempt=attempt, status=LOST, params=params, trial_id="", param_hash="", start="", end="",
            duration=0.0, worker=worker, cause=cause, error=error,
        )  # fmt: skip
        log = TrialLog(self.of(worker).trials)
        log.append(record)
        log.close()
        return record

    @property
    def _aside(self) -> str:
        path = os.path.join(self.folder.path, "moving")
        os.makedirs(path, exist_ok=True)
        return path

    def set_aside(self, *, but_redone: bool = False) -> None:
        """Take every waiting chunk out of the queues, for a later resume; perhaps but those of rows that are to run again."""
        for worker in self.folder.workers():
            place = self.of(worker)
            for chunk in spool.waiting(place.queue):
                if not (but_redone and chunk.size == 1 and chunk.first in self.superseded):
                    spool.move(place.queue, place.left, chunk)

    def rows_left(self, worker: int) -> int:
        """Count the rows that a worker still holds."""
        place = self.of(worker)
        held = [*spool.waiting(place.queue), *spool.waiting(place.active)]
        return sum(chunk.size for chunk in held) - sum(
            row in self.records for chunk in spool.waiting(place.active) for row in _few(chunk)
        )

    def current_row(self, worker: int) -> int | None:
        """Give the row that a worker is running, as far as its files say."""
        for chunk in spool.waiting(self.of(worker).active):
            return next((row for row in range(chunk.first, chunk.last + 1) if row not in self.records), None)
        return None


def _few(chunk: Chunk) -> range:
    # Only for the eye: a chunk of millions of rows is not counted through at every tick.
    return range(chunk.first, min(chunk.last, chunk.first + 10_000) + 1)
