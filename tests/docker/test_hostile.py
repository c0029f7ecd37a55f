"""Trials that misbehave, by carelessness or on purpose: each costs itself, and reaches nothing outside."""

from __future__ import annotations

import os

import pytest

from tests.conftest import Bench

HEAD = "import os, sys, time, talos\ndef model(x, y, xv, yv, p):\n"
SCAN = "talos.Scan([1], [1], {'a': [0, 1, 2, 3, 4, 5]}, model, 'hostile', x_val=[1], y_val=[1], multi_input=True)\n"
END = "    return {'loss': [float(p['a'])]}, None\n"


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


def launch(bench: Bench, body: str, *options: str):
    (bench.home / "hostile.py").write_text(HEAD + body + END + SCAN)
    return bench.launch("hostile.py", *options)


def test_a_forked_child_that_comes_back_does_not_speak_for_the_trial(bench: Bench) -> None:
    body = "    if p['a'] == 1 and os.fork() == 0:\n        time.sleep(0.3)\n        raise SystemExit\n    time.sleep(0.2)\n"
    done = launch(bench, body, "--workers", "1")
    assert done.code == 0, done.err
    assert [record["row"] for record in done.records(0)] == [0, 1, 2, 3, 4, 5]


def test_the_engines_socket_is_never_mounted(bench: Bench) -> None:
    body = "    assert not os.path.exists('/var/run/docker.sock')\n    assert not os.path.exists('/run/docker.sock')\n"
    done = launch(bench, body)
    assert done.code == 0, done.err
    assert "mounted" not in done.err
    refused = bench.launch("hostile.py", "--mount", "/var/run/docker.sock", name="asked")
    assert refused.code == 2
    assert "never mounted" in refused.error_line


def test_a_models_folder_replaced_by_a_link_is_not_followed(bench: Bench) -> None:
    secret = bench.home.parent / "secret"
    secret.mkdir()
    (secret / "0.pkl").write_bytes(b"mine")
    body = (
        f"    if not os.path.lexists('/talos-orch/run/scan-01/models'):\n"
        f"        os.symlink({str(secret)!r}, '/talos-orch/run/scan-01/models')\n"
    )
    done = launch(bench, body.replace("    return", ""), "--workers", "1")
    assert done.code == 0, done.err
    assert not list(done.folder.glob("driver/scan-01/models/*"))


@pytest.mark.parametrize(
    "body",
    [
        "    if p['a'] == 1: p[0] = 1\n",
        "    if p['a'] == 1: p['self'] = p\n",
        "    if p['a'] == 1: raise KeyboardInterrupt\n",
        "    if p['a'] == 1: sys.exit(7)\n",
        "    if p['a'] == 1: raise BaseException('odd')\n",
        "    if p['a'] == 1: os._exit(3)\n",
        "    if p['a'] == 1: sys.stdout.close()\n",
    ],
)
def test_an_odd_trial_costs_at_most_itself(bench: Bench, body: str) -> None:
    done = launch(bench, body, "--workers", "2")
    assert done.code in (0, 3), done.err
    assert [int(row) for row in done.table["row"]] == list(range(6))
    assert (done.table["status"] == "completed").sum() >= 5


def test_what_a_killed_trial_left_in_shared_memory_is_cleared(bench: Bench) -> None:
    body = (
        "    name = '/dev/shm/left'\n"
        "    if p['a'] == 1:\n"
        "        with open(name, 'wb') as stream:\n"
        "            stream.write(b'x' * (8 << 20))\n"
        "        os.kill(os.getpid(), 9)\n"
        "    assert not os.path.exists(name)\n"
    )
    done = launch(bench, body, "--workers", "1")
    assert done.code == 3, done.err
    assert list(done.table["status"]).count("completed") == 5


def test_a_full_shared_memory_is_named_as_the_cause(bench: Bench) -> None:
    body = (
        "    if p['a'] == 1:\n"
        "        with open('/dev/shm/big', 'wb') as stream:\n"
        "            stream.write(b'x' * (64 << 20))\n"
    )
    done = launch(bench, body, "--workers", "1", "--shm-size", "16m")
    assert done.code == 3, done.err
    assert "shm" in set(done.table["cause"])


def test_files_of_our_kind_that_a_trial_makes_change_nothing(bench: Bench) -> None:
    body = (
        "    run = '/talos-orch/run/'\n"
        "    open(run + 'scan-01/queue/no-chunk', 'w').close()\n"
        "    open(run + 'scan-01/queue/00000000000000000099-00000000000000000099.1', 'w').close()\n"
        "    if not os.path.exists(run + 'pipe'):\n"
        "        os.mkfifo(run + 'pipe')\n"
    )
    done = launch(bench, body, "--workers", "1")
    assert done.code == 0, done.err
    assert [int(row) for row in done.table["row"]] == list(range(6))


def test_a_very_long_experiment_name_is_shortened(bench: Bench) -> None:
    (bench.home / "long.py").write_text(HEAD + END + SCAN.replace("'hostile'", "'x' * 300"))
    done = bench.launch("long.py")
    assert done.code == 0, done.err
    assert all(len(os.fsencode(path.name)) < 256 for path in bench.home.iterdir())
