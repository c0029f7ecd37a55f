"""What else than a script can be launched: notebooks, Talos's single-file definitions, its YAML manifests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Bench

DEFINITION = """import random

def params():
    return {'neurons': [8, 16], 'rate': [.001, .01], 'activation': ['relu', 'tanh']}

def prep(data, round_params):
    return {'factor': 2.0}

def model(data, round_params):
    return {'val_loss': data['factor'] * round_params['neurons'] * round_params['rate'] + random.random() / 100}
"""
MANIFEST = """schema_version: "1.0"
metadata:
  name: first
  mode: development
sfd:
  module: first_sfd.py
  objective: {metric: val_loss, direction: min}
  params:
    neurons: [4, 8, 12]
uel:
  seed: 42
  round_limit: 7
  search_strategy: {type: SEARCH}
"""


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


def test_a_notebook_runs_without_its_magics(bench: Bench) -> None:
    cells = [
        "%matplotlib inline\nimport talos\n!pip list",
        "def model(x, y, xv, yv, p):\n    return {'loss': [p['a'] * 1.0]}, None",
        "scan = talos.Scan([1], [1], {'a': [1, 2]}, model, 'nb', x_val=[1], y_val=[1], multi_input=True)\nprint(len(scan.data))",
    ]
    document = {"nbformat": 4, "cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    (bench.home / "nb.ipynb").write_text(json.dumps(document))
    done = bench.launch("nb.ipynb")
    assert done.code == 0, done.err
    assert done.out == "2\n"
    assert "'!pip list' is left out" in done.err


def test_a_definition_runs_on_every_row_of_its_grid_in_talos_order(bench: Bench) -> None:
    (bench.home / "first_sfd.py").write_text(DEFINITION)
    done = bench.launch("first_sfd.py")
    assert done.code == 0, done.err
    rows = list(zip(done.table["activation"], done.table["rate"], done.table["neurons"], strict=True))
    assert len(rows) == 8
    assert rows[:3] == [("relu", "0.001", "8"), ("tanh", "0.001", "8"), ("relu", "0.001", "16")]


@pytest.mark.backend
@pytest.mark.parametrize("search", ["grid", "random"])
def test_a_manifest_gives_what_talos_run_gives(bench: Bench, search: str) -> None:
    pytest.importorskip("talos", reason="talos run is what it is compared with (make venv)")
    (bench.home / "first_sfd.py").write_text(DEFINITION)
    (bench.home / "first.yaml").write_text(MANIFEST.replace("SEARCH", search))
    done = bench.launch("first.yaml")
    assert done.code == 0, done.err
    talos = Path(sys.executable).with_name("talos")
    subprocess.run([talos, "run", "--no-progress-bar", "first.yaml"], cwd=bench.home, check=True, capture_output=True)
    (path,) = (bench.home / "results/dev").glob("*/results.csv")
    theirs = pd.read_csv(path, dtype=str)
    same = ["val_loss", "_trial_id", "_param_hash", "activation", "rate", "neurons"]
    pd.testing.assert_frame_equal(done.table[same], theirs[same])


def test_scans_in_threads_come_one_after_another_whatever_their_order(bench: Bench) -> None:
    done = bench.launch("scans_in_threads.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out == "[('part-0', [0, 1, 2, 3]), ('part-1', [1, 2, 3, 4]), ('part-2', [2, 3, 4, 5])]\n"
    assert "the model changes" not in done.err


def test_scans_in_processes_of_their_own_are_the_scripts_scans(bench: Bench) -> None:
    done = bench.launch("scans_in_processes.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out == "[0, 1, 2, 3]\n[3, 4, 5, 6]\n"
    assert list(done.table["scan"]) == ["1"] * 4 + ["2"] * 4


def test_a_trial_that_kills_such_a_process_costs_its_row(bench: Bench) -> None:
    done = bench.launch("scans_in_processes.py", "--workers", "1", args=("die",))
    assert done.code == 3, done.err
    assert done.out == "[0, 1, 3]\n[3, 4, 5, 6]\n"
    assert list(done.table["status"]) == ["completed", "completed", "lost", *["completed"] * 5]


def test_a_scan_within_a_trial_is_refused(bench: Bench) -> None:
    (bench.home / "nested.py").write_text(
        "import talos\n"
        "def inner(x, y, xv, yv, p):\n"
        "    return {'loss': [1.0]}, None\n"
        "def model(x, y, xv, yv, p):\n"
        "    talos.Scan([1], [1], {'b': [1]}, inner, 'in', x_val=[1], y_val=[1], multi_input=True)\n"
        "    return {'loss': [1.0]}, None\n"
        "talos.Scan([1], [1], {'a': [1, 2, 3, 4]}, model, 'out', x_val=[1], y_val=[1], multi_input=True)\n"
    )
    done = bench.launch("nested.py", "--workers", "1")
    assert done.code == 4
    assert "within a trial" in done.error_line


def test_a_name_that_holds_the_time_is_another_in_every_process(bench: Bench) -> None:
    (bench.home / "timed.py").write_text(
        "import talos, time\n"
        "for turn in range(2):\n"
        "    s = talos.Scan([1], [1], {'a': [1, 2, 3]}, lambda x, y, xv, yv, p: ({'loss': [float(p['a'])]}, None),\n"
        "                   f'at-{time.time_ns()}', x_val=[1], y_val=[1], multi_input=True)\n"
        "    print(len(s.data))\n"
    )
    done = bench.launch("timed.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out == "3\n3\n"


def test_an_empty_scan_can_be_caught_and_skipped_as_with_talos(bench: Bench) -> None:
    (bench.home / "skips.py").write_text(
        "import talos\n"
        "from talos.utils.exceptions import TalosDataError\n"
        "def model(x, y, xv, yv, p):\n"
        "    return {'loss': [float(p['a'])]}, None\n"
        "for fraction in (0.01, 0.5):\n"
        "    try:\n"
        "        s = talos.Scan([1], [1], {'a': [1, 2, 3, 4]}, model, 'skips', x_val=[1], y_val=[1], multi_input=True,\n"
        "                       fraction_limit=fraction, seed=1)\n"
        "        print(len(s.data))\n"
        "    except TalosDataError as error:\n"
        "        print('skipped', error)\n"
        "none = talos.Scan([1], [1], {'a': [1, 2]}, model, 'none', x_val=[1], y_val=[1], multi_input=True,\n"
        "                  boolean_limit=lambda p: False, random_method='quantum')\n"
        "print(len(none.data), talos.scan.Scan.Scan is talos.Scan)\n"
    )
    done = bench.launch("skips.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].startswith("skipped fraction_limit=0.01 of a space of 4 rows")
    assert done.out.splitlines()[1:] == ["2", "0 True"]
    assert "random_method='quantum' is not used" in done.err


def test_a_reducer_that_the_script_registers_has_its_name(bench: Bench) -> None:
    (bench.home / "registers.py").write_text(
        "import talos\n"
        "from talos.reducers.reduce_run import register_reducer\n"
        "register_reducer('drop9', lambda scan: ('a', 9))\n"
        "s = talos.Scan([1], [1], {'a': list(range(10))}, lambda x, y, xv, yv, p: ({'loss': [float(p['a'])]}, None), 'r',\n"
        "               x_val=[1], y_val=[1], multi_input=True, reduction_method='drop9', reduction_interval=2)\n"
        "print(s.data['a'].tolist())\n"
    )
    done = bench.launch("registers.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out == "[0, 1, 2, 3, 4, 5, 6, 7, 8]\n"


def test_a_notebook_has_display_and_a_source_may_have_another_encoding(bench: Bench) -> None:
    scan = (
        "import talos\n"
        "s = talos.Scan([1], [1], {'größe': [1, 2]}, lambda x, y, xv, yv, p: ({'loss': [float(p['größe'])]}, None), 'n',\n"
        "               x_val=[1], y_val=[1], multi_input=True)\n"
    )
    cells = [{"cell_type": "code", "source": scan + "display(len(s.data), 'rows')\n"}]
    (bench.home / "nb.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    done = bench.launch("nb.ipynb", name="notebook")
    assert done.code == 0, done.err
    assert done.out == "2\nrows\n"
    (bench.home / "latin.py").write_bytes(("# coding: latin-1\n" + scan + "print(*s.data)\n").encode("latin-1"))
    done = bench.launch("latin.py", name="latin")
    assert done.code == 0, done.err
    assert "größe" in done.out
