"""One line per trial: what is torn is forgiven once, what is damaged is named."""

from __future__ import annotations

import json
import os

import pytest
from makers import record

from orchestrator.errors import RecordError
from orchestrator.records import trial_log
from orchestrator.records.trial_log import TrialLog, TrialTail, read_log


def write(path, *records):
    log = TrialLog(str(path))
    for each in records:
        log.append(each)
    log.close()


@pytest.fixture
def log(tmp_path):
    return tmp_path / "scan-01" / "trials.jsonl"


def test_what_is_appended_is_read(log):
    written = [record(0), record(1, status="failed", cause="exception", error="ValueError: no"), record(2)]
    write(log, *written[:2])
    write(log, written[2])
    assert read_log(str(log)) == written


def test_no_log_is_an_empty_log(log):
    assert read_log(str(log)) == []
    assert list(TrialTail(str(log)).read()) == []


def test_text_of_any_kind_comes_back(log):
    odd = record(0, params={"a": "Käse\u2028\x00\ud800"}, error="line\nline")
    write(log, odd)
    assert read_log(str(log)) == [odd]
    assert log.read_bytes().count(b"\n") == 1


def test_numbers_that_json_lacks_come_back(log):
    write(log, record(0, metrics={"loss": float("inf"), "gap": float("-inf")}))
    assert read_log(str(log))[0].metrics == {"loss": float("inf"), "gap": float("-inf")}


def test_a_last_line_torn_anywhere_is_forgiven_and_then_cut(log):
    first, torn, after = record(0), record(1, params={"a": "ö"}), record(2)
    write(log, first)
    start = log.stat().st_size
    write(log, torn)
    whole = log.read_bytes()
    for length in range(start, len(whole)):
        log.write_bytes(whole[:length])
        assert read_log(str(log)) == [first]
        assert log.read_bytes() == whole[:length], "a reader changes nothing"
        write(log, after)
        assert read_log(str(log)) == [first, after]


def test_a_first_line_torn_anywhere_leaves_an_empty_log(log):
    write(log, record(0))
    whole = log.read_bytes()
    for length in range(len(whole)):
        log.write_bytes(whole[:length])
        assert read_log(str(log)) == []
    write(log)
    assert log.read_bytes() == b""


def test_a_long_torn_line_is_cut_too(log, monkeypatch):
    monkeypatch.setattr(trial_log, "_BLOCK", 7)
    write(log, record(0))
    with open(log, "ab") as stream:
        stream.write(b'{"row": 1, "params": {}' * 5)
    write(log, record(1))
    assert [each.row for each in read_log(str(log))] == [0, 1]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"{}",
        b"\x00" * 40,
        b'{"schema": 2}',
        b'{"schema": 1, "row": 1}',
        b"\xff",
        b"[" * 100000,
    ],
)
def test_damage_in_the_middle_names_file_and_line(log, damage):
    write(log, record(0), record(1), record(2))
    lines = log.read_bytes().splitlines()
    lines[1] = damage
    log.write_bytes(b"\n".join(lines) + b"\n")
    tail = TrialTail(str(log)).read()
    assert next(tail) == record(0)
    with pytest.raises(RecordError) as caught:
        next(tail)
    assert str(caught.value).startswith(f"{log}:2: ")


def test_a_link_is_not_followed(log, tmp_path):
    other = tmp_path / "elsewhere.jsonl"
    write(other, record(0))
    log.parent.mkdir()
    log.symlink_to(other)
    with pytest.raises(RecordError, match="not a plain file"):
        read_log(str(log))
    with pytest.raises(OSError, match="symbolic"):
        TrialLog(str(log))


def test_a_fifo_is_refused_without_waiting(log):
    log.parent.mkdir()
    os.mkfifo(log)
    with pytest.raises(RecordError, match="not a plain file"):
        read_log(str(log))


def test_a_line_of_any_length_is_not_taken(log, monkeypatch):
    monkeypatch.setattr(trial_log, "LONGEST_LINE", 50)
    write(log, record(0))
    with pytest.raises(RecordError, match=r":1: longer than 50"):
        read_log(str(log))


def test_a_tail_reads_only_what_is_new(log):
    tail = TrialTail(str(log))
    assert list(tail.read()) == []
    write(log, record(0), record(1))
    assert [each.row for each in tail.read()] == [0, 1]
    assert list(tail.read()) == []
    write(log, record(2))
    assert [each.row for each in tail.read()] == [2]


def test_a_tail_takes_a_torn_line_once_it_is_whole(log):
    write(log, record(0), record(1))
    whole = log.read_bytes()
    first = whole.index(b"\n") + 1
    tail = TrialTail(str(log))
    log.write_bytes(whole[: first + 10])
    assert [each.row for each in tail.read()] == [0]
    assert list(tail.read()) == []
    log.write_bytes(whole)
    assert [each.row for each in tail.read()] == [1]


def test_a_reader_that_stops_in_between_goes_on_there(log):
    write(log, record(0), record(1))
    tail = TrialTail(str(log))
    assert next(tail.read()).row == 0
    write(log, record(2))
    assert [each.row for each in tail.read()] == [1, 2]


def test_a_log_that_became_shorter_is_an_error(log):
    write(log, record(0), record(1))
    tail = TrialTail(str(log))
    list(tail.read())
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(RecordError, match="became shorter"):
        list(tail.read())


def test_a_full_disk_keeps_no_half_line(log, monkeypatch):
    writer = TrialLog(str(log))
    writer.append(record(0))
    before = log.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        writer.append(record(1))
    monkeypatch.undo()
    assert log.read_bytes() == before
    writer.append(record(2))
    writer.close()
    assert [each.row for each in read_log(str(log))] == [0, 2]


def test_each_line_carries_the_schema(log):
    write(log, record(0))
    assert json.loads(log.read_text())["schema"] == 1
