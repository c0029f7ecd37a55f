"""The handed cases that need no backend: experiments S01 to S21, single points X17 to X31, threads Q01 to Q33."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from tests.conftest import Bench, Done

OWN = ["start", "end", "duration", "execution_time", "worker"]  # what another number of workers may change


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


def check_finished(done: Done, rows: int) -> pd.DataFrame:
    assert done.code == 0, done.err[-4000:]
    assert list(done.table["status"]) == ["completed"] * rows
    return done.table


def check_no_trial(done: Done) -> None:
    """One line of error, and not one worker was started."""
    assert done.code == 2, done.err
    assert done.error_line
    assert not done.folder.exists() or os.listdir(done.folder / "workers") == []


def equal_for(bench: Bench, script: str, *numbers: int, args: tuple[str, ...] = ()) -> list[Done]:
    """Launch with each number of workers; the tables have to be the same but for who ran a row and when."""
    runs = [bench.launch(script, "--workers", str(number), name=f"w{number}", args=args) for number in numbers]
    first, *others = [done.table.drop(columns=OWN) for done in runs]
    for other in others:
        pd.testing.assert_frame_equal(other, first)
    return runs


def numbers(column: pd.Series) -> list[float]:
    return [float(cell) for cell in column]


# -- S: whole experiments ---------------------------------------------------------------------------------------------


def test_s01_a_download_that_fails_is_the_scripts_own_error_before_any_trial(bench: Bench) -> None:
    # An empty folder for Keras: another test or sweep may have filled the shared cache.
    options = ("--network", "none", "-e", "KERAS_HOME=/tmp/empty-keras")
    done = bench.launch("s01_old_arguments_and_download.py", *options)
    check_no_trial(done)
    assert "fashion" in done.error_line or "URL fetch failure" in done.error_line
    assert "before its Scan" in done.error_line


def test_s01_old_arguments_name_the_experiment_and_no_row_is_merged_away(bench: Bench) -> None:
    rng = np.random.default_rng(1)
    np.savez(bench.home / "fashion.npz", images=rng.random((40, 28, 28, 1)), labels=rng.integers(0, 10, 40))
    done = bench.launch("s01_old_arguments_and_download.py", "--network", "none")
    table = check_finished(done, 144)
    assert "experiment_name" in done.err
    assert "dataset_name" in done.err
    assert "experiment_no" in done.err
    (experiment,) = os.listdir(done.folder / "talos")
    assert "clothes" in experiment, "the name that the old arguments give"
    assert sorted(table["loss"].value_counts().unique()) == [3], "48 sets of 3 rows that train alike"
    assert table["_trial_id"].nunique() == 144


def test_s03_numpy_ranges_and_a_table_beside_the_parent_folder(bench: Bench) -> None:
    done = bench.launch("s03/code/s03_arange_values.py")
    table = check_finished(done, 512)
    assert "'grid_downsample'" in done.err
    assert "'fraction_limit'" in done.err
    assert "s03/data/safe" in done.err, "a note says what else the containers see"
    assert "read (12, 4)" in done.out
    assert set(table["numpy_ints"]) == {"3"}, "the values that Talos would hand on"
    assert set(table["rows"]) == {"9"}
    assert set(table["encoder_units"]) <= {str(value) for value in range(16, 1024, 32)}
    assert set(table["epochs"]) <= {str(value) for value in range(10, 500, 100)}


def test_s03_a_folder_that_the_text_does_not_name_can_be_asked_for(bench: Bench) -> None:
    script, data = "s03/code/s03_asked_folder.py", bench.home / "s03" / "data"
    done = bench.launch(script, args=["safe"], name="without")
    check_no_trial(done)
    assert "x.csv" in done.error_line
    table = check_finished(bench.launch(script, "--mount", "s03/data", args=["safe"], name="ro"), 2)
    assert set(table["wrote"]) == {"0"}
    assert sorted(os.listdir(data / "safe")) == ["x.csv"]
    table = check_finished(bench.launch(script, "--mount", f"{data}:rw", args=["safe"], name="rw"), 2)
    assert set(table["wrote"]) == {"1"}
    assert len((data / "safe" / "left.txt").read_text().splitlines()) == 2


# Needs matplotlib in the image (being added): s03_gui_backend.py is S03's TkAgg at import and S17's plt.show() at the end.
def test_s03_and_s17_a_display_that_is_not_there_is_not_fatal(bench: Bench) -> None:
    done = bench.launch("s03/code/s03_gui_backend.py")
    check_finished(done, 3)
    assert "3 rows shown" in done.out
    assert (done.folder / "workers" / "00" / "files" / "losses.png").exists() or (
        done.folder / "workers" / "01" / "files" / "losses.png"
    ).exists()


def test_s09_the_first_identical_failures_end_the_sweep_with_the_key(bench: Bench) -> None:
    script = "s09/code/s09_wrong_key.py"
    done = bench.launch(script, "--workers", "2")
    assert done.code == 4, done.err
    assert "KeyError: 'freeze'" in done.error_line, "so the images were found"
    assert "--keep-going" in done.error_line
    assert done.state["completed"] == 0
    assert 3 <= done.state["failed"] < 18
    assert not (bench.home / "s09" / "code" / "checkpoints").exists(), "each worker has checkpoints of its own"
    assert list(done.folder.glob("workers/*/files/checkpoints/best.txt"))
    done = bench.launch(script, "--workers", "2", "--keep-going", name="all")
    assert done.code == 3, done.err
    assert list(done.table["status"]) == ["failed"] * 18


def test_s09_no_device_reaches_a_worker_that_was_given_none(bench: Bench) -> None:
    """Whatever the script sets for itself, the wall is the container's."""
    source = (bench.home / "s09" / "code" / "s09_wrong_key.py").read_text()
    seen = 'return {"loss": [sum(brightness)], "devices": [len(glob.glob("/dev/nvidia*"))]}, None'
    fixed = source.replace('frozen = params["freeze"]', seen)
    assert fixed != source
    (bench.home / "s09" / "code" / "fixed.py").write_text(fixed)
    table = check_finished(bench.launch("s09/code/fixed.py"), 18)
    assert set(table["devices"]) == {"0"}
    assert set(numbers(table["loss"])) != {0.0}


