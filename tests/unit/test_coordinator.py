"""A whole sweep against an engine of threads that play driver and workers by writing their files."""

from __future__ import annotations

import os
import re
import threading
import time
from dataclasses import replace

import pytest
from makers import plan, record, share, sweep_file, world

from orchestrator.coordinator.clock import Clock
from orchestrator.coordinator.coordinator import Coordinator
from orchestrator.coordinator.events import Notice, Output, StageBegun, StageEnded, Tick, TrialDone
from orchestrator.coordinator.members import Members
from orchestrator.coordinator.stopping import StopSwitch
from orchestrator.engine.base import Ended, EngineInfo
from orchestrator.errors import InputError, StoppedError
from orchestrator.plan.shares import Machine, SharePlan
from orchestrator.records import spool
from orchestrator.records.atomic import read_json, write_json
from orchestrator.records.layout import RunDir, SweepDir
from orchestrator.records.trial_log import TrialLog, read_log
from orchestrator.schema import StageResult

FASTER = 20  # the coordinator's own waits, and every wait here, run through this much sooner


class Killed(Exception):  # noqa: N818 - what happens to a member, not an error
    """A member's container is gone."""


class FakeEngine:
    """Each member is a thread. ``exit_codes`` are what it ended with; removed members are forgotten."""

    isolated = True

    def __init__(self, driver, worker):
        self.play = {"driver": driver, "worker": worker}
        self.running, self.codes, self.stopping = {}, {}, {}
        self.specs = []

    def info(self):
        return EngineInfo(name="fake", endpoint="here", version="1", machine=Machine(cpus=2, memory=1))

    def start(self, spec):
        self.specs.append(spec)
        stopping = self.stopping[spec.member] = threading.Event()

        def live():
            try:
                code = self.play[spec.role](spec, stopping) or 0
            except Killed:
                code = 137
            self.codes[spec.member] = (spec.attempt, code)

        thread = threading.Thread(target=live, daemon=True)
        self.running[spec.member] = thread
        thread.start()
        return "overlay"

    def ended(self, folder):
        return [Ended(member=member, attempt=attempt, exit_code=code)
                for member, (attempt, code) in list(self.codes.items()) if member in self.running]  # fmt: skip

    def members(self, folder):
        return sorted(self.running)

    def stop(self, folder, members=None, *, grace=10.0):
        for member in list(self.running) if members is None else members:
            self.stopping[member].set()
            self.running[member].join(5)

    def remove(self, folder, members=None):
        for member in list(self.running) if members is None else members:
            self.running.pop(member, None)
            self.codes.pop(member, None)


def wait_for(path, stopping):
    while not os.path.exists(path):
        if stopping.is_set():
            raise Killed
        time.sleep(0.002)


def script(*rows, after=lambda run: None, **values):
    """A driver whose script scans once for each number of rows."""

    def drive(spec, stopping):
        run = RunDir(spec.run)
        for stage, count in enumerate(rows, 1):
            os.makedirs(run.stage(stage).path)
            write_json(run.stage(stage).plan, plan(count, stage=stage, **values).to_json())
            wait_for(run.stage(stage).result, stopping)
        after(run)
        write_json(run.ended, {"kind": "ok", "message": "", "status": 0, "scans": len(rows)})
        return 0

    return drive


def serve(on_row=None, seconds=0.0):
    """A worker that runs what waits in its queue, as the supervisor does."""

    def work(spec, stopping):
        run, number, on = RunDir(spec.run), spec.worker, on_row or (lambda *_: {})
        driver = RunDir(os.path.join(spec.folder, "driver"))
        write_json(run.limits, {})
        stage = 1
        while not stopping.is_set() and not os.path.exists(run.stop):
            place = run.stage(stage)
            if driver.stages() and max(driver.stages()) > stage and not spool.waiting(place.queue):
                stage += 1
                continue
            in_hand = spool.waiting(place.active)
            chunk = in_hand[0] if in_hand else spool.claim(place.queue, place.active)
            if chunk is None:
                time.sleep(0.001)
                continue
            done = {each.row for each in read_log(place.trials)}
            log = TrialLog(place.trials)
            try:
                for row in range(chunk.first, chunk.last + 1):
                    if row in done:
                        continue
                    if stopping.is_set() or os.path.exists(run.stop):
                        return 0
                    time.sleep(seconds)
                    log.append(record(row, worker=number, attempt=chunk.attempt, **(on(row, spec) or {})))
            finally:
                log.close()
            spool.finish(place.active, chunk)
        return 0

    return work


