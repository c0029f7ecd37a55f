"""One stage's rows, however its workers end and whoever takes work from whom: none is lost and none counts twice."""

from __future__ import annotations

import random

import pytest
from makers import plan, record

from orchestrator.coordinator.stage import Stage
from orchestrator.records import spool
from orchestrator.records.layout import SweepDir
from orchestrator.records.spool import Chunk
from orchestrator.records.trial_log import TrialLog, read_log


@pytest.fixture
def stage(tmp_path):
    def make(rows, workers):
        made = Stage(plan=plan(rows), folder=SweepDir(str(tmp_path)), workers=list(range(workers)))
        made.deal(made.missing())
        return made

    return make


def rows_in(folder):
    return [row for chunk in spool.waiting(folder) for row in range(chunk.first, chunk.last + 1)]


def everywhere(stage):
    return [row for worker in stage.folder.workers() for place in ("queue", "active", "left")
            for row in rows_in(getattr(stage.of(worker), place))]  # fmt: skip


def run_row(stage, worker, row, **values):
    log = TrialLog(stage.of(worker).trials)
    log.append(record(row, worker=worker, **values))
    log.close()


class TestDeal:
    @pytest.mark.parametrize(("rows", "workers"), [(1, 1), (7, 3), (3, 3), (100, 8), (2, 5)])
    def test_every_row_waits_once(self, stage, rows, workers):
        assert sorted(everywhere(stage(rows, workers))) == list(range(rows))

    def test_every_worker_has_its_folders(self, stage, tmp_path):
        stage(1, 3)
        assert all((tmp_path / "workers" / f"{number:02d}" / "scan-01" / "queue").is_dir() for number in range(3))


class TestReadNew:
    def test_yields_each_record_once(self, stage):
        made = stage(4, 2)
        run_row(made, 0, 0)
        run_row(made, 1, 1, status="failed", cause="exception")
        assert [each.row for each in made.read_new()] == [0, 1]
        assert list(made.read_new()) == []
        assert (made.completed, len(made.records), made.finished) == (1, 2, False)
        assert (made.tallies[0].done, made.tallies[1].failed) == (1, 1)

    def test_a_second_record_of_a_row_does_not_count(self, stage):
        made = stage(2, 2)
        run_row(made, 0, 0)
        list(made.read_new())
        run_row(made, 1, 0)
        assert list(made.read_new()) == []
        assert made.records[0].worker == 0

    def test_a_row_that_was_not_planned_does_not_count(self, stage):
        made = stage(1, 1)
        run_row(made, 0, 5)
        assert list(made.read_new()) == []
        assert not made.finished


class TestBalance:
    def test_gives_an_idle_worker_the_last_chunk_of_the_busiest(self, stage):
        made = stage(100, 2)
        for chunk in spool.waiting(made.of(1).queue):
            spool.finish(made.of(1).queue, chunk)
        before = spool.waiting(made.of(0).queue)
        made.balance()
        assert spool.waiting(made.of(1).queue) == [before[-1]]
        assert spool.waiting(made.of(0).queue) == before[:-1]

    def test_cuts_the_only_chunk_in_two(self, stage, tmp_path):
        made = stage(1, 2)
        spool.finish(made.of(0).queue, Chunk(0, 0))
        spool.put(made.of(0).queue, Chunk(0, 9))
        made.balance()
        assert spool.waiting(made.of(0).queue) == [Chunk(0, 4)]
        assert spool.waiting(made.of(1).queue) == [Chunk(5, 9)]
        assert rows_in(str(tmp_path / "moving")) == []

    def test_leaves_a_busy_worker_the_chunk_that_it_can_soon_start(self, stage):
        made = stage(1, 2)
        spool.put(made.of(1).active, Chunk(5, 6))
        made.balance()
        assert spool.waiting(made.of(0).queue) == [Chunk(0, 0)]

    def test_takes_nothing_where_nothing_waits(self, stage):
        made = stage(2, 2)
        for worker in (0, 1):
            assert spool.claim(made.of(worker).queue, made.of(worker).active)
        made.balance()
        assert sorted(everywhere(made)) == [0, 1]


