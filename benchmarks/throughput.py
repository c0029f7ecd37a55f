"""Rows per second of N training containers: plain ``docker run``, the best setting found by hand, and a sweep's shares.

    python benchmarks/throughput.py [--workers 4] [--rows 16] [--kind torch-mlp …]

Each setting trains the same model on the same rows in the worker image, N containers at a time, from the first row's start to the
last row's end. Those by hand wait for one another's imports before they begin; the workers of a sweep do not. Prints a table with
ratios to the best setting found by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import docker

WORK = """
def train(kind, seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    if kind.startswith("torch"):
        import torch
        torch.manual_seed(seed)
        if kind == "torch-mlp":
            x = torch.from_numpy(rng.normal(size=(256, 64)).astype("float32"))
            net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
            steps = 300
        else:
            x = torch.from_numpy(rng.normal(size=(16, 3, 32, 32)).astype("float32"))
            net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3), torch.nn.Flatten(),
                                      torch.nn.Linear(32 * 28 * 28, 1))
            steps = 10
        y = torch.zeros(len(x), 1)
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        return float(loss)
    import keras
    keras.utils.set_random_seed(seed)
    x = rng.normal(size=(2048, 64)).astype("float32")
    net = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(1)])
    net.compile("adam", "mse")
    return net.fit(x, x[:, :1], epochs=3, batch_size=64, verbose=0).history["loss"][-1]
"""

PLAIN = """
import glob, json, sys, time
sys.path.insert(0, "/bench")
from work import train
kind, number, workers = sys.argv[1], sys.argv[3], int(sys.argv[4])
rows = [int(row) for row in sys.argv[2].split(",")]
train(kind, 0)  # imports and first-time costs
open(f"/bench/ready-{number}", "w").close()
while len(glob.glob("/bench/ready-*")) < workers:  # nobody's imports are in anybody's time
    time.sleep(0.01)
begun = time.time()
for row in rows:
    train(kind, row)
print(json.dumps([begun, time.time()]))
"""

SWEEP = """
import sys, talos
from work import train
kind, rows = sys.argv[1], int(sys.argv[2])
def model(x, y, xv, yv, p):
    return {"loss": [train(kind, p["row"])]}, None
train(kind, 0)
talos.Scan([1], [1], {"row": list(range(rows))}, model, "throughput", x_val=[1], y_val=[1], multi_input=True,
           clear_session=False, save_weights=False)
"""

ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}  # fmt: skip
BY_HAND: dict[str, dict[str, str]] = {
    "docker run, defaults": {},
    "1 thread": ONE_THREAD,
    "1 thread, passive waiting": {**ONE_THREAD, "OMP_WAIT_POLICY": "PASSIVE"},
    "defaults, passive waiting": {"OMP_WAIT_POLICY": "PASSIVE"},
}


def by_hand(image: str, folder: str, kind: str, rows: int, workers: int, variables: dict[str, str]) -> float:
    """Run N containers side by side, each with every N-th row; rows per second."""
    client = docker.from_env()
    environment = {"HOME": "/tmp", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", **variables}  # noqa: S108
    started = [
        client.containers.run(
            image,
            ["python3", "/bench/plain.py", kind, ",".join(map(str, range(number, rows, workers))), str(number), str(workers)],
            detach=True, environment=environment, volumes={folder: {"bind": "/bench", "mode": "rw"}},
            user=f"{os.getuid()}:{os.getgid()}",
        )
        for number in range(workers)
    ]  # fmt: skip
    times = []
    for container in started:
        container.wait(timeout=None)
        times.append(json.loads(container.logs(stdout=True, stderr=False).splitlines()[-1]))
        container.remove()
    client.close()
    for path in Path(folder).glob("ready-*"):
        path.unlink()
    return rows / (max(end for _, end in times) - min(begun for begun, _ in times))


def by_shares(folder: str, kind: str, rows: int, workers: int) -> float:
    """Run a sweep; rows per second between its first row's start and its last row's end."""
    runs = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "orchestrator.cli", "launch", "sweep.py", "--workers", str(workers), "--name", "t",
               "--runs", str(runs), "--keep-models", "none", "--", kind, str(rows)]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    lines = (runs / "t/driver/scan-01/trials.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    from datetime import datetime

    begun = min(datetime.fromisoformat(record["start"]) for record in records)
    ended = max(datetime.fromisoformat(record["end"]) for record in records)
    return rows / (ended - begun).total_seconds()


def rates_of(image: str, kind: str, rows: int, workers: int) -> dict[str, float]:
    """Measure one kind of model under every setting, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("work.py", WORK), ("plain.py", PLAIN), ("sweep.py", SWEEP)):
            Path(folder, name).write_text(text)
        rates = {name: by_hand(image, folder, kind, rows, workers, variables) for name, variables in BY_HAND.items()}
        rates["a sweep's shares"] = by_shares(folder, kind, rows, workers)
    return rates


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--kind", action="append", choices=["torch-mlp", "torch-conv", "keras-mlp"])
    given = parser.parse_args()
    built = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", "build", "cpu"], check=True, capture_output=True, text=True
    )
    image = built.stdout.strip()
    print(f"{given.workers} workers on {os.cpu_count()} cores, {given.rows} rows")
    for kind in given.kind or ["torch-mlp", "torch-conv", "keras-mlp"]:
        rates = rates_of(image, kind, given.rows, given.workers)
        best = max(rate for name, rate in rates.items() if name in BY_HAND)
        print(f"\n{kind}")
        for name, rate in rates.items():
            print(f"  {name:28} {rate:8.2f} rows/s   {rate / best:5.2f} of the best by hand")


if __name__ == "__main__":
    main()
