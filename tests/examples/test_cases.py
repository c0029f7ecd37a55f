"""The handed cases that need a backend: S05, S07, S13, Q11 with Keras, S17 with Torch."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.conftest import Bench


def test_s05_scans_in_a_loop_are_stages_with_the_same_rows_for_any_number_of_workers(bench: Bench) -> None:
    tables = []
    for workers in ("1", "3"):
        done = bench.launch("s05_scan_in_a_loop.py", "--workdir", "data_s05", "--workers", workers, "--threads", "1",
                            name=f"w{workers}")  # fmt: skip
        assert done.code == 0, done.err
        assert [len(part) for _, part in done.table.groupby("scan")] == [6, 6, 6]
        assert set(done.table["batch_size"]) <= {str(size) for size in range(2, 10)}
        assert done.out.count("rows, best") == 3
        saved = sorted((bench.home / "data_s05").glob("*.npy"))
        assert len(saved) == 3
        assert all(np.load(path).size for path in saved)
        for path in saved:
            path.unlink()
        own = ["start", "end", "duration", "execution_time", "worker"]
        tables.append(done.table.drop(columns=own))
    pd.testing.assert_frame_equal(*tables)


def test_s13_arguments_reach_the_script_and_none_stays_none(bench: Bench) -> None:
    done = bench.launch("s13_arguments_and_none.py", args=["houses"])
    assert done.code == 0, done.err
    table = done.table
    assert len(table) == 10
    assert "loss-functions" in table
    last = [name for name in table.columns if name.startswith("neurons")][-1]
    assert (table[last] == "").any() or set(table[last]) <= {"4", "6", "8", "12", "16"}


def test_s13_without_its_argument_fails_as_the_script_itself_does(bench: Bench) -> None:
    done = bench.launch("s13_arguments_and_none.py")
    assert done.code == 2
    assert "IndexError" in done.error_line


def test_everything_of_talos_works_on_the_result_and_on_its_run_directory(bench: Bench) -> None:
    done = bench.launch("uses_talos_after.py", "--workers", "2")
    assert done.code == 0, done.err
    for line in ("rows 8", "predicted (60, 1)", "evaluated [", "loaded (8,", "same prediction True", "restored True"):
        assert line in done.out, done.out
    (run,) = (done.folder / "talos" / "after").iterdir()
    assert {"metadata.json", "checkpoint.json", "round_data.jsonl", "results.csv", "models"} <= {
        path.name for path in run.iterdir()
    }
    assert (bench.home / "after" / run.name / "results.csv").exists()


def test_s07_an_edited_dictionary_and_two_inputs(bench: Bench) -> None:
    tables = []
    for workers in ("1", "2"):
        done = bench.launch("s07_two_inputs.py", "--workers", workers, "--threads", "1", name=f"w{workers}")
        assert done.code == 0, done.err
        table = done.table
        assert list(table["status"]) == ["completed"] * 16
        assert set(table["units"]) <= {"3", "4", "5"}, "what the dictionary held when Scan was called"
        assert set(table["filters"]) <= {"1", "2", "3"}
        assert "val_mean_absolute_error" in table
        assert all(cell.endswith("mean_absolute_percentage_error") for cell in table["param__loss"])
        assert all("Adam" in cell and "0x" not in cell for cell in table["optimizer"])
        assert "16 rows, 3 of them best" in done.out
        assert "predicted (5, 1)" in done.out
        tables.append(table.drop(columns=["start", "end", "duration", "execution_time", "worker"]))
    pd.testing.assert_frame_equal(*tables)


def test_s17_a_torch_module_and_another_working_directory(bench: Bench) -> None:
    done = bench.launch("s17_module_twice.py", "--workers", "2")
    assert done.code == 0, done.err
    table = done.table
    assert list(table["status"]) == ["completed"] * 10
    assert set(table["round_epochs"]) == {"2"}
    assert {"loss", "val_loss"} <= set(table)
    assert set(table["batch_size"]) <= {"20", "50", "5"}, "a list is a list of alternatives"
    assert "10 rows, the module is Net" in done.out
    (run,) = (done.folder / "talos" / "cancer").iterdir()
    assert (run / "results.csv").exists(), "the results lie in the sweep's folder, not in a /tmp that is gone"


def test_q11_one_string_by_mistake_fails_in_keras_with_its_own_words(bench: Bench) -> None:
    done = bench.launch("q11_one_string_by_mistake.py")
    assert done.code == 3, done.err
    assert list(done.table["status"]) == ["failed"]
    (record,) = [json.loads(line) for line in (done.folder / "driver/scan-01/trials.jsonl").read_text().splitlines()]
    assert "Adam, Nadam" in record["error"]
    assert "0 rows" in done.out


def test_what_is_drawn_between_scans_is_what_talos_would_have_drawn(bench: Bench, plain_output) -> None:
    plain = plain_output(bench.home / "draws_between_scans.py")
    assert len(plain.splitlines()) == 4
    for workers in ("1", "3"):
        done = bench.launch("draws_between_scans.py", "--workers", workers, "--threads", "1", name=f"w{workers}")
        assert done.code == 0, done.err
        assert done.out == plain


@pytest.mark.parametrize("method", ["correlation", "trees", "forrest"])
def test_a_reducer_takes_away_the_rows_that_it_takes_away_in_talos(bench: Bench, plain_output, method: str) -> None:
    plain = plain_output(bench.home / "reduces.py", method)
    assert int(plain.split()[0]) < 48
    for workers in ("1", "3"):
        done = bench.launch("reduces.py", "--workers", workers, "--threads", "1", name=f"w{workers}", args=(method,))
        assert done.code == 0, done.err
        assert done.out == plain


def test_models_are_one_object_each_and_looking_at_them_draws_nothing(bench: Bench) -> None:
    """Also of rows that were not kept; and Scans whose names hold the time."""
    (bench.home / "models.py").write_text(
        "import random, time, datetime\n"
        "import numpy as np, keras, talos\n"
        "from talos.metrics.keras_metrics import f1score\n"
        "x, y = np.arange(40.0).reshape(20, 2) / 40, np.tile([0, 1], 10)\n"
        "def model(x, y, xv, yv, p):\n"
        "    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(p['n']), keras.layers.Dense(1, 'sigmoid')])\n"
        "    net.compile('adam', 'binary_crossentropy', metrics=['acc', f1score])\n"
        "    return net.fit(x, y, validation_data=(xv, yv), epochs=1, verbose=0), net\n"
        "def named():\n"
        "    return 'at-' + datetime.datetime.now().strftime('%H%M%S%f')\n"
        "s = talos.Scan(x, y, {'n': [2, 3, 4]}, model, named(), x_val=x, y_val=y, seed=4, reduction_metric='val_loss',\n"
        "               minimize_loss=True, disable_progress_bar=True)\n"
        "before = random.getstate()\n"
        "best = s.best_model(None)\n"
        "assert best is s.best_model('val_loss', asc=True)\n"
        "position = int(s.data['val_loss'].argmin())\n"
        "assert best is s.models[position]\n"
        "best.fit(x, y, epochs=1, verbose=0)\n"
        "assert len(s.saved_weights) == 3 and all(len(w) == 4 for w in s.saved_weights)\n"
        "assert all('Dense' in text for text in s.saved_models)\n"
        "assert isinstance(s.models, list) and len(s.models + s.models) == 6\n"
        "random.setstate(before)\n"
        "s.models[0].predict(x, verbose=0)\n"
        "print(random.random(), np.random.rand())\n"
        "t = talos.Scan(x, y, {'n': [2]}, model, named(), x_val=x, y_val=y, seed=4, disable_progress_bar=True)\n"
        "print(len(t.data))\n"
    )
    done = bench.launch("models.py", "--workers", "2", "--keep-models", "best:1")
    assert done.code == 0, done.err
    assert done.out.splitlines()[1] == "1"
    assert "was not kept (--keep-models all keeps every one): training that row again" in done.err
    assert "only the script can make" not in done.err


def test_what_tensorflow_draws_after_a_scan_is_what_it_draws_under_talos(bench: Bench, plain_output) -> None:
    (bench.home / "tf_draws.py").write_text(
        "import tensorflow as tf, numpy as np, talos\n"
        "x = np.zeros((10, 2))\n"
        "def model(x, y, xv, yv, p):\n"
        "    return {'loss': [float(tf.random.normal([]) + p['a'] + x.sum())]}, None\n"
        "for turn in range(2):\n"
        "    s = talos.Scan(x, x, {'a': [1, 2, 3]}, model, f't{turn}', x_val=x, y_val=x, seed=5, disable_progress_bar=True)\n"
        "    x = tf.random.uniform([10, 2]).numpy()\n"
        "    print(s.data['loss'].tolist(), x.sum(), tf.random.uniform([2]).numpy())\n"
    )
    plain = plain_output(bench.home / "tf_draws.py")
    done = bench.launch("tf_draws.py", "--workers", "2", "--threads", "1")
    assert done.code == 0, done.err
    assert done.out == plain


def test_talos_own_epoch_log_lies_in_the_run_folder(bench: Bench) -> None:
    (bench.home / "logged.py").write_text(
        "import glob, numpy as np, keras, talos\n"
        "from talos.callbacks import ExperimentLog\n"
        "x = np.zeros((10, 2))\n"
        "def model(x, y, xv, yv, p):\n"
        "    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])\n"
        "    net.compile('sgd', 'mse')\n"
        "    log = ExperimentLog('logged', p)\n"
        "    return net.fit(x, y, validation_data=(xv, yv), epochs=p['epochs'], verbose=0, callbacks=[log]), net\n"
        "s = talos.Scan(x, x, {'epochs': [1, 2, 3]}, model, 'logged', x_val=x, y_val=x, seed=1, disable_progress_bar=True)\n"
        "logs = sorted(glob.glob('logged/*/epochs-*.log'), key=lambda path: len(open(path).readlines()))\n"
        "print([len(open(path).readlines()) for path in logs])\n"
        "print([path.split('epochs-')[1][:-4] for path in logs] == s.data['_trial_id'].tolist())\n"
    )
    done = bench.launch("logged.py", "--workers", "2")
    assert done.code == 0, done.err
    assert done.out == "[2, 3, 4]\nTrue\n"