class TestRescue:
    def test_gives_heirs_all_that_was_not_recorded(self, stage):
        made = stage(40, 3)
        chunk = spool.claim(made.of(0).queue, made.of(0).active)
        run_row(made, 0, chunk.first)
        list(made.read_new())
        assert made.rescue(0, [1, 2], "killed", "signal") is None
        assert rows_in(made.of(0).queue) == rows_in(made.of(0).active) == []
        assert sorted(everywhere(made)) == list(range(1, 40))

    def test_raises_the_attempt_of_the_row_that_was_running_alone(self, stage):
        made = stage(40, 2)
        chunk = spool.claim(made.of(0).queue, made.of(0).active)
        run_row(made, 0, chunk.first)
        list(made.read_new())
        made.rescue(0, [1], "killed", "signal")
        again = [each for each in spool.waiting(made.of(1).queue) if each.attempt == 2]
        assert again == [Chunk(chunk.first + 1, chunk.first + 1, 2)]

    def test_without_heirs_keeps_the_rows_for_a_replacement(self, stage):
        made = stage(10, 1)
        spool.claim(made.of(0).queue, made.of(0).active)
        made.rescue(0, [], "killed", "signal")
        assert rows_in(made.of(0).active) == []
        assert sorted(rows_in(made.of(0).queue)) == list(range(10))

    def test_gives_a_row_up_that_took_its_container_too_often(self, stage):
        made = stage(2, 2)
        assert spool.claim(made.of(0).queue, made.of(0).active) == Chunk(0, 0)
        assert made.rescue(0, [1], "worker 0: killed", "host-oom") is None
        assert spool.move(made.of(1).queue, made.of(1).active, Chunk(0, 0, 2))
        lost = made.rescue(1, [0], "worker 1: killed", "host-oom")
        assert (lost.row, lost.attempt, lost.status, lost.error) == (0, 2, "lost", "worker 1: killed")
        assert read_log(made.of(1).trials) == [lost]
        assert rows_in(made.of(0).queue) == [1]

    def test_a_row_that_failed_before_is_not_given_up_at_its_first_death(self, stage):
        made = stage(1, 2)
        spool.finish(made.of(0).queue, Chunk(0, 0))
        spool.put(made.of(0).active, Chunk(0, 0, 3))
        assert made.rescue(0, [1], "killed", "signal") is None
        assert spool.waiting(made.of(1).queue) == [Chunk(0, 0, 4)]

    def test_a_worker_that_ended_by_itself_counts_against_no_row(self, stage):
        made = stage(1, 2)
        chunk = spool.claim(made.of(0).queue, made.of(0).active)
        for worker in (0, 1, 0):
            assert made.rescue(worker, [1 - worker], "fresh", "unknown", killed=False) is None
            assert spool.move(made.of(1 - worker).queue, made.of(1 - worker).active, chunk)

    def test_of_a_worker_that_held_nothing_moves_nothing(self, stage):
        made = stage(4, 2)
        made.rescue(0, [1], "killed", "signal")
        before = sorted(everywhere(made))
        assert made.rescue(0, [1], "killed", "signal") is None
        assert sorted(everywhere(made)) == before


def test_what_is_set_aside_waits_no_more(stage):
    made = stage(20, 2)
    chunk = spool.claim(made.of(0).queue, made.of(0).active)
    made.set_aside()
    assert spool.waiting(made.of(0).queue) == spool.waiting(made.of(1).queue) == []
    assert spool.waiting(made.of(0).active) == [chunk]
    assert sorted(everywhere(made)) == list(range(20))


def test_what_a_worker_holds_is_counted_without_what_it_has_done(stage):
    made = stage(16, 1)
    spool.claim(made.of(0).queue, made.of(0).active)
    assert (made.rows_left(0), made.current_row(0)) == (16, 0)
    run_row(made, 0, 0)
    list(made.read_new())
    assert (made.rows_left(0), made.current_row(0)) == (15, 1)
    assert made.current_row(1) is None


class Play:
    """Workers, deaths and a coordinator, one random step at a time."""

    def __init__(self, stage, seed):
        self.stage, self.random = stage, random.Random(seed)  # noqa: S311 - a play
        self.alive = list(stage.workers)
        self.ran = []
        self.lost = []

    def work(self):
        """One worker claims, runs one row, or ends its chunk, as a supervisor does."""
        if not self.alive:
            return
        worker = self.random.choice(self.alive)
        place = self.stage.of(worker)
        done = {each.row for each in read_log(place.trials)}
        in_hand = spool.waiting(place.active)
        chunk = in_hand[0] if in_hand else spool.claim(place.queue, place.active)
        if chunk is None:
            return
        row = next((row for row in range(chunk.first, chunk.last + 1) if row not in done), None)
        if row is None:
            spool.finish(place.active, chunk)
        else:
            run_row(self.stage, worker, row, attempt=chunk.attempt)
            self.ran.append(row)

    def look(self):
        list(self.stage.read_new())

    def balance(self):
        self.stage.balance()

    def die(self):
        """A worker's container ends; the coordinator sees it and may start it again."""
        if not self.alive:
            return
        worker = self.random.choice(self.alive)
        self.alive.remove(worker)
        self.look()
        heirs = [each for each in self.stage.workers if each in self.alive]
        self.stage.workers = heirs
        lost = self.stage.rescue(worker, heirs, "killed", "signal")
        if lost is not None:
            self.lost.append(lost.row)
        if not heirs or self.random.random() < 0.5:
            self.alive.append(worker)
            self.stage.workers = sorted([*heirs, worker])

    def play(self, steps):
        moves = [self.work] * 8 + [self.look, self.balance, self.balance, self.die]
        for _ in range(steps):
            self.random.choice(moves)()
        for _ in range(2000):
            if self.stage.finished:
                return
            self.work()
            self.look()
            self.balance()


@pytest.mark.parametrize("seed", range(25))
def test_no_row_is_lost_or_run_twice_whatever_happens(stage, seed):
    rows = [1, 2, 5, 17, 40][seed % 5]
    play = Play(stage(rows, 1 + seed % 4), seed)
    play.play(60)
    assert play.stage.finished
    assert sorted(play.stage.records) == list(range(rows))
    assert sorted(play.ran + play.lost) == list(range(rows))
    written = [each.row for worker in play.stage.folder.workers() for each in read_log(play.stage.of(worker).trials)]
    assert sorted(written) == list(range(rows))
    assert play.stage.completed == len(play.ran)