class Sweep:
    def __init__(self, tmp_path, driver, worker, workers=2):
        project = tmp_path / "project"
        project.mkdir()
        shares = [share(number) for number in range(workers)]
        self.folder = SweepDir(str(tmp_path / "runs" / "case-1"))
        os.makedirs(self.folder.driver.path)
        os.makedirs(self.folder.workers_path)
        self.engine = FakeEngine(driver, worker)
        self.switch = StopSwitch()
        sweep = sweep_file(str(project), shares, keep_models="all")
        members = Members(
            self.engine,
            sweep,
            self.folder,
            SharePlan(workers=tuple(shares), driver=share(-1)),
            world(),
        )
        clock = Clock(
            steady=lambda: time.monotonic() * FASTER, wall=lambda: "now", sleep=lambda seconds: time.sleep(seconds / FASTER),
            started=time.monotonic() * FASTER,
        )  # fmt: skip
        self.coordinator = Coordinator(sweep, self.folder, members, self.switch, clock)
        self.members = members
        self.events = []

    def run(self, on_event=None):
        try:
            for event in self.coordinator.watch():
                self.events.append(event)
                if on_event is not None:
                    on_event(event)
        finally:
            self.coordinator.settle()
        return self

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def said(self):
        return " | ".join(event.text for event in self.of(Notice))

    def merged(self, stage=1):
        return read_log(self.folder.driver.stage(stage).trials)

    def result(self, stage=1):
        path = self.folder.driver.stage(stage).result
        return replace(StageResult.from_json(read_json(path), path), run_name=None)


def test_all_rows_are_run_and_merged_in_order(tmp_path):
    sweep = Sweep(tmp_path, script(30), serve(), workers=3).run()
    assert [each.row for each in sweep.merged()] == list(range(30))
    assert sweep.result() == StageResult(1, "complete", 30, 30, 0, 0)
    totals = sweep.coordinator.totals
    assert [totals[name] for name in ("rows", "completed", "failed", "lost")] == [30, 30, 0, 0]
    assert sorted(event.record.row for event in sweep.of(TrialDone)) == list(range(30))
    assert sweep.coordinator.driver_word["kind"] == "ok"
    assert not sweep.coordinator.stopped


def test_events_come_in_the_order_of_the_story(tmp_path):
    sweep = Sweep(tmp_path, script(4), serve()).run()
    kinds = [type(event) for event in sweep.events if not isinstance(event, Tick)]
    assert kinds == [StageBegun, *[TrialDone] * 4, StageEnded]
    assert sweep.of(StageBegun)[0].workers == 2
    timings = sweep.coordinator.timings
    order = [
        "ready_to_start",
        "driver_started",
        "planned",
        "workers_started",
        "first_result",
        "rows_done",
        "script_ended",
    ]
    assert [timings[name] for name in order] == sorted(timings[name] for name in order)


def test_nothing_is_left_on_the_engine(tmp_path):
    sweep = Sweep(tmp_path, script(4), serve()).run()
    assert sweep.engine.members(sweep.folder.path) == []


def test_a_table_lies_beside_the_merged_log_before_the_script_goes_on(tmp_path):
    def after(run):
        assert os.path.exists(run.stage(1).results)
        assert len(read_log(run.stage(1).trials)) == 4

    sweep = Sweep(tmp_path, script(4, after=after), serve()).run()
    assert sweep.coordinator.driver_word["kind"] == "ok"


def test_fewer_rows_than_workers_start_fewer_workers_and_say_so(tmp_path):
    sweep = Sweep(tmp_path, script(2), serve(), workers=5).run()
    assert "5 workers asked for and 2 rows to run: 2 workers are enough" in sweep.said()
    assert {spec.member for spec in sweep.engine.specs} == {"driver", "w00", "w01"}


