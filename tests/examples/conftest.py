"""Tests with real backends: the examples and the larger cases, against plain Talos in the same image."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pandas as pd
import pytest

from tests.conftest import EXAMPLES, Bench

TIMES = ["start", "end", "duration", "execution_time"]
OURS = ["row", "worker", "gpu", "attempt", "status", "cause"]
# What a worker gets too: the number of threads is the one thing that can change the last bit of a result.
PLAIN_ENVIRONMENT = {
    "HOME": "/tmp", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE",
    "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": "-1", "MPLBACKEND": "Agg",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _image(cpu_image: str) -> None:
    """Every test here starts containers."""


@pytest.fixture
def examples(bench: Bench) -> Bench:
    """The bench with the examples beside the cases."""
    for script in EXAMPLES.glob("*.py"):
        shutil.copy(script, bench.home)
    return bench


@pytest.fixture(scope="session")
def backends_here() -> str:
    """The process engine uses this Python: it needs the backends (`make venv` installs them)."""
    missing = [name for name in ("talos", "tensorflow", "torch") if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"CI=true and this Python lacks {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"this Python lacks {', '.join(missing)}: make venv")
    return ""


@pytest.fixture(scope="session")
def plain_talos(cpu_image: str) -> Iterator:
    """Run an example once under plain Python and plain Talos in the worker image; its table, as text."""
    client = docker.from_env()
    known: dict[str, tuple[pd.DataFrame, str]] = {}

    def run(name: str) -> tuple[pd.DataFrame, str]:
        if name not in known:
            known[name] = _run_plain(client, cpu_image, name)
        return known[name]

    yield run
    client.close()


def _run_plain(client: docker.DockerClient, image: str, name: str) -> tuple[pd.DataFrame, str]:
    with tempfile.TemporaryDirectory() as folder:
        output = run_script(client, image, EXAMPLES / f"{name}.py", folder)
        (path,) = Path(folder).glob("*/*/results.csv")
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.map(without_address), output


@pytest.fixture
def plain_output(cpu_image: str, tmp_path: Path) -> Iterator:
    """Run a script under plain Python and plain Talos in the worker image; what it prints."""
    client = docker.from_env()
    folder = tmp_path / "plain"
    folder.mkdir()
    yield lambda script, *arguments: run_script(client, cpu_image, script, str(folder), *arguments)
    client.close()


def run_script(client: docker.DockerClient, image: str, script: Path, folder: str, *arguments: str) -> str:
    shutil.copy(script, folder)
    output = client.containers.run(
        image, ["python3", script.name, *arguments], working_dir=folder, user=f"{os.getuid()}:{os.getgid()}", init=True,
        environment=PLAIN_ENVIRONMENT, volumes={folder: {"bind": folder, "mode": "rw"}}, remove=True, stderr=False,
    )  # fmt: skip
    return output.decode()


def without_address(cell: str) -> str:
    """Write a class or function as we do: Talos's own table has its repr, with an address in it for functions."""
    found = re.fullmatch(r"<class '(.+)'>|<function (\S+) at 0x[0-9a-f]+>", cell)
    return (found.group(1) or found.group(2)) if found else cell