def test_s11_a_time_limit_in_the_past_says_so(bench: Bench) -> None:
    done = bench.launch("s11_global_config.py", args=["past"])
    check_no_trial(done)
    assert "0 of 35" in done.error_line
    assert "in the past" in done.error_line


def test_s11_a_global_configuration_written_in_full_gives_one_table(bench: Bench) -> None:
    for done in equal_for(bench, "s11_global_config.py", 1, 3, args=("plain",)):
        table = check_finished(done, 35)
        assert set(table["losses"]) == {"(5.0, 1.0)", "(2.0, 1.0)", "(1.0, 1.0)"}
        logs = "".join(path.read_text() for path in done.folder.glob("workers/*/log.txt"))
        assert logs.count("'weight':") == 35, "print_params"


def test_s11_state_that_one_trial_leaves_for_the_next_does_not_change_results_or_is_warned_of(bench: Bench) -> None:
    runs = [
        bench.launch("s11_global_config.py", "--workers", str(count), name=f"w{count}", args=["grouped"])
        for count in (1, 3)
    ]
    tables = [check_finished(done, 35).drop(columns=OWN) for done in runs]
    if not tables[0].equals(tables[1]):
        said = "".join(done.err for done in runs)
        assert "warning" in said, "the rows depend on the worker they ran on, and nobody said so"


def test_s15_a_source_in_another_script_and_keys_without_effect(bench: Bench) -> None:
    rows = np.random.default_rng(15).integers(0, 9, (4, 128 * 128 + 1))
    rows[:, -1] %= 2
    np.savetxt(bench.home / "polar.csv", rows, fmt="%d", delimiter=",")
    plain = {"LANG": "C", "LC_ALL": "C"}
    done = bench.command(
        "launch", "s15_keys_without_effect.py", "--runs", str(bench.runs), "--name", "sweep",
        "-e", "LC_ALL=C", "-e", "LANG=C", env=plain,
    )  # fmt: skip
    done.folder = bench.runs / "sweep"
    table = check_finished(done, 864)
    assert table["loss"].nunique() == 24
    assert len(table.drop_duplicates(["activation", "dropout", "epochs", "batch_size", "losses"])) == 24
    assert table["_trial_id"].nunique() == 864
    assert set(table["width"]) == {"16384"}
    assert set(table["shape"]) == {"砖", "漏斗"}
    assert any("正切" in cell for cell in table["activation"])
    assert "864" in done.out


def test_s19_two_thousand_million_rows_are_drawn_from_and_not_built(bench: Bench) -> None:
    done = bench.launch("s19_huge_space.py", "--workers", "2")
    table = check_finished(done, 700)
    assert "700 rows of first_neuron" in done.err
    assert "locked" not in done.err
    plan = done.folder / "driver" / "scan-01" / "plan.json"
    assert plan.stat().st_size < 200_000
    rows = table.drop_duplicates(["first_neuron", "last_neuron", "hidden_layers", "dropout", "batch_size", "shapes"])
    assert len(rows) > 690
    assert list(done.folder.glob("workers/*/files/games.sqlite")), "each worker writes into a database of its own"


