"""A file is there whole or not at all, and nothing but a plain file is read."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import RecordError
from orchestrator.records import atomic
from orchestrator.records.atomic import read_json, write_json, write_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_is_written_is_read(tmp_path_factory, value):
    path = str(tmp_path_factory.mktemp("json") / "value.json")
    write_json(path, value)
    assert read_json(path) == value


def test_nothing_but_the_file_is_left(tmp_path):
    write_text(str(tmp_path / "state.json"), "{}")
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    write_json(str(path), {"old": 1})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(str(path), {"new": 2})
    assert read_json(str(path)) == {"old": 1}


def test_a_value_that_is_no_json_leaves_the_old_file(tmp_path):
    path = str(tmp_path / "state.json")
    write_json(path, 1)
    with pytest.raises(TypeError):
        write_json(path, {1, 2})
    assert read_json(path) == 1


def test_a_planted_link_is_not_written_through(tmp_path):
    victim = tmp_path / "precious"
    victim.write_text("mine")
    (tmp_path / f"stop.{os.getpid()}.tmp").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        write_text(str(tmp_path / "stop"), "x")
    assert victim.read_text() == "mine"


def test_a_link_at_the_target_is_replaced_not_followed(tmp_path):
    victim = tmp_path / "precious"
    victim.write_text("mine")
    (tmp_path / "stop").symlink_to(victim)
    write_text(str(tmp_path / "stop"), "x")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "stop").is_symlink()


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(str(tmp_path / "none.json"))


def make_fifo(path):
    os.mkfifo(path)


def make_folder(path):
    path.mkdir()


def make_link(path):
    (path.parent / "other.json").write_text("{}")
    path.symlink_to(path.parent / "other.json")


def make_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_fifo, make_folder, make_link, make_device])
def test_what_is_no_plain_file_is_refused_at_once(tmp_path, make):
    path = tmp_path / "value.json"
    make(path)
    with pytest.raises(RecordError, match=r"value\.json: not a plain file"):
        read_json(str(path))


def test_a_file_over_the_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "LARGEST", 10)
    path = tmp_path / "value.json"
    path.write_text('"0123456789"')
    with pytest.raises(RecordError, match="larger than 10 bytes"):
        read_json(str(path))


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\xfd", b"{} {}", b"[" * 100000])
def test_damage_names_the_file(tmp_path, text):
    path = tmp_path / "value.json"
    path.write_bytes(text)
    with pytest.raises(RecordError, match=r"value\.json: not readable as JSON"):
        read_json(str(path))
