"""The merged log and table, out of a folder that user code could write into."""

from __future__ import annotations

import os

import pytest
from makers import record

from orchestrator.errors import RecordError
from orchestrator.records.layout import SweepDir
from orchestrator.records.text import cell, record_values
from orchestrator.records.trial_log import TrialLog, read_log
from orchestrator.results.frame import frame_of, sweep_frame, write_tables
from orchestrator.results.merge import collect, write_merged
from orchestrator.space import TAG, encode


@pytest.fixture
def sweep(tmp_path):
    folder = SweepDir(str(tmp_path / "case"))
    os.makedirs(folder.driver.path)
    return folder


def log(sweep, worker, *records, stage=1):
    writer = TrialLog(sweep.worker(worker).stage(stage).trials)
    for each in records:
        writer.append(each)
    writer.close()


def model_file(sweep, worker, name, text="weights"):
    folder = sweep.worker(worker).stage(1).models
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w") as stream:
        stream.write(text)
    return path


def with_model(row, worker=0, **values):
    return record(
        row, worker=worker, model={"backend": "generic", "format": "pickle", "path": f"models/{row}.pkl"}, **values
    )


class TestCollect:
    def test_gives_rows_in_order_from_all_workers(self, sweep):
        log(sweep, 0, record(3), record(0))
        log(sweep, 1, record(2), record(1))
        assert [each.row for each in collect(sweep, 1)] == [0, 1, 2, 3]

    def test_counts_a_row_once(self, sweep):
        log(sweep, 0, record(0, duration=1.0), record(0, duration=2.0))
        log(sweep, 1, record(0, duration=3.0, worker=1))
        assert [each.duration for each in collect(sweep, 1)] == [1.0]

    def test_takes_the_merged_log_once_there_is_one(self, sweep):
        log(sweep, 0, record(0), record(1))
        write_merged(sweep, 1, [record(0)], "all")
        assert [each.row for each in collect(sweep, 1)] == [0]

    def test_of_nothing_is_nothing(self, sweep):
        assert collect(sweep, 1) == []

    def test_names_the_damaged_file(self, sweep):
        log(sweep, 1, record(0))
        with open(sweep.worker(1).stage(1).trials, "a") as stream:
            stream.write("{}\n")
        with pytest.raises(RecordError, match=r"workers/01/scan-01/trials\.jsonl:2"):
            collect(sweep, 1)


class TestWriteMerged:
    def test_writes_rows_in_order_and_gives_what_it_wrote(self, sweep):
        written = write_merged(sweep, 1, [record(2), record(0), record(1)], "all")
        assert [each.row for each in written] == [0, 1, 2]
        assert read_log(sweep.driver.stage(1).trials) == written

    def test_brings_the_kept_models(self, sweep):
        model_file(sweep, 1, "0.pkl", "zero")
        (written,) = write_merged(sweep, 1, [with_model(0, worker=1)], "all")
        assert written.model["path"] == "models/0.pkl"
        with open(os.path.join(sweep.driver.stage(1).models, "0.pkl")) as stream:
            assert stream.read() == "zero"

    def test_leaves_out_models_that_another_worker_beat(self, sweep):
        for row in range(3):
            model_file(sweep, row, f"{row}.pkl")
        rows = [with_model(row, worker=row, metrics={"loss": float(row)}) for row in range(3)]
        written = write_merged(sweep, 1, rows, "best:1")
        assert [each.model is not None for each in written] == [True, False, False]
        assert os.listdir(sweep.driver.stage(1).models) == ["0.pkl"]

    def test_forgets_a_model_whose_file_is_gone(self, sweep):
        assert write_merged(sweep, 1, [with_model(0)], "all")[0].model is None

    @pytest.mark.parametrize("secret", ["/etc/hostname", "relative"])
    def test_follows_no_link(self, sweep, tmp_path, secret):
        folder = sweep.worker(0).stage(1).models
        os.makedirs(folder)
        (tmp_path / "secret").write_text("mine")
        os.symlink(secret if secret.startswith("/") else str(tmp_path / "secret"), os.path.join(folder, "0.pkl"))
        assert write_merged(sweep, 1, [with_model(0)], "all")[0].model is None
        assert not os.path.lexists(os.path.join(sweep.driver.stage(1).models, "0.pkl"))

    @pytest.mark.parametrize("path", ["../../../../secret", "/etc/passwd", "..", "", None, 5])
    def test_a_path_leads_nowhere_else(self, sweep, tmp_path, path):
        (tmp_path / "secret").write_text("mine")
        os.makedirs(sweep.worker(0).stage(1).models)
        bad = record(0, model={"backend": "generic", "format": "pickle", "path": path})
        assert write_merged(sweep, 1, [bad], "all")[0].model is None

    def test_twice_is_once(self, sweep):
        model_file(sweep, 0, "0.pkl")
        once = write_merged(sweep, 1, [with_model(0)], "all")
        assert write_merged(sweep, 1, once, "all") == once

    def test_text_of_any_kind_is_written(self, sweep):
        odd = record(0, error="\ud800 ö\u2028")
        write_merged(sweep, 1, [odd], "all")
        assert read_log(sweep.driver.stage(1).trials) == [odd]


