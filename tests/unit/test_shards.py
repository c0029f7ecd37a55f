"""Every row is in exactly one chunk, whoever holds it."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import SettingsError
from orchestrator.plan.shards import chunks, deal, halves, left_over, missing, take
from orchestrator.plan.sizes import GIB, MIB, parse_size, show_size
from orchestrator.records.spool import Chunk


def rows_of(found):
    return [row for chunk in found for row in range(chunk.first, chunk.last + 1)]


def whole(rows):
    return [Chunk(0, rows - 1)] if rows else []


@given(st.integers(0, 3000), st.integers(1, 40))
def test_every_row_is_dealt_once(rows, workers):
    hands = deal(whole(rows), workers)
    assert len(hands) == workers
    assert sorted(rows_of(chunk for hand in hands for chunk in hand)) == list(range(rows))


@given(st.integers(1, 10**18), st.integers(1, 100))
def test_chunks_touch_and_fall_to_single_rows(rows, workers):
    found = list(chunks(whole(rows), workers))
    assert found[0].first == 0
    assert found[-1].last == rows - 1
    assert all(after.first == before.last + 1 for before, after in itertools.pairwise(found))
    assert all(after.size <= before.size for before, after in itertools.pairwise(found))
    assert found[-1].size == 1


@given(st.integers(8, 3000), st.integers(1, 8))
def test_the_first_chunk_leaves_work_for_everyone(rows, workers):
    assert next(chunks(whole(rows), workers)).size <= max(1, rows // (4 * workers))


def test_a_grid_beyond_any_memory_is_dealt_at_once():
    begun = time.perf_counter()
    hands = deal(whole(10**18), 64)
    assert time.perf_counter() - begun < 1
    assert sum(map(len, hands)) < 20_000
    assert sum(chunk.size for hand in hands for chunk in hand) == 10**18


def test_each_worker_begins_with_low_rows():
    assert [hand[0].first for hand in deal(whole(1000), 4)] == [0, 62, 120, 175]


@given(st.integers(0, 10**18), st.integers(2, 10**6), st.integers(1, 3))
def test_halves_are_the_whole(first, size, attempt):
    chunk = Chunk(first, first + size - 1, attempt)
    low, high = halves(chunk)
    assert (low.first, low.last + 1, high.last) == (chunk.first, high.first, chunk.last)
    assert abs(low.size - high.size) <= 1
    assert low.attempt == high.attempt == attempt


@given(st.integers(0, 50), st.integers(1, 30), st.frozensets(st.integers(0, 90)), st.data())
def test_what_is_left_is_what_was_not_recorded(first, size, recorded, data):
    chunk = Chunk(first, first + size - 1, 1)
    tried = data.draw(st.none() | st.integers(chunk.first, chunk.last))
    rest = left_over(chunk, recorded, tried=tried)
    assert sorted(rows_of(rest)) == [row for row in range(chunk.first, chunk.last + 1) if row not in recorded]
    assert {each.first for each in rest if each.attempt == 2} == ({tried} - recorded - {None})
    assert all(each.size == 1 for each in rest if each.attempt == 2)
    assert rest == sorted(rest)


def test_what_is_left_of_a_huge_chunk_is_known_at_once():
    begun = time.perf_counter()
    rest = left_over(Chunk(0, 10**18), frozenset({0, 1}), tried=2)
    assert time.perf_counter() - begun < 1
    assert rest == [Chunk(2, 2, 2), Chunk(3, 10**18, 1)]


taken_chunks = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: Chunk(pair[0], pair[0] + pair[1])), max_size=6
)


@given(st.integers(0, 50), taken_chunks, st.dictionaries(st.integers(0, 60), st.integers(2, 4)))
def test_what_is_missing_is_what_nobody_has(rows, taken, attempts):
    found = missing(rows, taken, attempts)
    held = {row for chunk in taken for row in range(chunk.first, chunk.last + 1)}
    assert rows_of(found) == [row for row in range(rows) if row not in held]
    for chunk in found:
        assert all(attempts.get(row, 1) == chunk.attempt for row in range(chunk.first, chunk.last + 1))


@given(taken_chunks.filter(bool), st.integers(1, 5))
def test_ranges_with_gaps_are_dealt_once(taken, workers):
    ranges = missing(90, taken, {})
    hands = deal(ranges, workers)
    assert sorted(rows_of(chunk for hand in hands for chunk in hand)) == rows_of(ranges)


@given(taken_chunks.filter(bool), st.integers(0, 100))
def test_ranges_are_cut_after_so_many_rows(taken, rows):
    ranges = missing(90, taken, {3: 2})
    first, rest = take(ranges, rows)
    assert rows_of(first) == rows_of(ranges)[:rows]
    assert rows_of([*first, *rest]) == rows_of(ranges)


def test_what_is_missing_of_a_huge_space_is_known_at_once():
    begun = time.perf_counter()
    found = missing(10**18, [Chunk(row, row) for row in range(0, 2000, 2)], {10**17: 2})
    assert time.perf_counter() - begun < 1
    assert sum(chunk.size for chunk in found) == 10**18 - 1000
    assert Chunk(10**17, 10**17, 2) in found


@pytest.mark.parametrize(
    ("text", "size"),
    [("512m", 512 * MIB), ("6g", 6 * GIB), ("1.5GiB", GIB * 3 // 2), ("100", 100), (" 2 GB ", 2 * GIB), ("1t", 1024 * GIB),
     ("0.5k", 512), ("7b", 7)],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text, "--memory") == size


@pytest.mark.parametrize("text", ["", "lots", "-1g", "1,5g", "5x", "1e3", "g", "1 2", "nan", "6gg"])
def test_anything_else_is_refused_by_its_option(text):
    with pytest.raises(SettingsError, match=r"^--shm-size '.*': give a size such as 512m or 6g"):
        parse_size(text, "--shm-size")


def test_sizes_are_shown_in_mib_or_gib():
    assert [show_size(size) for size in (0, 256 * MIB, GIB, GIB * 3 // 2)] == ["0 MiB", "256 MiB", "1.0 GiB", "1.5 GiB"]


@given(st.integers(0, 10**6))
def test_whole_mib_come_back(number):
    assert parse_size(f"{number}m", "x") == number * MIB