def test_a_second_scan_uses_the_workers_there_are_and_starts_those_it_lacks(tmp_path):
    sweep = Sweep(tmp_path, script(2, 9, 1), serve(), workers=3).run()
    assert [sweep.result(stage).completed for stage in (1, 2, 3)] == [2, 9, 1]
    assert [spec.member for spec in sweep.engine.specs].count("w00") == 1
    assert {spec.member for spec in sweep.engine.specs} == {"driver", "w00", "w01", "w02"}
    assert sweep.coordinator.stages == 3
    assert sweep.coordinator.totals["rows"] == 12


def test_failed_trials_are_counted_and_do_not_stop_the_rest(tmp_path):
    def on_row(row, spec):
        return {"status": "failed", "cause": "exception", "error": "no"} if row % 3 == 0 else {}

    sweep = Sweep(tmp_path, script(9), serve(on_row)).run()
    assert sweep.result() == StageResult(1, "complete", 9, 6, 3, 0)


def test_the_scripts_output_is_passed_on_to_its_last_letter(tmp_path):
    def after(run):
        with open(run.out, "w", encoding="utf-8") as stream:
            stream.write("the best is ö")

    sweep = Sweep(tmp_path, script(1, after=after), serve()).run()
    assert "".join(event.text for event in sweep.of(Output)) == "the best is ö"


def dies_once(row_of_death):
    def on_row(row, spec):
        if row == row_of_death and spec.attempt == 1 and spec.worker == 0:
            raise Killed
        return {}

    return on_row


def test_a_dead_workers_rows_go_on_and_none_is_lost_or_doubled(tmp_path):
    sweep = Sweep(tmp_path, script(40), serve(dies_once(0), seconds=0.001), workers=3).run()
    assert [each.row for each in sweep.merged()] == list(range(40))
    assert all(each.status == "completed" for each in sweep.merged())
    assert {each.row: each.attempt for each in sweep.merged()}[0] == 2
    assert "worker 0 ended: its container was killed (signal 9)" in sweep.said()
    written = [each.row for number in sweep.folder.workers()
               for each in read_log(sweep.folder.worker(number).stage(1).trials)]  # fmt: skip
    assert sorted(written) == list(range(40))


def test_the_only_worker_is_started_again_in_its_own_directory(tmp_path):
    sweep = Sweep(tmp_path, script(6), serve(dies_once(1)), workers=1).run()
    assert [each.row for each in sweep.merged()] == list(range(6))
    assert [spec.attempt for spec in sweep.engine.specs if spec.member == "w00"] == [1, 2]


def test_a_row_that_kills_every_container_is_given_up(tmp_path):
    def on_row(row, spec):
        if row == 2:
            raise Killed
        return {}

    sweep = Sweep(tmp_path, script(8), serve(on_row), workers=2).run()
    lost = [each for each in sweep.merged() if each.status == "lost"]
    assert [(each.row, each.cause) for each in lost] == [(2, "signal")]
    assert sweep.result() == StageResult(1, "complete", 8, 7, 0, 1)
    assert "row 2 ended its worker's container twice and is given up" in sweep.said()


def test_workers_that_die_at_once_end_the_sweep_with_the_last_ones_reason(tmp_path):
    def die(spec, stopping):
        raise Killed

    with pytest.raises(
        StoppedError, match="no worker is left; the last one, worker 0, ended: its container was killed"
    ):
        Sweep(tmp_path, script(4), die, workers=1).run()


def test_workers_that_cannot_serve_the_script_end_the_sweep_with_their_word(tmp_path):
    def refuse(spec, stopping):
        write_json(RunDir(spec.run).ended, {"reason": "refused", "message": "parameter 'a' differs", "status": 2})
        return 2

    sweep = Sweep(tmp_path, script(4), refuse, workers=2)
    with pytest.raises(InputError, match=r"no worker can run this script's rows; worker [01]: parameter 'a' differs"):
        sweep.run()


def test_one_worker_that_cannot_serve_leaves_its_rows_to_the_others(tmp_path):
    good = serve(seconds=0.002)

    def work(spec, stopping):
        if spec.worker != 1:
            return good(spec, stopping)
        write_json(RunDir(spec.run).ended, {"reason": "refused", "message": "parameter 'a' differs", "status": 2})
        return 2

    sweep = Sweep(tmp_path, script(30), work, workers=3).run()
    assert [each.row for each in sweep.merged()] == list(range(30))
    assert [spec.attempt for spec in sweep.engine.specs if spec.member == "w01"] == [1]


