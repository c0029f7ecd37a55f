"""What a resume takes over from the files of an earlier launch."""

from __future__ import annotations

import json
import os

import pytest
from makers import plan, record

from orchestrator.config import Settings, restore_settings, stored_settings
from orchestrator.coordinator.limits import StageLimits
from orchestrator.coordinator.opening import open_stage
from orchestrator.coordinator.stage import Stage
from orchestrator.errors import SettingsError
from orchestrator.records import spool
from orchestrator.records.atomic import write_json, write_text
from orchestrator.records.layout import SweepDir, free_name
from orchestrator.records.spool import Chunk
from orchestrator.records.trial_log import TrialLog, outranks, read_log
from orchestrator.results.merge import collect


def write_rows(folder, worker, *records):
    log = TrialLog(folder.worker(worker).stage(1).trials)
    for each in records:
        log.append(each)
    log.close()


NOW = "2030-01-01T00:00:00+00:00"


def rows_of(chunks):
    return [row for chunk in chunks for row in range(chunk.first, chunk.last + 1)]


@pytest.fixture
def folder(tmp_path):
    made = SweepDir(str(tmp_path))
    os.makedirs(made.workers_path)
    return made


def failed(row, **values):
    return record(row, **{"status": "failed", "cause": "exception", "error": "no", **values})


class TestTakeOver:
    def test_gives_the_records_in_the_order_in_which_they_ended(self, folder):
        write_rows(folder, 0, record(2, end="2030-01-01T00:00:09+00:00"))
        write_rows(folder, 1, record(0, end="2030-01-01T00:00:03+00:00"), failed(5, end="2030-01-01T00:00:05+00:00"))
        stage = Stage(plan=plan(8), folder=folder, workers=[])
        assert [each.row for each in stage.take_over(redo=False)] == [0, 5, 2]
        assert rows_of(stage.missing()) == [1, 3, 4, 6, 7]

    def test_failed_rows_are_missing_again_when_they_are_to_be_redone(self, folder):
        write_rows(folder, 0, record(0), failed(1), failed(2, attempt=2))
        stage = Stage(plan=plan(4), folder=folder, workers=[])
        assert [each.row for each in stage.take_over(redo=True)] == [0]
        assert stage.missing() == [Chunk(1, 1, 2), Chunk(2, 2, 3), Chunk(3, 3, 1)]
        write_rows(folder, 7, failed(1, attempt=2))
        assert [each.row for each in stage.read_new()] == [1]

    def test_a_row_that_failed_in_two_launches_is_redone_once(self, folder):
        write_rows(folder, 0, failed(0), failed(1))
        write_rows(folder, 1, failed(0, attempt=2), record(1, attempt=2))
        stage = Stage(plan=plan(2), folder=folder, workers=[])
        assert [each.row for each in stage.take_over(redo=True)] == [1]
        assert stage.missing() == [Chunk(0, 0, 3)]
        assert not stage.redone
        assert sorted((each.row, each.status) for each in stage.standing()) == [(0, "failed"), (1, "completed")]
        write_rows(folder, 2, record(0, attempt=3))
        list(stage.read_new())
        assert stage.redone
        assert {each.status for each in stage.standing()} == {"completed"}

    def test_what_a_living_worker_holds_is_not_dealt_again(self, folder):
        stage = Stage(plan=plan(10), folder=folder, workers=[1])
        spool.put(stage.of(1).queue, Chunk(6, 9))
        spool.put(stage.of(1).active, Chunk(2, 3))
        spool.put(stage.of(0).queue, Chunk(4, 5))
        spool.put(stage.of(0).active, Chunk(1, 1, 2))
        stage.take_over(redo=False)
        assert stage.missing() == [Chunk(0, 0), Chunk(1, 1, 2), Chunk(4, 5)]
        assert not spool.waiting(stage.of(0).queue)
        assert not spool.waiting(stage.of(0).active)

    def test_a_completed_record_counts_before_a_failed_one_and_a_later_one_before_an_earlier(self, folder):
        write_rows(folder, 0, failed(0), failed(1, error="first"))
        write_rows(folder, 1, record(0, attempt=2), failed(1, attempt=2, error="second"))
        found = collect(folder, 1)
        assert [(each.status, each.attempt) for each in found] == [("completed", 2), ("failed", 2)]
        assert outranks(record(0), failed(0, attempt=9))
        assert not outranks(failed(0, attempt=9), record(0))