def test_s19_a_windows_path_is_one_clear_line(bench: Bench) -> None:
    done = bench.launch("s19_windows_path.py")
    lines = [line for line in done.err.splitlines() if "Windows" in line and "games.csv" in line]
    assert len(lines) == 1, done.err
    check_no_trial(done)


@pytest.mark.parametrize(("space", "rows", "some"), [("small", 80, 8), ("large", 243, 24)])
def test_s21_a_space_from_a_file_and_the_scripts_own_arguments(bench: Bench, space: str, rows: int, some: int) -> None:
    glyphs, labels = np.arange(36.0).reshape(4, 3, 3), np.array([0, 1, 2, 1])
    np.savez(bench.home / "glyphs.npz", train=glyphs, train_labels=labels, valid=glyphs, valid_labels=labels)
    path = f"s21_spaces/{space}.json"
    table = check_finished(bench.launch("s21_space_from_json.py", args=[path], name="all"), rows)
    wholes = {"small": "2", "large": "11"}[space]
    assert set(table["whole_numbers"]) == {wholes}, "whole numbers stay whole numbers"
    assert set(table["classes"]) == {"3"}
    table = check_finished(bench.launch("s21_space_from_json.py", args=[path, "--fraction", ".1"], name="some"), some)
    with (bench.home / "glyphs.pickle").open("rb") as file:
        kept = pickle.load(file)  # noqa: S301 - written by our own case
    assert len(kept) == some


def test_s21_without_its_arguments_the_script_says_what_it_needs(bench: Bench) -> None:
    done = bench.launch("s21_space_from_json.py")
    check_no_trial(done)
    assert "the following arguments are required: space" in done.err


# -- X: single points -------------------------------------------------------------------------------------------------


def test_x17_old_arguments_are_mapped_with_a_warning(bench: Bench) -> None:
    done = bench.launch("x17_old_arguments.py")
    check_finished(done, 2)
    assert "2 rows of 200" in done.out
    for name in ("dataset_name", "experiment_no", "grid_downsample", "search_method"):
        assert f"'{name}'" in done.err
    assert "'fraction_limit'" in done.err
    assert os.listdir(done.folder / "talos") == ["x17"], "the name that was given stays"


def test_x19_less_than_one_row_names_the_size(bench: Bench) -> None:
    done = bench.launch("x19_fraction_of_nothing.py")
    check_no_trial(done)
    assert "fraction_limit" in done.error_line
    assert "0.01" in done.error_line
    assert "10" in done.error_line.replace("0.01", "")


def test_x21_more_rows_asked_for_than_there_are(bench: Bench) -> None:
    done = bench.launch("x21_limit_over_size.py", "--workers", "4")
    check_finished(done, 2)


def test_x23_a_frame_and_a_series_are_split_as_arrays_are(bench: Bench) -> None:
    done = bench.launch("x23_frame_and_series.py")
    table = check_finished(done, 2)
    order = np.random.default_rng(23).permutation(10)
    told = [float(sum(value * 2.0**at for at, value in enumerate(part))) for part in (order[:7], order[7:])]
    for _, row in table.iterrows():
        assert float(row["loss"]) == 0.0, "x and y belong together"
        assert [float(row["train"]), float(row["val"])] == told
        assert row["rows"] == "703"


def test_x25_the_table_shows_what_was_asked_for_as_well(bench: Bench) -> None:
    done = bench.launch("x25_changes_params.py")
    table = check_finished(done, 3)
    assert list(table["a"]) == ["99"] * 3
    assert list(table["steps"]) == ["7"] * 3
    assert list(table["asked__a"]) == ["1", "2", "4"]
    assert "asked__b" not in table
    assert numbers(table["loss"]) == [1.0, 0.5, 0.25]
    assert "a: [99, 99, 99] steps: [7, 7, 7]" in done.out


def test_x27_rows_are_chosen_once_even_without_a_seed(bench: Bench) -> None:
    done = bench.launch("x27_without_a_seed.py", "--workers", "3")
    table = check_finished(done, 18)
    assert "dealt: [0, 1, 2, 3, 4, 5]" in done.out
    drawn = table[table["scan"] == "1"]
    assert drawn["a"].nunique() == 12
    assert [int(row) for row in drawn["row"]] == list(range(12))
    assert sorted(int(value) for value in table[table["scan"] != "1"]["a"]) == [0, 1, 2, 3, 4, 5]


