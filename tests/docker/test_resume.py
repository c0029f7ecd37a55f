"""Sweeps that are cut off in every way and resumed: what is recorded stays, what is not runs, nothing runs twice."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import docker
import pandas as pd
import pytest

from tests.conftest import Bench, Done, recorded_rows, wait_until


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


@pytest.fixture
def counting(bench: Bench, tmp_path: Path) -> Path:
    """A mounted folder in which every training leaves a line."""
    folder = tmp_path / "counting"
    folder.mkdir()
    return folder


def options(counting: Path, *more: str) -> tuple[str, ...]:
    return ("--mount", f"{counting}:rw", *more)


def trained(counting: Path) -> Counter[int]:
    return Counter(int(line) for line in (counting / "ran").read_text().split())


def cut_off(bench: Bench, process, *, containers: bool) -> None:
    """Kill the launch, which then can do nothing any more, and perhaps all that it started."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
    client = docker.from_env()
    for container in client.containers.list(filters={"label": f"talos-orch.folder={bench.runs / 'sweep'}"}):
        if containers:
            container.kill()
    client.close()


def whole(done: Done, rows: int) -> pd.DataFrame:
    assert done.code == 0, done.err
    table = done.table
    assert [int(row) for row in table["row"]] == list(range(rows))
    assert set(table["status"]) == {"completed"}
    return table


@pytest.fixture
def undisturbed(bench: Bench, tmp_path: Path) -> pd.DataFrame:
    aside = tmp_path / "aside"
    aside.mkdir()
    done = bench.launch(
        "q03_cut_off.py", "--mount", f"{aside}:rw", "--workers", "1", name="undisturbed", args=(str(aside / "ran"), "0")
    )
    return whole(done, 10)


def same_values(one: pd.DataFrame, other: pd.DataFrame) -> None:
    columns = ["row", "a", "loss", "_trial_id", "_param_hash", "status"]
    pd.testing.assert_frame_equal(one[columns], other[columns])


@pytest.mark.parametrize("workers", ["1", "3"])
def test_q03_killed_with_everything_after_four_rows(
    bench: Bench, counting: Path, undisturbed: pd.DataFrame, workers: str
) -> None:
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "2"), args=(str(counting / "ran"), "0.5"))
    folder = bench.runs / "sweep"
    wait_until(lambda: recorded_rows(folder) >= 4, "four rows")
    cut_off(bench, process, containers=True)
    before = {
        json.loads(line)["row"]: line
        for path in folder.glob("workers/*/scan-01/trials.jsonl")
        for line in path.read_text().splitlines()
    }
    assert 4 <= len(before) < 10
    looked = bench.command("results", "sweep", "--runs", str(bench.runs), "--format", "json")
    assert [row["row"] for row in json.loads(looked.out)] == sorted(before)
    done = bench.resume("--workers", workers)
    same_values(whole(done, 10), undisturbed)
    assert f"{len(before)} of 10 rows are recorded already" in done.err
    assert done.out.count("10 rows, best") == 1
    runs = trained(counting)
    assert all(runs[row] == 1 for row in before), "a recorded row is not run again"
    assert all(1 <= runs[row] <= 2 for row in range(10)), "one that was in hand is"
    used = {int(path.name) for path in (folder / "workers").iterdir()}
    assert used == {0, 1, *range(2, 2 + int(workers))}, "folders of the first launch are left as they were"


def test_workers_that_still_run_are_taken_over(bench: Bench, counting: Path, undisturbed: pd.DataFrame) -> None:
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "2"), args=(str(counting / "ran"), "1"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    cut_off(bench, process, containers=False)
    done = bench.resume()
    same_values(whole(done, 10), undisturbed)
    assert "2 of them still running" in done.err
    assert trained(counting) == Counter(range(10)), "not even rows in hand were run again"
    assert sorted(path.name for path in (done.folder / "workers").iterdir()) == ["00", "01"]


def test_other_limits_end_the_workers_that_still_run(bench: Bench, counting: Path, undisturbed: pd.DataFrame) -> None:
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "1"), args=(str(counting / "ran"), "1"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    cut_off(bench, process, containers=False)
    done = bench.resume("--memory", "600m", "--workers", "2")
    same_values(whole(done, 10), undisturbed)
    limits = json.loads((done.folder / "workers/02/limits.json").read_text())
    assert int(limits["cgroup"]["memory_bytes"]) == 600 * 1024**2
    assert json.loads((done.folder / "sweep.json").read_text())["resumes"][0]["started"] == [1, 2]


def test_a_stopped_sweep_goes_on_and_a_finished_one_does_nothing(
    bench: Bench, counting: Path, undisturbed: pd.DataFrame
) -> None:
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "2"), args=(str(counting / "ran"), "0.5"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 3, "three rows")
    process.send_signal(signal.SIGINT)
    stopped = bench.finish(process)
    assert stopped.code == 4
    assert "talos-orch resume sweep" in stopped.error_line
    runs = len(stopped.table)
    done = bench.resume()
    same_values(whole(done, 10), undisturbed)
    assert trained(counting) == Counter(range(10)), "rows in hand were recorded when it stopped"
    assert f"{runs} of 10 rows are recorded already" in done.err
    links = list((done.folder / "talos" / "q03").iterdir())
    assert len(links) == 1
    assert links[0].exists()
    before = done.state
    again = bench.resume(env={"DOCKER_HOST": "unix:///nowhere.sock"})
    assert again.code == 0, again.err
    assert "nothing left to run" in again.err
    assert again.state == before
    assert bench.resume("--rerun", "failed").code == 0