def test_a_contract_error_refuses_the_scan_at_once(tmp_path):
    def on_row(row, spec):
        return {"status": "failed", "cause": "exception", "error": "returned None; return …", "contract_error": True}

    sweep = Sweep(tmp_path, script(500), serve(on_row, seconds=0.002))
    sweep.run()
    result = sweep.result()
    assert result.status == "refused"
    assert re.fullmatch(r"row \d+: returned None; return …", result.reason)
    assert len(read_log(sweep.folder.worker(0).stage(1).trials)) < 100


def test_a_contract_error_after_a_completed_row_costs_one_trial(tmp_path):
    def on_row(row, spec):
        bad = {"status": "failed", "cause": "exception", "error": "returned None", "contract_error": True}
        return bad if row == 5 else {}

    sweep = Sweep(tmp_path, script(6), serve(on_row), workers=1).run()
    assert sweep.result().failed == 1


def test_a_drain_keeps_the_rows_in_hand_and_leaves_the_others(tmp_path):
    sweep = Sweep(tmp_path, script(400), serve(seconds=0.001))
    sweep.run(lambda event: sweep.switch.press() if isinstance(event, TrialDone) and not sweep.switch.level else None)
    done = sweep.merged()
    assert 0 < len(done) < 400
    assert sweep.result().status == "paused"
    assert sweep.result().completed == len(done)
    assert sweep.coordinator.stopped
    assert "rows in hand finish" in sweep.said()
    left = [row for number in sweep.folder.workers() for place in ("left", "active")
            for chunk in spool.waiting(getattr(sweep.folder.worker(number).stage(1), place))
            for row in range(chunk.first, chunk.last + 1)]  # fmt: skip
    assert {each.row for each in done} | set(left) == set(range(400))


def test_a_scan_after_a_drain_is_answered_and_runs_nothing(tmp_path):
    sweep = Sweep(tmp_path, script(200, 5), serve(seconds=0.001))
    sweep.run(lambda event: sweep.switch.press() if isinstance(event, TrialDone) and not sweep.switch.level else None)
    assert sweep.result(2) == StageResult(2, "paused", 5, 0, 0, 0, "stopped before this Scan", resumable=True)
    assert sweep.coordinator.driver_word["kind"] == "ok"


def test_a_request_left_by_another_command_drains_too(tmp_path):
    sweep = Sweep(tmp_path, script(400), serve(seconds=0.001))
    sweep.run(lambda event: write_json(sweep.folder.stop, {"now": False}) if isinstance(event, StageBegun) else None)
    assert sweep.result().status == "paused"


def test_a_second_press_ends_everything(tmp_path):
    sweep = Sweep(tmp_path, script(400), serve(seconds=0.001))

    def press_twice(event):
        if isinstance(event, StageBegun):
            sweep.switch.press()
            sweep.switch.press()

    with pytest.raises(KeyboardInterrupt):
        sweep.run(press_twice)
    assert sweep.engine.members(sweep.folder.path) == []
    assert sweep.coordinator.stopped


def test_a_driver_that_vanishes_is_noticed(tmp_path):
    def vanish(spec, stopping):
        raise Killed

    sweep = Sweep(tmp_path, vanish, serve()).run()
    assert sweep.coordinator.driver_word["kind"] == "died"


def test_a_worker_that_somebody_removed_counts_as_killed(tmp_path):
    sweep = Sweep(tmp_path, script(40), serve(seconds=0.003), workers=2)

    def remove(event):
        if isinstance(event, TrialDone) and len(sweep.of(TrialDone)) == 1:
            sweep.engine.stop(sweep.folder.path, ["w01"])
            sweep.engine.remove(sweep.folder.path, ["w01"])

    sweep.run(remove)
    assert {each.row for each in sweep.merged()} == set(range(40))
    assert "it was removed by somebody else" in sweep.said()


def test_a_script_that_never_scans_ends_without_a_worker(tmp_path):
    sweep = Sweep(tmp_path, script(), serve()).run()
    assert [spec.member for spec in sweep.engine.specs] == ["driver"]
    assert sweep.coordinator.stages == 0
