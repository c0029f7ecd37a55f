"""Resumes that go wrong easily: of rows run again, of limits reached, of several Scans, of a project that was written to."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import Bench, recorded_rows, wait_until
from tests.docker.test_resume import cut_off

HEAD = """import multiprocessing, os, sys, threading, time, talos
C = sys.argv[1]
def S(values, model, name, **more):
    return talos.Scan([1], [1], {'a': values}, model, name, x_val=[1], y_val=[1], multi_input=True, seed=7, **more)
def ran(what):
    open(C + '/ran', 'a').write(f'{what}\\n')
def model(x, y, xv, yv, p):
    time.sleep(SECONDS)
    if p['a'] in BAD and not os.path.exists(C + '/mended'):
        raise ValueError('not yet')
    ran(p['a'])
    return {'loss': [float(p['a'])], 'acc': [p['a'] / 10]}, None
"""


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "counting"
    made.mkdir()
    (made / "ran").touch()
    return made


@pytest.fixture
def sweep(bench: Bench, folder: Path):
    def start(body: str, *options: str, bad=(), seconds: float = 0.0, wait: bool = True):
        (bench.home / "s.py").write_text(f"BAD, SECONDS = {set(bad)!r}, {seconds}\n" + HEAD + body)
        given = ("s.py", "--mount", f"{folder}:rw", *options)
        return bench.launch(*given, args=(str(folder),)) if wait else bench.start(*given, args=(str(folder),))

    return start


def times(folder: Path, what: str) -> int:
    return (folder / "ran").read_text().split().count(what)


def test_rows_that_fail_again_can_be_run_again_again(bench: Bench, sweep, folder: Path) -> None:
    assert sweep("S(list(range(4)), model, 'x')\n", bad=(1,)).code == 3
    for _ in range(2):
        again = bench.resume("--rerun", "failed")
        assert again.code == 3, again.err
    (folder / "mended").touch()
    done = bench.resume("--rerun", "failed")
    assert done.code == 0, done.err
    assert list(done.table["attempt"]) == ["1", "4", "1", "1"]


def test_two_typos_in_a_row_are_corrected_one_after_the_other(bench: Bench, sweep) -> None:
    assert sweep("S(list(range(9)), lambda x, y, xv, yv, p: ({'loss': [p['b']]}, None), 'x')\n").code == 4
    script = bench.home / "s.py"
    script.write_text(script.read_text().replace("p['b']", "p['c']"))
    assert bench.resume().code == 4
    script.write_text(script.read_text().replace("p['c']", "p['a']"))
    done = bench.resume()
    assert done.code == 0, done.err
    assert len(done.table) == 9


def test_a_sweep_that_its_time_limit_ended_is_not_finished_by_a_resume(bench: Bench, sweep, folder: Path) -> None:
    body = (
        "import datetime\n"
        "now = datetime.datetime.now()\n"
        "path = C + '/when'\n"
        "os.path.exists(path) or open(path, 'w').write((now + datetime.timedelta(minutes=1)).strftime('%Y-%m-%d %H:%M'))\n"
        "S(list(range(100)), model, 'x', time_limit=open(path).read())\n"
    )
    first = sweep(body, "--workers", "1", seconds=1)
    assert first.code == 4
    for _ in range(2):
        again = bench.resume()
        assert again.code == 4, again.err
        assert len(again.table) == len(first.table)


def test_failed_rows_run_again_in_a_scan_that_a_target_has_ended(bench: Bench, sweep, folder: Path) -> None:
    body = "print(len(S(list(range(30)), model, 'x', performance_target=['acc', 0.35, False]).data))\n"
    first = sweep(body, "--workers", "1", bad=(1,))
    assert first.code == 3
    (folder / "mended").touch()
    done = bench.resume("--rerun", "failed")
    assert done.code == 0, done.err
    assert len(done.table) == len(first.table)
    assert set(done.table["status"]) == {"completed"}
    assert max(times(folder, str(row)) for row in range(30)) == 1


def test_a_rerun_that_is_interrupted_goes_on_and_trains_nothing_twice(bench: Bench, sweep, folder: Path) -> None:
    first = sweep(
        "S(list(range(9)), model, 'x')\nS([50, 51], model, 'y')\n", "--workers", "1", bad=(0, 3, 6), seconds=1
    )
    assert first.code == 3
    (folder / "mended").touch()
    process = bench.start_resume("--rerun", "failed")
    wait_until(lambda: times(folder, "0") == 1, "the first of the rows that run again")
    process.send_signal(signal.SIGINT)
    stopped = bench.finish(process)
    assert stopped.code == 4, stopped.err
    assert len(stopped.table) == 11, "rows that have not run again are there as they were"
    done = bench.resume()
    assert done.code == 0, done.err
    assert set(done.table["status"]) == {"completed"}
    assert [times(folder, str(row)) for row in [*range(9), 50, 51]] == [1] * 11


def test_living_workers_are_ended_where_rows_are_to_run_again(bench: Bench, sweep, folder: Path) -> None:
    process = sweep("S(list(range(8)), model, 'x')\n", "--workers", "2", bad=range(8), wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.kill()
    process.communicate()
    resumed = bench.start_resume()
    new = bench.runs / "sweep/workers/02"
    wait_until(new.exists, "new workers")
    (folder / "mended").touch()
    done = bench.finish(resumed)
    assert done.code in (0, 3), done.err
    assert "still running" not in done.err
    assert list(done.table["row"]) == [str(row) for row in range(8)]
    assert "completed" in set(done.table["status"])


def test_a_later_scan_that_does_not_come_any_more_leaves_no_rows(bench: Bench, sweep, folder: Path) -> None:
    body = "s = S(list(range(4)), model, 'x')\nif len(s.data) < 4:\n    S([7, 8], model, 'y')\n"
    assert len(sweep(body, bad=(1,)).table) == 6
    (folder / "mended").touch()
    done = bench.resume("--rerun", "failed")
    assert done.code == 0, done.err
    assert list(done.table["a"]) == ["0", "1", "2", "3"]
    assert "scan" not in done.table


def test_a_later_scan_that_is_planned_anew_has_a_reducer_of_its_own(bench: Bench, sweep, folder: Path) -> None:
    body = (
        "top = int(S(list(range(6)), model, 'x').data['a'].max())\n"
        "def reducer(scan):\n"
        "    return ('a', top * 100 + 7)\n"
        "def second(x, y, xv, yv, p):\n"
        "    return {'loss': [float(p['a'])]}, None\n"
        "print(S([top * 100 + n for n in range(9)], second, 'y', reduction_method=reducer, reduction_interval=3).data['a'].tolist())\n"
    )
    assert sweep(body, bad=(5,)).out.strip() == str([400, 401, 402, 403, 404, 405, 406, 408])
    (folder / "mended").touch()
    done = bench.resume("--rerun", "failed")
    assert done.code == 0, done.err
    assert done.out.strip() == str([500, 501, 502, 503, 504, 505, 506, 508])


@pytest.mark.parametrize("kind", ["threading.Thread", "multiprocessing.Process"])
def test_scans_that_come_in_another_order_find_their_rows(bench: Bench, sweep, folder: Path, kind: str) -> None:
    body = (
        "order = [0, 1, 2] if not os.path.exists(C + '/again') else [2, 1, 0]\n"
        "def go(n):\n"
        "    s = S([10 * n + k for k in range(4)], model, f'part-{n}')\n"
        "    open(C + f'/out-{n}', 'w').write(str(s.data['a'].tolist()))\n"
        f"parts = [{kind}(target=go, args=(n,)) for n in order]\n"
        "for part in parts:\n    part.start()\n    time.sleep(0.3)\n"
        "for part in parts:\n    part.join()\n"
    )
    process = sweep(body, "--workers", "2", seconds=0.3, wait=False)
    wait_until(lambda: times(folder, "11") == 1, "the second Scan")
    cut_off(bench, process, containers=True)
    (folder / "again").touch()
    done = bench.resume()
    assert done.code == 0, done.err
    assert sorted(int(value) for value in done.table["a"]) == [10 * n + k for n in range(3) for k in range(4)]
    assert [(folder / f"out-{n}").read_text() for n in range(3)] == [
        str([10 * n + k for k in range(4)]) for n in range(3)
    ]


def test_a_script_that_leaves_while_its_scan_runs_is_not_finished(bench: Bench, sweep) -> None:
    body = (
        "thread = threading.Thread(target=S, args=(list(range(50)), model, 'x'), daemon=True)\n"
        "thread.start()\ntime.sleep(4)\n"
    )
    done = sweep(body, "--workers", "1", seconds=1)
    assert done.code == 2
    assert "ended while its Scan was running, with" in done.error_line


@pytest.mark.parametrize("how", ["stopped", "failed"])
def test_a_script_that_makes_a_folder_of_its_own_meets_the_project_as_it_was(
    bench: Bench, sweep, folder: Path, how: str
) -> None:
    (bench.home / "log.txt").write_text("one\n")
    body = (
        "os.mkdir('out')\n"
        "open('log.txt', 'a').write('two\\n')\n"
        "print(len(S(list(range(6)), model, 'x').data))\n"
        "open('out/done', 'w').write('x')\n"
        "1 / (not os.path.exists(C + '/fails'))\n"
    )
    if how == "failed":
        (folder / "fails").touch()
        assert sweep(body).code == 2
        (folder / "fails").unlink()
    else:
        process = sweep(body, "--workers", "1", seconds=0.7, wait=False)
        wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
        process.send_signal(signal.SIGINT)
        assert bench.finish(process).code == 4
    assert (bench.home / "out").is_dir(), "what it wrote is in the project"
    assert (bench.home / "log.txt").read_text() == "one\ntwo\n"
    done = bench.resume()
    assert done.code == 0, done.err
    assert done.out.strip() == "6"
    assert (bench.home / "out/done").exists()
    assert (bench.home / "log.txt").read_text() == "one\ntwo\n"
    assert not (done.folder / "written").exists()


def test_a_folder_that_is_moved_while_workers_live_is_written_to_by_nobody_else(
    bench: Bench, sweep, folder: Path
) -> None:
    process = sweep("S(list(range(6)), model, 'x')\n", "--workers", "1", seconds=1, wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.kill()
    process.communicate()
    moved = bench.runs / "elsewhere"
    os.rename(bench.runs / "sweep", moved)
    done = bench.resume(name="elsewhere")
    assert done.code == 0, done.err
    assert len(done.table) == 6
    assert sum(times(folder, str(row)) for row in range(6)) <= 7, "only what was in hand ran again"


def test_a_worker_whose_files_are_gone_is_ended(bench: Bench, sweep, folder: Path) -> None:
    process = sweep("S(list(range(6)), model, 'x')\n", "--workers", "1", seconds=1, wait=False)
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.kill()
    process.communicate()
    (bench.runs / "sweep/workers/00/worker.json").unlink()
    done = bench.resume()
    assert done.code == 0, done.err
    assert len(done.table) == 6
