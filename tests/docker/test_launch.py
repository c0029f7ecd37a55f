"""The command line on real containers, with scripts that need no backend."""

from __future__ import annotations

import json
import os

import docker
import pytest

from tests.conftest import Bench


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


# -- the handed cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("x01_scalar_value.py", ("'a'", "5", "(start, end, steps)")),
        ("x03_four_items.py", ("'a'", "(start, end, steps)")),
        ("x03_two_items.py", ("'a'", "(start, end, steps)")),
        ("empty_params.py", ("nothing to sweep",)),
        ("params_not_a_dict.py", ("dict",)),
    ],
)
def test_a_malformed_dictionary_is_one_line_before_any_container(
    bench: Bench, script: str, words: tuple[str, ...]
) -> None:
    done = bench.launch(script)
    assert done.code == 2
    assert all(word in done.error_line for word in words), done.err
    assert len(done.err.splitlines()) == 1
    assert not done.folder.exists()


@pytest.mark.parametrize(("script", "key"), [("x01_string_value.py", "'activation'"), ("x03_equal_ends.py", "'a'")])
def test_what_only_shows_when_it_runs_is_one_line_before_any_worker(bench: Bench, script: str, key: str) -> None:
    done = bench.launch(script)
    assert done.code == 2
    assert key in done.error_line
    assert "Traceback" not in done.err
    assert os.listdir(done.folder / "workers") == []


def test_x05_an_integer_range_has_as_many_rows_as_in_talos(bench: Bench) -> None:
    done = bench.launch("x05_int_range.py")
    assert done.code == 0, done.err
    assert [int(value) for value in done.table["batch_size"]] == [2, 3, 4, 5, 6, 7, 8, 9]


def test_x07_columns_are_merged_by_name(bench: Bench) -> None:
    done = bench.launch("x07_history_keys_differ.py", "--workers", "3")
    assert done.code == 0, done.err
    table = done.table
    assert len(table) == 6
    for name in ("loss", "acc", "lr"):
        reported = [name in record["metrics"] for worker in range(3) for record in done.records(worker)]
        assert (table[name] != "").sum() == sum(reported)


def test_x09_nan_and_inf_are_results(bench: Bench) -> None:
    done = bench.launch("x09_nan_and_inf.py")
    assert done.code == 0, done.err
    assert list(done.table["status"]) == ["completed"] * 5
    values = {float(value) if value else float("nan") for value in done.table["loss"]}
    assert float("inf") in values
    assert float("-inf") in values


@pytest.mark.parametrize("form", ["model_first", "none", "a_score", "three"])
def test_x11_a_wrong_return_is_explained_once(bench: Bench, form: str) -> None:
    done = bench.launch(f"x11_returns_{form}.py")
    assert done.code == 2
    assert "return (history, model)" in done.error_line
    assert done.state["completed"] == 0


def test_x13_duplicates_are_rows_of_their_own(bench: Bench) -> None:
    table = bench.launch("x13_duplicates.py").table
    assert list(table["a"]) == ["1", "1", "2"]
    assert table["_param_hash"].nunique() == 2
    assert table["_trial_id"].nunique() == 3


def test_x15_values_arrive_as_what_they_are(bench: Bench) -> None:
    done = bench.launch("x15_all_kinds_of_values.py")
    assert done.code == 0, done.err
    assert [float(value) for value in done.table["position"]] == [float(row) for row in range(19)]
    assert "0x" not in "".join(done.table["value"]), "an address in the table"


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_raised_exception_is_a_failed_row_with_its_traceback(bench: Bench) -> None:
    done = bench.launch("raises_in_some_trials.py")
    assert done.code == 3
    assert list(done.table["status"]).count("failed") == 1
    records = [record for worker in range(2) for record in done.records(worker)]
    (failed,) = [record for record in records if record["status"] == "failed"]
    assert failed["cause"] == "exception"
    assert "ValueError" in failed["traceback"]
    assert "5 rows" in done.out, "the script goes on with the rows that there are"


def test_a_killed_trial_process_costs_one_row(bench: Bench) -> None:
    done = bench.launch("dies_in_one_trial.py")
    assert done.code == 3
    lost = done.table[done.table["status"] == "lost"]
    assert list(lost["cause"]) == ["signal"]
    assert (done.table["status"] == "completed").sum() == 5


