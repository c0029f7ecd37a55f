"""Each example gives, on any number of workers and on either engine, the table that plain Talos gives."""

from __future__ import annotations

import json

import docker
import pandas as pd
import pytest

from tests.conftest import Bench, Done, recorded_rows, wait_until
from tests.examples.conftest import OURS, TIMES

NAMES = ["iris_torch", "digits_torch", "iris_keras"]


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Everything but when and by whom a row was run."""
    return table.drop(columns=[*TIMES, *(name for name in OURS if name in table)])


def check_finished(done: Done, rows: int) -> None:
    assert done.code == 0, done.err
    assert list(done.table["status"]) == ["completed"] * rows
    assert [int(row) for row in done.table["row"]] == list(range(rows))


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_the_merged_table_is_that_of_plain_talos(examples: Bench, plain_talos, name: str, workers: int) -> None:
    plain, output = plain_talos(name)
    # One thread for each worker, whatever their number: see PLAIN_ENVIRONMENT.
    done = examples.launch(f"{name}.py", "--workers", str(workers), "--threads", "1")
    check_finished(done, len(plain))
    assert list(done.table.columns) == [*plain.columns, *OURS]
    pd.testing.assert_frame_equal(comparable(done.table), comparable(plain))
    assert done.out == output, "what the script prints after its Scan"
    used = {int(worker) for worker in done.table["worker"]}
    assert used <= set(range(workers))
    backend = "torch" if "torch" in name else "keras"
    for worker in used:
        limits = json.loads((done.folder / "workers" / f"{worker:02d}" / "limits.json").read_text())
        assert backend in limits["backends"]
        if backend == "torch":
            assert limits["backends"]["torch"]["intra"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_process_engine_gives_the_same_table(examples: Bench, plain_talos, backends_here, name: str) -> None:
    plain, _ = plain_talos(name)
    done = examples.launch(f"{name}.py", "--workers", "2", "--threads", "1", "--engine", "process")
    check_finished(done, len(plain))
    assert "not limited" in done.err, "the process engine says what it cannot enforce"
    pd.testing.assert_frame_equal(comparable(done.table), comparable(plain))


def test_only_the_best_models_are_kept(examples: Bench) -> None:
    done = examples.launch("iris_torch.py", "--keep-models", "best:1")
    check_finished(done, 12)
    # A Torch module is kept twice: its weights as Talos keeps them, and whole.
    files = (done.folder / "driver/scan-01/models").iterdir()
    kept = sorted(path for path in files if not path.name.endswith(".module.pt"))
    assert 1 <= len(kept) <= 3, "one for each of three metrics at most"
    records = [json.loads(line) for line in (done.folder / "driver/scan-01/trials.jsonl").read_text().splitlines()]
    assert {f"{record['row']}.pt" for record in records if record["model"]} == {path.name for path in kept}


def test_without_kept_models_the_best_is_trained_again(examples: Bench) -> None:
    with_model = examples.launch("iris_torch.py", name="kept")
    without = examples.launch("iris_torch.py", "--keep-models", "none", name="none")
    assert without.code == 0, without.err
    assert "training that row again" in without.err
    assert without.out == with_model.out


@pytest.mark.parametrize("name", ["digits_torch", "iris_keras"])
def test_an_interrupted_sweep_gives_the_same_table(examples: Bench, plain_talos, name: str) -> None:
    """A worker's container is killed in the middle; its rows go to the other and to its replacement."""
    plain, _ = plain_talos(name)
    process = examples.start(f"{name}.py", "--workers", "2", "--threads", "1")
    client = docker.from_env()
    labels = {"label": [f"talos-orch.folder={examples.runs / 'sweep'}", "talos-orch.member=w01"]}
    wait_until(lambda: recorded_rows(examples.runs / "sweep") >= 3, "three rows")
    (container,) = client.containers.list(filters=labels)
    container.kill()
    wait_until(lambda: any(each.id != container.id for each in client.containers.list(filters=labels)), "a replacement")
    client.close()
    done = examples.finish(process)
    check_finished(done, len(plain))
    assert "worker 1 ended" in done.err
    pd.testing.assert_frame_equal(comparable(done.table), comparable(plain))


@pytest.mark.parametrize(
    ("name", "engine"), [("digits_torch", "docker"), ("iris_keras", "docker"), ("iris_torch", "process")]
)
def test_a_sweep_whose_launch_is_killed_and_resumed_gives_the_same_table(
    examples: Bench, plain_talos, backends_here, name: str, engine: str
) -> None:
    """The coordinator dies without a word, and with it whatever was in hand; other workers go on."""
    plain, output = plain_talos(name)
    process = examples.start(f"{name}.py", "--workers", "2", "--threads", "1", "--engine", engine)
    wait_until(lambda: recorded_rows(examples.runs / "sweep") >= 3, "three rows")
    process.kill()
    examples.finish(process)
    done = examples.resume("--workers", "3")
    check_finished(done, len(plain))
    pd.testing.assert_frame_equal(comparable(done.table), comparable(plain))
    assert done.out == output