def test_x29_a_row_is_the_same_row_on_any_number_of_workers(bench: Bench) -> None:
    for done in equal_for(bench, "x29_row_identity.py", 1, 3):
        table = check_finished(done, 12)
        assert [int(row) for row in table["row"]] == list(range(12))
        assert table["_trial_id"].nunique() == 12


def test_x31_a_name_never_leads_out_of_the_folder(bench: Bench) -> None:
    around = sorted(os.listdir(bench.home.parent))
    before = set(os.listdir(bench.home))
    done = bench.launch("x31_experiment_names.py")
    table = check_finished(done, 8)
    assert [int(scan) for scan in table["scan"]] == list(range(1, 9))
    assert done.out.count("1 row of") == 8
    assert sorted(os.listdir(bench.home.parent)) == sorted([*around, bench.runs.name])
    assert sorted(os.listdir(bench.runs)) == ["sweep"]
    assert not os.path.exists("/talos-x31")
    new = set(os.listdir(bench.home)) - before
    assert {"a", "x_scan", "é 漢 字", "up"} <= new
    assert not any("\\" in name or ":" in name for name in new), new
    results = [path.parent for path in bench.home.rglob("results.csv")]
    assert len(results) == 8
    assert all(folder.parent != bench.home for folder in results), "no run lies in the project folder itself"


# -- Q: threads (Q03 is in test_resume.py) ----------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["first", "last"])
def test_q01_the_others_do_not_wait_for_a_long_row(bench: Bench, which: str) -> None:
    table = check_finished(bench.launch("q01_one_long_row.py", "--workers", "2", args=[which]), 6)
    long = table["loss"] == "8.0"
    ends = pd.to_datetime(table["end"], format="ISO8601")
    assert ends[~long].max() < ends[long].iloc[0]
    if which == "first":
        assert set(table[~long]["worker"]).isdisjoint(table[long]["worker"])


def test_q05_a_list_as_one_value_is_one_cell(bench: Bench) -> None:
    done = bench.launch("q05_lists_as_one_value.py")
    table = check_finished(done, 4)
    assert set(table["colours"]) == {"[[0, 0, 0], [255, 0, 0]]"}
    assert set(table["mean"]) == {"[0.125, 0.25, 0.5]"}
    assert set(table["path"]) == {"['./w/']"}
    assert all(cell.count(",") == 39 for cell in table["weights"])
    assert sorted(table["round_epochs"]) == ["1", "1", "2", "2"]
    keys = ["colours", "mean", "weights", "path", "lr", "stops"]
    at = list(table.columns).index("colours")
    assert list(table.columns[at : at + 6]) == keys
    assert "4 rows 2 colours ['./w/']" in done.out, "lists again in the script"


def test_q07_a_reducer_passes_over_rows_without_a_number(bench: Bench) -> None:
    done = bench.launch("q07_nan_and_reduction.py")
    assert done.code == 0, done.err
    table = done.table
    assert set(table["status"]) == {"completed"}
    assert "taken away by reduction_method" in done.err
    counts = table["a"].value_counts()
    assert counts["9"] == 12
    assert counts["0"] < 12
    made_up = table[table["c"] == "2"]
    assert len(made_up)
    assert set(made_up["val_acc"]) == {""}


def test_q09_no_metric_is_taken_for_granted(bench: Bench) -> None:
    done = bench.launch("q09_no_accuracy.py")
    check_finished(done, 4)
    assert "best slope 3" in done.out
    assert "lowest 0" in done.out
    assert "of 4" in done.out
    assert "entropy of ['loss']" in done.out


def test_q11_a_bare_string_is_refused_by_its_key(bench: Bench) -> None:
    done = bench.launch("q11_bare_string.py")
    check_no_trial(done)
    assert "'out_act'" in done.error_line
    assert not done.folder.exists()


def test_q13_a_nested_list_is_one_value(bench: Bench) -> None:
    done = bench.launch("q13_nested_list.py")
    table = check_finished(done, 5)
    assert list(table["neurons"]) == ["16", "[16]", "16", "[16]", "[8, 4]"]
    assert numbers(table["loss"]) == [8, 16, 8, 16, 12]
    assert "both [16, [16], [8, 4]]" in done.out


def test_q15_eight_inputs_and_a_space_of_ten_to_the_42(bench: Bench) -> None:
    done = bench.launch("q15_many_heads.py", args=["3"])
    table = check_finished(done, 3)
    assert set(table["heads"]) == {"8"}
    assert len(table.drop_duplicates([f"k{number:02d}" for number in range(42)])) == 3


def test_q15_a_share_of_ten_to_the_42_that_is_less_than_a_row_is_refused(bench: Bench) -> None:
    done = bench.launch("q15_many_heads.py", args=["0." + "0" * 44 + "1"])
    check_no_trial(done)
    assert "fraction_limit" in done.error_line