class TestCatchUp:
    def limits(self, folder, **values):
        stage = Stage(plan=plan(20, **values), folder=folder, workers=[])
        limits = StageLimits(stage)
        limits.catch_up(stage.take_over(redo=False), NOW)
        return stage, limits

    def test_a_target_that_was_reached_unseen_ends_the_stage(self, folder):
        write_rows(folder, 0, record(0), record(3))
        _, limits = self.limits(folder, target=["loss", 2.5, False])
        assert limits.ending is not None
        assert "row 3" in limits.ending[1]

    def test_rows_that_a_reducer_took_away_stay_away(self, folder):
        place = folder.driver.stage(1)
        os.makedirs(place.path)
        write_rows(folder, 0, *(record(row) for row in range(6)))
        seen = (json.dumps(record(row).to_json()) + "\n" for row in range(4))
        write_text(place.reduction(1, "records.jsonl"), "".join(seen))
        write_json(place.reduction(1, "request.json"), {"schema": 1, "rows": 4})
        write_json(place.reduction(1, "answer.json"), {"removed": [3, 8, 9]})
        stage, limits = self.limits(folder, reduction_interval=4)
        assert stage.dropped == {8, 9}, "one that ran all the same is a row"
        stage.workers = [0]
        stage.deal(stage.missing())
        assert rows_of(stage.held_back) == [6, 7, *range(10, 20)]
        limits.look(NOW)
        assert not os.path.exists(place.reduction(2, "request.json")), "six rows are not yet eight"
        assert rows_of(spool.waiting(stage.of(0).queue)) == [6, 7]
        write_rows(folder, 0, record(6), record(7))
        list(map(limits.heed, stage.read_new()))
        limits.look(NOW)
        assert os.path.exists(place.reduction(2, "request.json"))
        assert [each.row for each in read_log(place.reduction(2, "records.jsonl"))] == [4, 5, 6, 7]

    def test_a_look_that_nobody_answered_is_still_waited_for(self, folder):
        place = folder.driver.stage(1)
        os.makedirs(place.path)
        write_rows(folder, 0, *(record(row) for row in range(4)))
        seen = (json.dumps(record(row).to_json()) + "\n" for row in range(4))
        write_text(place.reduction(1, "records.jsonl"), "".join(seen))
        write_json(place.reduction(1, "request.json"), {"schema": 1, "rows": 4})
        stage, limits = self.limits(folder, reduction_interval=4)
        stage.workers = [0]
        stage.deal(stage.missing())
        limits.look(NOW)
        assert not spool.waiting(stage.of(0).queue)
        write_json(place.reduction(1, "answer.json"), {"removed": [5, 19]})
        limits.look(NOW)
        limits.look(NOW)
        assert rows_of(spool.waiting(stage.of(0).queue)) == [4, 6, 7, 8]
        assert stage.dropped == {5, 19}


class TestRedoneRowsAndEndings:
    def test_a_time_that_is_over_ends_all_but_the_rows_that_run_again(self, folder):
        write_rows(folder, 0, record(0), failed(1), failed(2))
        opened = open_stage(plan(20, deadline=1.0), folder, (), NOW, redo=True)
        assert opened.limits.ending == ("paused", "time_limit reached")
        assert rows_of(opened.ranges) == [1, 2]
        stage = opened.stage
        stage.workers = [0]
        stage.deal(opened.ranges)
        assert not opened.limits.ended, "they have not run yet"
        write_rows(folder, 0, record(1, attempt=2), record(2, attempt=2))
        list(stage.read_new())
        assert opened.limits.ended

    def test_a_target_that_is_reached_meanwhile_leaves_them_in_the_queues(self, folder):
        write_rows(folder, 0, failed(1), failed(2), record(0))
        opened = open_stage(plan(20, target=["loss", 0.5, False]), folder, (), NOW, redo=True)
        stage = opened.stage
        stage.workers = [3]
        stage.deal(opened.ranges)
        opened.limits.heed(record(1, attempt=2))
        assert opened.limits.ending is not None
        assert rows_of(spool.waiting(stage.of(3).queue)) == [1, 2]
        opened.limits.ending = None
        opened.limits.refuse("no")
        assert rows_of(spool.waiting(stage.of(3).queue)) == []
        assert opened.limits.ended


class TestSettings:
    def test_come_back_as_they_were(self):
        settings = Settings(script="a.py", env=("A=1", "B"), cpus=1.5, sources={"cpus": "flag"})
        again = restore_settings(stored_settings(settings), {}, "launch.json")
        assert again == settings
        assert again.sources == settings.sources

    def test_flags_take_their_place(self):
        settings = restore_settings(stored_settings(Settings(workers=2)), {"workers": "5", "gpus": None}, "launch.json")
        assert (settings.workers, settings.gpus, settings.sources) == (5, None, {"workers": "flag"})

    def test_a_damaged_file_is_named(self):
        with pytest.raises(SettingsError, match="--workers: workers 'many'"):
            restore_settings({}, {"workers": "many"}, "launch.json")


def test_a_name_is_counted_up(tmp_path):
    assert free_name(str(tmp_path / "files")) == str(tmp_path / "files.1")
    (tmp_path / "files.1").mkdir()
    assert free_name(str(tmp_path / "files")) == str(tmp_path / "files.2")
