"""Chunks move between folders, and each lands with exactly one side."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.records import spool
from orchestrator.records.spool import Chunk

rows = st.integers(0, 10**19)


@given(rows, rows, st.integers(1, 99))
def test_a_name_says_all_of_a_chunk(one, other, attempt):
    chunk = Chunk(min(one, other), max(one, other), attempt)
    assert Chunk.parse(chunk.name) == chunk


@given(st.lists(st.tuples(rows, st.integers(1, 9)), min_size=2, max_size=8))
def test_names_sort_as_rows_do(places):
    chunks = [Chunk(first, first, attempt) for first, attempt in places]
    assert sorted(chunks) == sorted(chunks, key=lambda chunk: chunk.name)


def test_the_attempt_is_in_the_name():
    assert Chunk(12, 19).name == "00000000000000000012-00000000000000000019.1"
    assert Chunk(12, 19, 2).name.endswith(".2")


@pytest.mark.parametrize(
    "name",
    [
        "", "notes.txt", "12-19.1", "00000000000000000019-00000000000000000012.1", ".nfs0001",
        "00000000000000000012-00000000000000000019.1.123.tmp", "00000000000000000012-00000000000000000019.01",
        "000000000000000000012-00000000000000000019.1", "00000000000000000012-00000000000000000019.1\n",
        "\u0660" * 20 + "-" + "\u0660" * 20 + ".1",
    ],
)  # fmt: skip
def test_other_names_are_no_chunks(name):
    assert Chunk.parse(name) is None


def test_foreign_files_are_not_waiting(tmp_path):
    spool.put(str(tmp_path), Chunk(3, 4))
    (tmp_path / "notes.txt").write_text("mine")
    assert spool.waiting(str(tmp_path)) == [Chunk(3, 4)]


def test_nothing_waits_in_a_folder_that_is_not_there(tmp_path):
    assert spool.waiting(str(tmp_path / "none")) == []


def test_the_lowest_rows_are_claimed_first(tmp_path):
    queue, active = str(tmp_path / "queue"), str(tmp_path / "active")
    for chunk in (Chunk(20, 29), Chunk(0, 9), Chunk(10, 19)):
        spool.put(queue, chunk)
    assert [spool.claim(queue, active).first for _ in range(3)] == [0, 10, 20]
    assert spool.claim(queue, active) is None
    assert len(spool.waiting(active)) == 3


def test_put_twice_is_put_once(tmp_path):
    spool.put(str(tmp_path), Chunk(0, 9))
    spool.put(str(tmp_path), Chunk(0, 9))
    assert spool.waiting(str(tmp_path)) == [Chunk(0, 9)]


def test_a_move_makes_its_target_folder(tmp_path):
    source, target = str(tmp_path / "a"), str(tmp_path / "b" / "c")
    spool.put(source, Chunk(0, 0))
    assert spool.move(source, target, Chunk(0, 0))
    assert spool.waiting(target) == [Chunk(0, 0)]


def test_a_move_of_what_is_gone_says_so(tmp_path):
    source, target = str(tmp_path / "a"), str(tmp_path / "b")
    assert not spool.move(source, target, Chunk(0, 0))
    os.makedirs(source)
    assert not spool.move(source, target, Chunk(0, 0))


def test_finishing_what_is_gone_is_no_error(tmp_path):
    spool.put(str(tmp_path), Chunk(0, 0))
    spool.finish(str(tmp_path), Chunk(0, 0))
    spool.finish(str(tmp_path), Chunk(0, 0))
    assert os.listdir(tmp_path) == []


def take_all(queue, active, found):
    while (chunk := spool.claim(queue, active)) is not None:
        found.append(chunk)


def test_threads_share_a_queue_without_doubles_or_losses(tmp_path):
    queue = str(tmp_path / "queue")
    chunks = [Chunk(row, row) for row in range(120)]
    for chunk in chunks:
        spool.put(queue, chunk)
    hands = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=take_all, args=(queue, str(tmp_path / f"active{number}"), hand))
        for number, hand in enumerate(hands)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(chunk for hand in hands for chunk in hand) == chunks


def take_all_and_tell(queue, active, answer):
    found = []
    take_all(queue, active, found)
    answer.send(found)
    answer.close()


def test_processes_share_a_queue_without_doubles_or_losses(tmp_path):
    queue = str(tmp_path / "queue")
    chunks = [Chunk(row, row) for row in range(200)]
    for chunk in chunks:
        spool.put(queue, chunk)
    context = multiprocessing.get_context("spawn")
    running = []
    for number in range(2):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=take_all_and_tell, args=(queue, str(tmp_path / f"a{number}"), theirs))
        process.start()
        theirs.close()
        running.append((process, ours))
    found = [chunk for _, ours in running for chunk in ours.recv()]
    for process, ours in running:
        process.join()
        process.close()
        ours.close()
    assert sorted(found) == chunks