class TestCell:
    @pytest.mark.parametrize("value", [None, True, 3, 0.5, "x", "", "ö"])
    def test_plain_values_stay(self, value):
        assert cell(encode(value)) is value

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ((1, "a"), "(1, 'a')"), ((1,), "(1,)"), ((), "()"), ([1, [2]], "[1, [2]]"), ({"b": 1}, "{'b': 1}"),
            ({1: (2,)}, "{1: (2,)}"), ({1, 2}, "{1, 2}"), (set(), "set()"), (b"\x00a", repr(b"\x00a")), (len, "len"),
            (dict, "dict"), (os.path.join, "posixpath.join"), ([os.getcwd, None], "[posix.getcwd, None]"),
            (complex(1, -2), "(1-2j)"), ([(0.5, float("inf"))], "[(0.5, inf)]"),
        ],
    )  # fmt: skip
    def test_other_values_are_text_as_python_writes_it(self, value, text):
        assert cell(encode(value)) == text

    def test_times_are_text(self):
        import datetime as dt
        import pathlib

        assert cell(encode(dt.date(2030, 1, 2))) == "2030-01-02"
        assert cell(encode(dt.timedelta(days=1, seconds=5))) == "1 day, 0:00:05"
        assert cell(encode(pathlib.Path("/data/x"))) == "/data/x"

    def test_numbers_that_json_lacks_are_numbers(self):
        assert cell(encode(float("inf"))) == float("inf")
        assert cell(encode(float("nan"))) != cell(encode(float("nan")))

    def test_numpy_values_are_pythons(self):
        numpy = pytest.importorskip("numpy")
        assert cell(encode(numpy.float32(0.5))) == 0.5
        assert cell(encode(numpy.int64(3))) == 3
        assert cell(encode(numpy.array([1, 2]))) == "[1, 2]"

    def test_a_lambda_and_an_object_have_names_without_addresses(self):
        text = cell(encode(lambda x: x))
        assert "<lambda>" in text
        assert "0x" not in text + cell(encode(object()))

    @pytest.mark.parametrize("kind", ["name", "opaque", "later", "tuple"])
    def test_a_tag_of_a_later_version_is_text_too(self, kind):
        assert isinstance(cell({TAG: kind, "value": "x"}), str)

    def test_values_after_a_change_are_those_shown(self):
        changed = record(0, params={"a": 1}, changed_params={"a": encode((2,))})
        assert record_values(changed) == {"a": "(2,)"}


class TestFrame:
    def test_of_one_scan_is_its_table(self, sweep):
        os.makedirs(sweep.driver.stage(1).path)
        log(sweep, 0, record(1), record(0))
        assert sweep_frame(sweep)["row"].tolist() == [0, 1]
        assert "scan" not in sweep_frame(sweep)

    def test_of_several_scans_is_told_apart_by_a_column(self, sweep):
        for stage in (1, 2, 3):
            os.makedirs(sweep.driver.stage(stage).path)
        log(sweep, 0, record(0), record(1))
        log(sweep, 0, record(0, params={"b": 5}), stage=3)
        frame = sweep_frame(sweep)
        assert frame["scan"].tolist() == [1, 1, 3]
        assert frame["b"].isna().tolist() == [True, True, False]

    def test_of_nothing_is_empty(self, sweep):
        assert len(sweep_frame(sweep)) == 0
        assert len(frame_of([])) == 0

    def test_as_csv_comes_back(self, sweep, tmp_path):
        import pandas as pd

        frame = frame_of([record(0, params={"a": 'x,"y"\n'}), record(1, params={"a": "ö"}, status="failed")])
        write_tables(frame, str(tmp_path / "results.csv"))
        again = pd.read_csv(tmp_path / "results.csv")
        assert again["a"].tolist() == ['x,"y"\n', "ö"]
        assert list(again.columns) == list(frame.columns)


def test_whole_numbers_stand_in_talos_csv_as_pandas_would_have_appended_them(tmp_path):
    from orchestrator.records.table import Table
    from orchestrator.records.talos_run import _csv

    rows = [
        {"a": 0, "b": 1},
        {"a": 0.5, "b": 2},
        {"a": 1, "b": None},
        {"a": 2, "b": 3, "c": 7},
        {"a": "x", "b": 4},
        {"a": 3},
    ]
    assert _csv(Table(["a", "b", "c"], rows, {})).splitlines() == [
        "a,b,c", "0.0,1.0,", "0.5,2.0,", "1.0,,", "2.0,3.0,7.0", "x,4.0,", "3,,",
    ]  # fmt: skip
    assert _csv(Table(["a"], rows[:3], {})).splitlines() == ["a", "0", "0.5", "1.0"]
