"""What ends a Scan before its last row, over all workers: target, time limit, reducers."""

from __future__ import annotations

import datetime
import json

import pytest

from tests.conftest import Bench, recorded_rows, wait_until

HEAD = """import datetime, sys, time, talos
def model(x, y, xv, yv, p):
    time.sleep(0.2)
    return {'loss': [float(10 - p['a'])], 'val_acc': [p['a'] / 10]}, None
def scan(params, **options):
    return talos.Scan([1], [1], params, model, 'limits', x_val=[1], y_val=[1], multi_input=True, **options)
"""


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


def write(bench: Bench, text: str) -> str:
    (bench.home / "limits.py").write_text(HEAD + text)
    return "limits.py"


def test_a_reached_target_ends_the_scan_on_all_workers(bench: Bench) -> None:
    script = write(
        bench,
        "s = scan({'a': list(range(60))}, performance_target=['loss', 4.0, True])\nprint(s.status, len(s.data))\n",
    )
    done = bench.launch(script, "--workers", "2")
    assert done.code == 0, done.err
    assert "loss <= 4 reached by row" in done.err
    assert min(float(value) for value in done.table["loss"]) <= 4.0
    assert f"complete {len(done.table)}" in done.out
    assert len(done.table) < 60
    assert sum(len(list(done.folder.glob(f"workers/*/scan-01/{name}/*"))) for name in ("queue", "active")) == 0


def test_a_target_on_a_metric_that_there_is_not_names_those_that_there_are(bench: Bench) -> None:
    script = write(bench, "scan({'a': [1, 2]}, performance_target=['val_f1', 4.0, True])\n")
    done = bench.launch(script)
    assert done.code == 2
    assert "'val_f1'" in done.error_line
    assert "loss, val_acc" in done.error_line


def test_after_a_target_the_next_scan_has_all_workers_again(bench: Bench) -> None:
    script = write(
        bench,
        "first = scan({'a': list(range(40))}, performance_target=['loss', 9.0, True])\n"
        "second = scan({'a': [5, 6, 7]})\n"
        "print(len(first.data) < 40, list(second.data['a']))\n",
    )
    done = bench.launch(script, "--workers", "2")
    assert done.code == 0, done.err
    assert "True [5, 6, 7]" in done.out


def test_a_time_limit_in_the_past_is_an_error_and_not_an_empty_table(bench: Bench) -> None:
    done = bench.launch(write(bench, "scan({'a': [1, 2]}, time_limit='2001-01-01 00:00')\n"))
    assert done.code == 2
    assert "in the past: 0 of 2 rows" in done.error_line
    assert not list(done.folder.glob("workers/*"))


def test_a_time_limit_ends_the_scan_at_that_moment(bench: Bench) -> None:
    script = write(
        bench,
        "when = datetime.datetime.now() + datetime.timedelta(minutes=1)\n"
        "s = scan({'a': list(range(100000))}, time_limit=when.strftime('%Y-%m-%d %H:%M'))\n"
        "print(s.status, len(s.data))\n",
    )
    # Limits are whole minutes: begin early in one, so that the sweep gets some rows done.
    wait_until(lambda: datetime.datetime.now(datetime.timezone.utc).second < 45, "the first part of a minute")
    done = bench.launch(script, "--workers", "2")
    assert done.code == 4, done.err
    assert "time_limit reached" in done.err
    assert f"paused {len(done.table)}" in done.out
    assert len(done.table) > 0


def test_a_reducer_sees_the_rows_of_all_workers_and_takes_rows_from_all_queues(bench: Bench) -> None:
    script = write(
        bench,
        "def reducer(scan):\n"
        "    assert set(scan.data['worker_less']) if 'worker_less' in scan.data else True\n"
        "    print('looked at', len(scan.data), flush=True)\n"
        "    return ('b', 'bad') if len(scan.data) >= 8 else False\n"
        "s = scan({'a': list(range(20)), 'b': ['good', 'bad']}, reduction_method=reducer, reduction_interval=4)\n"
        "print(s.data.groupby('b').size().to_dict(), s.status)\n",
    )
    done = bench.launch(script, "--workers", "2")
    assert done.code == 0, done.err
    assert "looked at 4" in done.out
    counts = done.table["b"].value_counts()
    assert counts["good"] == 20
    assert counts["bad"] < 20
    answers = [json.loads(path.read_text()) for path in sorted(done.folder.glob("driver/scan-01/reduce-*.answer.json"))]
    removed = {row for answer in answers for row in answer["removed"]}
    ran = {int(row) for row in done.table["row"]}
    assert ran | removed == set(range(40))
    assert "taken away by reduction_method" in done.err


def test_talos_own_reducer_works_on_the_merged_rows(bench: Bench) -> None:
    script = write(
        bench,
        "s = scan({'c': list(range(12)), 'a': [0, 9]}, reduction_method='spearman', reduction_interval=6, reduction_window=6,\n"
        "         reduction_metric='val_acc')\n"
        "print(s.data.groupby('a').size().to_dict())\n",
    )
    done = bench.launch(script, "--workers", "2")
    assert done.code == 0, done.err
    counts = done.table["a"].value_counts()
    assert counts["9"] == 12
    assert counts["0"] < 12


def test_a_reducer_that_raises_ends_the_sweep_with_its_words(bench: Bench) -> None:
    script = write(
        bench,
        "scan({'a': list(range(30))}, reduction_method='spearman', reduction_interval=4, reduction_metric='val_f1')\n",
    )
    done = bench.launch(script)
    assert done.code == 2
    assert "val_f1" in done.error_line
    assert recorded_rows(done.folder) >= 4, "what was measured is kept"


def test_unknown_arguments_are_refused_and_old_ones_mapped(bench: Bench) -> None:
    done = bench.launch(write(bench, "scan({'a': [1, 2]}, round_limits=1)\n"))
    assert done.code == 2
    assert "did you mean 'round_limit'" in done.error_line
    done = bench.launch(
        write(bench, "s = scan({'a': list(range(8))}, grid_downsample=.25, dataset_name='x')\n"), name="old"
    )
    assert done.code == 0, done.err
    assert len(done.table) == 2
    assert "is now 'fraction_limit'" in done.err


def test_a_shard_without_rows_gives_a_table_without_rows(bench: Bench) -> None:
    script = write(
        bench,
        "shards = talos.parameters.DistributeParamSpace.DistributeParamSpace({'a': [1, 2]}, machines=3, seed=1).param_spaces\n"
        "for shard in shards.values():\n"
        "    print(scan(shard).data.shape[0], end=' ')\n",
    )
    text = (bench.home / script).read_text()
    (bench.home / script).write_text("import talos.parameters.DistributeParamSpace\n" + text)
    done = bench.launch(script)
    assert done.code == 0, done.err
    assert done.out.split() == ["1", "1", "0"]