def test_failed_rows_run_again_when_asked_for(bench: Bench, counting: Path) -> None:
    script = (
        "import os, sys, talos, time\n"
        "def model(x, y, xv, yv, p):\n"
        "    open(sys.argv[1] + '/ran', 'a').write(f\"{p['a']}\\n\")\n"
        "    if p['a'] in (2, 5) and not os.path.exists(sys.argv[1] + '/mended'):\n"
        "        raise ValueError('not yet')\n"
        "    if p['a'] == 7 and not os.path.exists(sys.argv[1] + '/mended'):\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return {'loss': [float(p['a'])]}, None\n"
        "scan = talos.Scan([1], [1], {'a': list(range(10))}, model, 'again', x_val=[1], y_val=[1], multi_input=True)\n"
        "print(len(scan.data), 'rows')\n"
        "best = talos.Scan([1], [1], {'a': [scan.data['a'].max()]}, model, 'second', x_val=[1], y_val=[1], multi_input=True)\n"
        "print(best.data['a'].tolist())\n"
    )
    (bench.home / "again.py").write_text(script)
    first = bench.launch("again.py", *options(counting), args=(str(counting),))
    assert first.code == 3
    assert first.out == "7 rows\n[9]\n"
    assert bench.resume().code == 3, "failed rows are rows that are recorded"
    (counting / "mended").touch()
    done = bench.resume("--rerun", "failed")
    assert done.code == 0, done.err
    assert done.out == "10 rows\n[9]\n"
    table = done.table
    assert list(table["attempt"][:10]) == ["1", "1", "2", "1", "1", "2", "1", "2", "1", "1"]
    assert set(table["status"]) == {"completed"}
    assert trained(counting) == Counter({**dict.fromkeys(range(9), 1), 2: 2, 5: 2, 7: 2, 9: 2}), (
        "the second Scan's row once"
    )


def test_a_later_scan_is_planned_anew_where_an_earlier_one_comes_out_otherwise(bench: Bench, counting: Path) -> None:
    script = (
        "import sys, talos, time\n"
        "def model(x, y, xv, yv, p):\n"
        "    time.sleep(0.4)\n"
        "    return {'loss': [float(-p['a'])]}, None\n"
        "first = talos.Scan([1], [1], {'a': list(range(8))}, model, 'first', x_val=[1], y_val=[1], multi_input=True)\n"
        "top = int(first.data['a'].max())\n"
        "second = talos.Scan([1], [1], {'a': [top, top + 100]}, model, 'second', x_val=[1], y_val=[1], multi_input=True)\n"
        "print(second.data['a'].tolist())\n"
    )
    (bench.home / "narrow.py").write_text(script)
    process = bench.start("narrow.py", "--workers", "1")
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 3, "three rows")
    process.send_signal(signal.SIGINT)
    assert bench.finish(process).code == 4
    done = bench.resume()
    assert done.code == 0, done.err
    assert done.out == "[7, 107]\n"
    assert list(done.table["a"]) == [*map(str, range(8)), "7", "107"]


