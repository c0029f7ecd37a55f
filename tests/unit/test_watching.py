"""Requests to stop, output that grows, and events as JSON."""

from __future__ import annotations

import json
import os

import pytest
from makers import plan, record

from orchestrator.coordinator import outputs
from orchestrator.coordinator.events import Notice, Output, StageBegun, StageEnded, Tick, TrialDone, event_json
from orchestrator.coordinator.members import last_word
from orchestrator.coordinator.outputs import Follower, ScriptOutput
from orchestrator.coordinator.stopping import DRAIN, KILL, StopSwitch
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import RunDir
from orchestrator.schema import StageResult


class TestStopSwitch:
    def test_goes_up_one_level_at_a_press_and_no_further(self):
        switch = StopSwitch()
        levels = []
        for _ in range(3):
            switch.press()
            levels.append(switch.level)
        assert levels == [DRAIN, KILL, KILL]

    @pytest.mark.parametrize(
        ("request_", "level"), [({"now": False}, DRAIN), ({"now": True}, KILL), ([], DRAIN), ({}, DRAIN)]
    )
    def test_takes_over_what_another_command_asks(self, tmp_path, request_, level):
        switch = StopSwitch()
        write_json(str(tmp_path / "stop.json"), request_)
        switch.read_request(str(tmp_path / "stop.json"))
        assert switch.level == level

    def test_never_goes_down(self, tmp_path):
        switch = StopSwitch()
        switch.level = KILL
        write_json(str(tmp_path / "stop.json"), {"now": False})
        switch.read_request(str(tmp_path / "stop.json"))
        assert switch.level == KILL

    def test_takes_no_notice_of_a_request_that_is_no_file(self, tmp_path):
        switch = StopSwitch()
        switch.read_request(str(tmp_path / "none"))
        (tmp_path / "broken").write_text("{")
        switch.read_request(str(tmp_path / "broken"))
        (tmp_path / "link").symlink_to(tmp_path / "broken")
        switch.read_request(str(tmp_path / "link"))
        assert switch.level == 0


class TestFollower:
    def test_gives_only_what_is_new(self, tmp_path):
        path = tmp_path / "out.txt"
        follower = Follower(str(path))
        assert follower.read() == ""
        path.write_text("one\n")
        assert follower.read() == "one\n"
        assert follower.read() == ""
        with open(path, "a") as stream:
            stream.write("two")
        assert follower.read() == "two"

    def test_puts_letters_together_that_were_cut_anywhere(self, tmp_path):
        path = tmp_path / "out.txt"
        data = "a€ö😀z".encode()
        follower = Follower(str(path))
        found = ""
        for end in range(len(data) + 1):
            path.write_bytes(data[:end])
            found += follower.read()
        assert found == "a€ö😀z"

    def test_puts_letters_together_that_its_own_blocks_cut(self, tmp_path, monkeypatch):
        monkeypatch.setattr(outputs, "_BLOCK", 3)
        path = tmp_path / "out.txt"
        path.write_text("ab€cd€", encoding="utf-8")
        follower = Follower(str(path))
        assert "".join(follower.read() for _ in range(6)) == "ab€cd€"

    def test_replaces_what_is_no_text(self, tmp_path):
        path = tmp_path / "out.txt"
        path.write_bytes(b"a\xffb")
        assert Follower(str(path)).read() == "a\N{REPLACEMENT CHARACTER}b"

    def test_follows_no_link(self, tmp_path):
        (tmp_path / "secret").write_text("mine")
        (tmp_path / "out.txt").symlink_to(tmp_path / "secret")
        assert Follower(str(tmp_path / "out.txt")).read() == ""

    def test_waits_for_no_fifo(self, tmp_path):
        os.mkfifo(tmp_path / "out.txt")
        assert Follower(str(tmp_path / "out.txt")).read() == ""


def test_both_streams_of_the_script_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "_BLOCK", 4)
    (tmp_path / "out.txt").write_text("to stdout")
    (tmp_path / "err.txt").write_text("to stderr")
    found = list(ScriptOutput(RunDir(str(tmp_path))).read())
    for stream in ("out", "err"):
        assert "".join(each.text for each in found if each.stream == stream) == f"to std{stream}"


@pytest.mark.parametrize("text", ["", "[]", "{", "3"])
def test_a_last_word_that_is_none_is_empty(tmp_path, text):
    assert last_word(RunDir(str(tmp_path))) == {}
    (tmp_path / "ended.json").write_text(text)
    assert last_word(RunDir(str(tmp_path))) == {}


def test_every_event_but_a_tick_is_one_json_object():
    events = [
        Output(stream="out", text="hello"), StageBegun(plan=plan(4), workers=2), TrialDone(record=record(3)),
        StageEnded(result=StageResult(1, "complete", 4, 4, 0, 0)), Notice(text="x", level="warning"),
    ]  # fmt: skip
    found = [event_json(event) for event in events]
    assert [each["event"] for each in found] == ["output", "scan", "trial", "scan-ended", "warning"]
    assert json.loads(json.dumps(found)) == found
    assert found[2]["metrics"] == {"loss": 3.0}
    assert event_json(Tick(stage=1, rows=4, done=1, failed=0)) is None