def test_a_trial_over_the_memory_limit_is_lost_to_host_oom_and_the_others_go_on(bench: Bench) -> None:
    (bench.home / "hungry.py").write_text(
        "import talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    block = bytearray(p['mib'] * 1024 * 1024)\n"
        "    block[::4096] = b'x' * len(block[::4096])\n"
        "    return {'loss': [float(p['mib'])]}, None\n"
        "scan = talos.Scan([1], [1], {'mib': [1, 2, 900, 3]}, model, 'hungry', x_val=[1], y_val=[1], multi_input=True)\n"
        "print(len(scan.data), 'rows')\n"
    )
    done = bench.launch("hungry.py", "--workers", "1", "--memory", "400m")
    assert done.code == 3
    assert list(done.table["status"]) == ["completed", "completed", "lost", "completed"]
    assert done.table["cause"][2] == "host-oom"
    assert "3 rows" in done.out


def test_a_script_without_a_scan_says_so(bench: Bench) -> None:
    done = bench.launch("never_scans.py")
    assert done.code == 2
    assert "without calling talos.Scan" in done.error_line


def test_a_script_that_fails_after_its_scan_keeps_the_results(bench: Bench) -> None:
    source = (bench.home / "x13_duplicates.py").read_text()
    (bench.home / "late.py").write_text(source + "\nraise RuntimeError('too late')\n")
    done = bench.launch("late.py")
    assert done.code == 2
    assert "RuntimeError: too late" in done.error_line
    assert len(done.table) == 3


def test_a_script_that_asks_for_input_is_refused_in_one_line(bench: Bench) -> None:
    (bench.home / "asks.py").write_text("import talos\nname = input('your name? ')\ntalos.Scan\n")
    done = bench.launch("asks.py")
    assert done.code == 2
    assert "asks for input" in done.error_line


# -- several scans, arguments, files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_second_scan_goes_on_from_the_first(bench: Bench, workers: str) -> None:
    done = bench.launch("two_scans_narrowing.py", "--workers", workers)
    assert done.code == 0, done.err
    assert "a = 33, b = 0.62" in done.out
    assert list(done.table["scan"].value_counts().sort_index()) == [16, 15]


def test_workers_that_write_the_same_names_never_meet(bench: Bench) -> None:
    before = sorted(str(path) for path in bench.home.rglob("*"))
    done = bench.launch("writes_files.py", "--workers", "2")
    assert done.code == 0, done.err
    after = sorted(str(path) for path in bench.home.rglob("*"))
    # What Talos itself would have left: the run directory under the experiment's name.
    assert [path for path in after if not path.startswith(str(bench.home / "writes"))] == [
        path for path in before if not path.startswith(str(bench.home / "writes"))
    ]
    assert [path for path in after if path.endswith("log.csv")] == []
    rows = 0
    for worker in range(2):
        log = done.folder / "workers" / f"{worker:02d}" / "files" / "log.csv"
        own = len(done.records(worker))
        assert (len(log.read_text().splitlines()) if log.exists() else 0) >= own
        rows += own
    assert rows == 6


def test_the_driver_writes_where_the_user_would(bench: Bench) -> None:
    source = (bench.home / "x13_duplicates.py").read_text()
    (bench.home / "keeps.py").write_text(source + "\nopen('kept.txt', 'w').write(str(len(scan.data)))\n")
    assert "scan = " in source
    done = bench.launch("keeps.py")
    assert done.code == 0, done.err
    assert (bench.home / "kept.txt").read_text() == "3"


def test_a_file_deleted_in_a_worker_stays_in_the_project(bench: Bench) -> None:
    (bench.home / "precious.txt").write_text("here")
    (bench.home / "deletes.py").write_text(
        "import os, talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    if os.path.exists('precious.txt'):\n"
        "        os.remove('precious.txt')\n"
        "    return {'loss': [1.0]}, None\n"
        "talos.Scan([1], [1], {'a': [1, 2]}, model, 'deletes', x_val=[1], y_val=[1], multi_input=True)\n"
    )
    done = bench.launch("deletes.py", "--workers", "1")
    assert done.code == 0, done.err
    assert (bench.home / "precious.txt").read_text() == "here"


def test_a_project_that_cannot_be_an_overlay_is_copied(bench: Bench) -> None:
    odd = bench.home / "with, comma"
    odd.mkdir()
    (odd / "writes_files.py").write_text((bench.home / "writes_files.py").read_text())
    done = bench.launch("with, comma/writes_files.py", "--project", "with, comma")
    assert done.code == 0, done.err
    assert "copy of the project" in done.err
    assert not (odd / "log.csv").exists()


