"""Each role starts from the project as it was; the driver's files come into it at the end."""

from __future__ import annotations

import os

import pytest

from tests.conftest import Bench

SCAN = "talos.Scan([1], [1], {'a': [1, 2, 3, 4]}, model, 'views', x_val=[1], y_val=[1], multi_input=True)\n"
MODEL = "import os, shutil, sys, talos\ndef model(x, y, xv, yv, p):\n    return {'loss': [float(p['a'])]}, None\n"


@pytest.fixture(autouse=True, params=["docker", "process"])
def engine(request: pytest.FixtureRequest, cpu_image: str) -> str:
    return request.param


def launch(bench: Bench, engine: str, text: str, *options: str):
    (bench.home / "views.py").write_text(text)
    return bench.launch("views.py", "--engine", engine, *options)


def test_a_script_that_makes_a_folder_before_its_scan_runs_in_every_role(bench: Bench, engine: str) -> None:
    done = launch(bench, engine, MODEL + "os.mkdir('out')\nopen('out/x.txt', 'w').write('x')\n" + SCAN)
    assert done.code == 0, done.err
    assert (bench.home / "out/x.txt").read_text() == "x"


def test_a_script_that_makes_a_folder_after_each_scan_goes_on(bench: Bench, engine: str) -> None:
    done = launch(bench, engine, MODEL + f"for turn in (0, 1, 2):\n    {SCAN}    os.mkdir(f'result{{turn}}')\n")
    assert done.code == 0, done.err
    assert sorted(path.name for path in bench.home.glob("result*")) == ["result0", "result1", "result2"]


def test_changes_deletions_and_replaced_folders_come_into_the_project(bench: Bench, engine: str) -> None:
    (bench.home / "gone.txt").write_text("gone")
    (bench.home / "data").mkdir()
    (bench.home / "data/old.txt").write_text("old")
    text = (
        "os.remove('gone.txt')\nshutil.rmtree('data')\nos.mkdir('data')\nopen('data/new.txt', 'w').write('new')\n"
        "open('log.txt', 'a').write('line\\n')\n"
    )
    (bench.home / "log.txt").write_text("first\n")
    done = launch(bench, engine, MODEL + text + SCAN)
    assert done.code == 0, done.err
    assert not (bench.home / "gone.txt").exists()
    assert [path.name for path in (bench.home / "data").iterdir()] == ["new.txt"]
    assert (bench.home / "log.txt").read_text() == "first\nline\n"


def test_what_a_failing_script_wrote_is_kept_too(bench: Bench, engine: str) -> None:
    done = launch(bench, engine, MODEL + "open('begun.txt', 'w').write('x')\nraise ValueError('no')\n" + SCAN)
    assert done.code == 2
    assert (bench.home / "begun.txt").read_text() == "x"


def test_after_a_killed_trial_a_script_that_makes_folders_goes_on_from_a_fresh_project(
    bench: Bench, engine: str
) -> None:
    model = MODEL.replace("    return", "    if p['a'] == 2:\n        os.kill(os.getpid(), 9)\n    return")
    done = launch(bench, engine, model + "os.mkdir('out')\n" + SCAN, "--workers", "1")
    assert done.code == 3, done.err
    assert list(done.table["status"]) == ["completed", "lost", "completed", "completed"]
    assert (done.folder / "workers/00/files.1").is_dir(), "what the first container wrote is kept beside the second's"


def test_a_second_scan_sees_the_data_that_the_driver_sees(bench: Bench, engine: str) -> None:
    text = (
        "import numpy as np, talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    np.random.rand(p['a'])\n"
        "    return {'loss': [float(x.sum())]}, None\n"
        "y = np.zeros(20)\n"
        "for turn in (0, 1):\n"
        "    x = np.random.rand(20, 1)\n"
        "    scan = talos.Scan(x, y, {'a': [1, 2, 3, 4, 5]}, model, 'data', x_val=x, y_val=y)\n"
        "    print(turn, len(set(scan.data.loss)), bool((scan.data.loss == float(x.sum())).all()))\n"
    )
    done = launch(bench, engine, text, "--workers", "2")
    assert done.code == 0, done.err
    assert "0 1 True" in done.out
    assert "1 1 True" in done.out


def test_a_hostile_trial_cannot_have_its_view_put_elsewhere(bench: Bench, engine: str) -> None:
    if engine == "process":
        return  # plain processes have no wall: README and the plan say so
    victim = bench.home.parent / "victim"
    victim.mkdir()
    text = MODEL.replace(
        "    return",
        "    for name in ('files', '.work'):\n"
        "        try:\n"
        "            os.rename(f'/talos-orch/run/{name}', '/talos-orch/run/moved')\n"
        f"            os.symlink({str(victim)!r}, f'/talos-orch/run/{{name}}')\n"
        "        except OSError as error:\n"
        "            print('refused', error.errno, flush=True)\n"
        "    open('pwned.txt', 'w').write('x')\n"
        "    if p['a'] == 1:\n"
        "        os.kill(os.getppid(), 9)\n"
        "    return",
    )
    done = launch(bench, engine, text + SCAN, "--workers", "1")
    assert os.listdir(victim) == []
    assert done.folder.exists()