def test_q17_an_index_out_of_order_does_not_matter(bench: Bench) -> None:
    done = bench.launch("q17_shuffled_index.py", "--workers", "2")
    table = check_finished(done, 3)
    order = np.random.default_rng(4).permutation(10)[:7]
    assert set(numbers(table["loss"])) == {0.0}
    assert set(table["train"]) == {"7"}
    assert set(table["val"]) == {"3"}
    assert np.allclose(numbers(table["order"]), sum(value * 10.0**-at for at, value in enumerate(order)))


def test_q19_several_inputs_and_outputs_keep_their_shapes(bench: Bench) -> None:
    done = bench.launch("q19_several_in_and_out.py")
    table = check_finished(done, 3)
    sizes = [182, 243, 62, 61, 62, 83, 22, 21]  # size * 10 + dimensions
    for at, size in enumerate(sizes):
        assert set(table[f"size_{at}"]) == {str(size)}


def test_q21_an_old_call_runs_with_warnings_that_name_the_version(bench: Bench) -> None:
    done = bench.launch("q21_renamed_arguments.py")
    check_finished(done, 3)
    for name in ("dataset_name", "experiment_no", "experiment_name", "grid_downsample", "fraction_limit"):
        assert name in done.err
    told = done.err + "".join(path.read_text() for path in done.folder.glob("workers/*/limits.json"))
    assert "2.0.10" in told, "which Talos the image has"


def test_q23_a_share_of_less_than_a_row_is_refused_with_the_size(bench: Bench) -> None:
    done = bench.launch("q23_fraction_of_eight.py", args=[".1"])
    check_no_trial(done)
    assert "fraction_limit" in done.error_line
    assert "8" in done.error_line


def test_q23_a_whole_number_as_share_is_a_count_and_is_warned_of(bench: Bench) -> None:
    done = bench.launch("q23_fraction_of_eight.py", args=["1"])
    check_finished(done, 1)
    assert "fraction_limit" in done.err
    assert "1.0" in done.err, "how to write all of them"


def test_q25_a_leak_costs_rows_and_not_the_sweep(bench: Bench) -> None:
    done = bench.launch("q25_leaks.py", "--workers", "1", "--memory", "400m")
    assert done.code == 3, done.err
    table = done.table
    assert [int(row) for row in table["row"]] == list(range(14))
    lost = table[table["status"] == "lost"]
    assert 1 <= len(lost) <= 3
    assert set(lost["cause"]) == {"host-oom"}
    assert set(table[table["status"] != "lost"]["status"]) == {"completed"}
    assert f"{14 - len(lost)} rows completed, {len(lost)} lost" in done.out


def test_q27_a_seed_gives_the_same_rows_and_numbers_on_any_number_of_workers(bench: Bench) -> None:
    for done in equal_for(bench, "q27_seeded_noise.py", 1, 3):
        table = check_finished(done, 9)
        assert table["noise"].nunique() == 9, "each row has a seed of its own"


def test_q29_functions_are_left_out_of_correlations_and_have_names(bench: Bench) -> None:
    done = bench.launch("q29_functions_in_correlations.py")
    assert done.code == 0, done.err
    table = done.table
    assert set(table["status"]) == {"completed"}
    assert "taken away by reduction_method" in done.err
    assert "0x" not in "".join(table["activation"]) + "".join(table["optimizer"])
    assert all(cell.endswith(("tanh", "relu")) for cell in table["activation"])
    assert "units" in done.out
    assert "activation" not in done.out.split("correlations of")[1]


def test_q31_data_is_read_inside_the_model_on_every_worker(bench: Bench) -> None:
    done = bench.launch("q31_reads_its_own_data.py", "--workers", "2")
    table = check_finished(done, 4)
    folder = bench.home / "data_s05"
    lines = sum(len(path.read_text().splitlines()) - 1 for path in folder.iterdir())
    assert {int(float(value)) for value in table["count"]} == {lines}
    assert set(table["own"]) == {"2"}


def test_q33_a_shard_is_swept_as_it_is(bench: Bench) -> None:
    first, other = equal_for(bench, "q33_a_shard_as_params.py", 1, 2)
    table = check_finished(first, 5)
    assert "5 of 5 rows" in first.out
    assert len(table.drop_duplicates(["a", "b"])) == 5
    assert table["_trial_id"].nunique() == 5
    check_finished(other, 5)
    (metadata,) = (other.folder / "talos" / "q33").glob("*/metadata.json")
    assert json.loads(metadata.read_text())["details"]["rounds"] == 5