def test_more_workers_than_rows_start_fewer_and_say_so(bench: Bench) -> None:
    done = bench.launch("x13_duplicates.py", "--workers", "5")
    assert done.code == 0
    assert "3 workers are enough" in done.err
    assert sorted(os.listdir(done.folder / "workers")) == ["00", "01", "02"]


def test_one_two_and_four_workers_give_one_table(bench: Bench) -> None:
    own = ["start", "end", "duration", "execution_time", "worker"]
    tables = []
    for workers in ("1", "2", "4"):
        done = bench.launch("x15_all_kinds_of_values.py", "--workers", workers, name=f"w{workers}")
        tables.append(done.table.drop(columns=own))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_any_image_with_python_serves_even_without_talos(bench: Bench, client: docker.DockerClient) -> None:
    (base,) = [tag for image in client.images.list("talos-orch/base") for tag in image.tags][:1]
    (bench.home / "bare.py").write_text(
        "import talos\n"
        "def model(x, y, xv, yv, p):\n"
        "    return {'loss': [p['a'] / 2]}, None\n"
        "scan = talos.Scan([1], [1], {'a': [1, 2, 3]}, model, 'bare', x_val=[1], y_val=[1], multi_input=True)\n"
        "print([history['loss'] for history in scan.round_history])\n"
        "try:\n"
        "    talos.Analyze\n"
        "except AttributeError as error:\n"
        "    print(error)\n"
    )
    done = bench.launch("bare.py", "--image", base)
    assert done.code == 0, done.err
    assert "[[0.5], [1.0], [1.5]]" in done.out
    assert "pip install talos" in done.out


# -- commands that look ------------------------------------------------------------------------------------------------


def test_the_looking_commands_read_a_finished_sweep(bench: Bench) -> None:
    bench.launch("x13_duplicates.py")
    runs = ("--runs", str(bench.runs))
    assert "finished" in bench.command("ls", *runs).out
    assert "3/3 rows recorded" in bench.command("status", "sweep", *runs).out
    assert "losses" in bench.command("logs", "sweep", *runs).out
    whole = json.loads(bench.command("inspect", "sweep", *runs).out)
    assert whole["sweep"]["workers"] == 2
    worker = json.loads(bench.command("inspect", "sweep", "0", *runs).out)
    assert worker["share"]["threads"] >= 1
    rows = json.loads(bench.command("results", "sweep", "--format", "json", *runs).out)
    assert [row["a"] for row in rows] == [1, 1, 2]
    assert (
        bench.command("results", "sweep", "--format", "csv", *runs).out
        == (bench.runs / "sweep/results.csv").read_text()
    )
    assert "nothing is running" in bench.command("stop", "sweep", *runs).err


def test_json_is_one_object_per_event(bench: Bench) -> None:
    done = bench.launch("x13_duplicates.py", "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["row"] for event in events if event["event"] == "trial"]
    assert events[-1]["event"] == "end"
    assert events[-1]["exit_code"] == 0


def test_a_name_in_use_is_refused(bench: Bench) -> None:
    bench.launch("x13_duplicates.py")
    again = bench.launch("x13_duplicates.py")
    assert again.code == 2
    assert "exists already" in again.error_line


def test_a_gpu_without_a_runtime_names_the_package(bench: Bench, client: docker.DockerClient) -> None:
    if "nvidia" in client.info().get("Runtimes", {}):
        pytest.skip("this engine has an NVIDIA runtime")
    done = bench.launch("x13_duplicates.py", "--gpus", "0")
    assert done.code == 5
    assert "nvidia-container-toolkit" in done.error_line


def test_no_engine_says_what_to_do(bench: Bench) -> None:
    done = bench.command("launch", "x13_duplicates.py", env={"DOCKER_HOST": "unix:///no/such.sock"})
    assert done.code == 5
    assert "start Docker" in done.error_line


def test_plan_prints_the_decisions_and_starts_nothing(bench: Bench, left_over) -> None:
    done = bench.command("plan", "x13_duplicates.py", "--workers", "2", "--runs", str(bench.runs))
    assert done.code == 0, done.err
    assert "rows      3" in done.out
    assert not bench.runs.exists()
    assert left_over() == []