def test_a_space_that_has_changed_is_refused_and_nothing_is_lost(bench: Bench, counting: Path) -> None:
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "1"), args=(str(counting / "ran"), "0.5"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    cut_off(bench, process, containers=True)
    script = bench.home / "q03_cut_off.py"
    was = script.read_text()
    script.write_text(was.replace("range(10)", "range(12)"))
    refused = bench.resume()
    assert refused.code == 2
    assert "put the script back as it was" in refused.error_line
    assert "q03_cut_off.py has changed" in refused.err
    script.write_text(was)
    whole(bench.resume(), 10)
    assert max(trained(counting).values()) <= 2


def test_rows_that_all_failed_alike_run_again_once_the_script_is_corrected(bench: Bench) -> None:
    script = bench.home / "typo.py"
    text = (
        "import talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    return {'loss': [float(p['b'])]}, None\n"
        "talos.Scan([1], [1], {'a': list(range(9))}, model, 'typo', x_val=[1], y_val=[1], multi_input=True)\n"
    )
    script.write_text(text)
    broken = bench.launch("typo.py")
    assert broken.code == 4
    script.write_text(text.replace("p['b']", "p['a']"))
    whole(bench.resume(), 9)


def test_a_script_that_failed_after_its_scan_goes_on_without_training(bench: Bench, counting: Path) -> None:
    script = bench.home / "q03_cut_off.py"
    was = script.read_text()
    script.write_text(was + "print(1 / 0)\n")
    broken = bench.launch("q03_cut_off.py", *options(counting), args=(str(counting / "ran"), "0"))
    assert broken.code == 2
    script.write_text(was + "print('at last')\n")
    done = bench.resume()
    whole(done, 10)
    assert done.out.endswith("at last\n")
    assert trained(counting) == Counter(range(10))


def test_a_second_command_on_a_running_sweep_is_refused(bench: Bench, counting: Path) -> None:
    process = bench.start("q03_cut_off.py", *options(counting), args=(str(counting / "ran"), "0.5"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 1, "a row")
    refused = bench.resume()
    assert refused.code == 2
    assert "another talos-orch is at work" in refused.error_line
    whole(bench.finish(process), 10)


def test_the_options_that_are_kept_are_for_their_owner_alone(bench: Bench, counting: Path) -> None:
    done = bench.launch("q03_cut_off.py", *options(counting, "-e", "TOKEN=abc"), args=(str(counting / "ran"), "0"))
    path = done.folder / "launch.json"
    assert path.stat().st_mode & 0o077 == 0
    assert "TOKEN=abc" not in (done.folder / "sweep.json").read_text()


def test_a_performance_target_reached_before_the_cut_ends_the_resumed_sweep(bench: Bench) -> None:
    script = (
        "import talos, time\n"
        "def model(x, y, xv, yv, p):\n"
        "    time.sleep(0.6 if p['a'] else 0.1)\n"
        "    return {'acc': [1.0 if p['a'] == 3 else 0.1]}, None\n"
        "scan = talos.Scan([1], [1], {'a': list(range(40))}, model, 'target', x_val=[1], y_val=[1], multi_input=True,\n"
        "                  performance_target=['acc', 0.9, False])\n"
        "print(scan.data['acc'].max())\n"
    )
    (bench.home / "target.py").write_text(script)
    process = bench.start("target.py", "--workers", "1")
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    process.send_signal(signal.SIGSTOP)  # so that it does not see the row that ends it
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 4, "the row that reaches the target")
    cut_off(bench, process, containers=True)
    done = bench.resume()
    assert done.code == 0, done.err
    assert done.out == "1.0\n"
    assert len(done.table) < 12


def test_a_resume_by_a_dead_owner_is_no_obstacle(bench: Bench, counting: Path, undisturbed: pd.DataFrame) -> None:
    """Cut off, and cut off again in the resume."""
    process = bench.start("q03_cut_off.py", *options(counting, "--workers", "2"), args=(str(counting / "ran"), "0.7"))
    wait_until(lambda: recorded_rows(bench.runs / "sweep") >= 2, "two rows")
    cut_off(bench, process, containers=True)
    for _ in range(2):
        had = recorded_rows(bench.runs / "sweep")
        process = bench.start_resume()
        wait_until(lambda had=had: recorded_rows(bench.runs / "sweep") > had, "one row more")
        cut_off(bench, process, containers=True)
    time.sleep(0.1)
    done = bench.resume()
    same_values(whole(done, 10), undisturbed)
    assert len(json.loads((done.folder / "sweep.json").read_text())["resumes"]) == 3
    assert not [path for path in done.folder.rglob("*") if os.lstat(path).st_uid != os.getuid()]


def test_from_python(bench: Bench, counting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator import launch, resume

    monkeypatch.chdir(bench.home)
    (counting / "ran").touch()
    text = (bench.home / "q03_cut_off.py").read_text()
    (bench.home / "once.py").write_text(
        text.replace("    time.sleep", "    assert params['a'] != 3 or 'x' in open(ran).read()\n    time.sleep")
    )
    first = launch("once.py", str(counting / "ran"), "0", mount=[f"{counting}:rw"], name="sweep", runs=str(bench.runs))
    assert (first.exit_code, len(first.results)) == (3, 10)
    (counting / "ran").write_text("x\n")
    again = resume(first.folder, rerun_failed=True, workers=1)
    assert (again.exit_code, set(again.results["status"])) == (0, {"completed"})
