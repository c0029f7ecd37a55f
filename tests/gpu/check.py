"""Shares of a real GPU, held and measured: see README.md beside this file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from orchestrator.engine.gpus import local_gpus, memory_by_process
from orchestrator.plan.devices import CUDA_CONTEXT_MIB, Gpu
from orchestrator.plan.sizes import MIB, show_size

CONTEXT = {
    "torch": "import torch, time; x = torch.ones(1, device='cuda'); torch.cuda.synchronize();"
    " print(torch.cuda.memory_reserved(), flush=True); time.sleep(6)",
    "tensorflow": "import os, time; os.environ['TF_FORCE_GPU_ALLOW_GROWTH'] = 'true'; import tensorflow as tf;"
    " x = tf.ones([1]) + 1; i = tf.config.experimental.get_memory_info('GPU:0'); print(i['peak'], flush=True); time.sleep(6)",
}
TRAIN = {
    "torch": """
def train(row, too_much):
    import torch
    if too_much:
        return float(torch.ones(too_much // 4, device="cuda").sum())
    net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)).cuda()
    x = torch.randn(4096, 512, device="cuda")
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(200):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    return float(loss)
""",
    "tensorflow": """
def train(row, too_much):
    import tensorflow as tf
    if too_much:
        return float(tf.reduce_sum(tf.ones([too_much // 4])))
    net = tf.keras.Sequential([tf.keras.Input((512,)), tf.keras.layers.Dense(1024, "relu"), tf.keras.layers.Dense(1)])
    net.compile("adam", "mse")
    x = tf.random.normal([4096, 512])
    return net.fit(x, x[:, :1], epochs=20, batch_size=1024, verbose=0).history["loss"][-1]
""",
}
SCAN = """
import sys, importlib, talos
importlib.import_module(sys.argv[1])
rows, greedy, too_much = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def model(x, y, xv, yv, p):
    return {"loss": [train(p["row"], too_much if p["row"] == greedy else 0)]}, None
talos.Scan([1], [1], {"row": list(range(rows))}, model, "gpu", x_val=[1], y_val=[1], multi_input=True, save_weights=False)
"""


@dataclass
class Sampler(threading.Thread):
    """The most that each process has had on the device while this runs, in bytes."""

    uuid: str
    peaks: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()

    def run(self) -> None:
        """Sample ten times a second."""
        while not self.ended.wait(0.1):
            for pid, used in memory_by_process([self.uuid]).get(self.uuid, {}).items():
                self.peaks[pid] = max(self.peaks[pid], used)

    __hash__ = threading.Thread.__hash__


class Checks:
    """What held and what did not."""

    def __init__(self) -> None:
        self.failed = 0

    def see(self, held: bool, what: str) -> None:
        """Print one line for a check."""
        self.failed += not held
        print(f"{'held  ' if held else 'FAILED'}  {what}")


def measure_context(gpu: Gpu, backend: str) -> float | None:
    """Give MiB that a process has on the device beyond its backend's own allocator; None where the driver does not tell."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu.uuid, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(
        [sys.executable, "-c", CONTEXT[backend]], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        own = int(process.stdout.readline())
        time.sleep(1)
        used = memory_by_process([gpu.uuid]).get(gpu.uuid, {}).get(process.pid)
    return None if used is None else (used - own) / MIB


def sweep(gpu: Gpu, backend: str, workers: int, rows: int, greedy: int = -1, too_much: int = 0) -> dict[str, Any]:
    """Run one sweep; its records, each worker's limits.json, and the peak of each process on the device."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scan.py").write_text(TRAIN[backend] + SCAN)
        sampler = Sampler(gpu.uuid)
        sampler.start()
        command = [sys.executable, "-m", "orchestrator.cli", "launch", "scan.py", "--engine", "process", "--gpus", gpu.uuid,
                   "--workers", str(workers), "--name", "check", "--keep-models", "none", "--keep-going",
                   "--", backend, str(rows), str(greedy), str(too_much)]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        sampler.ended.set()
        sampler.join()
        if done.returncode not in (0, 3):
            raise SystemExit(f"the sweep ended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
        run = Path(folder, "runs/check")
        records = [json.loads(line) for line in (run / "driver/scan-01/trials.jsonl").read_text().splitlines()]
        limits = [json.loads(path.read_text()) for path in sorted(run.glob("workers/*/limits.json"))]
    return {"records": records, "limits": limits, "peaks": sorted(sampler.peaks.values(), reverse=True)[:workers]}


def rate(records: list[dict[str, Any]]) -> float:
    """Give rows per second, from the first row's start to the last row's end."""
    times = [(datetime.fromisoformat(each["start"]), datetime.fromisoformat(each["end"])) for each in records]
    return len(times) / (max(end for _, end in times) - min(begun for begun, _ in times)).total_seconds()


def check(gpu: Gpu, backend: str, checks: Checks) -> None:
    """Run every check for one backend."""
    context = measure_context(gpu, backend)
    if context is not None:
        checks.see(
            context <= CUDA_CONTEXT_MIB, f"{backend}: a context takes {context:.0f} of {CUDA_CONTEXT_MIB} MiB reserved"
        )
    table, first = [], None
    for workers in (1, 2, 4):
        found = sweep(gpu, backend, workers, rows=8 * workers)
        completed = [record for record in found["records"] if record["status"] == "completed"]
        checks.see(len(completed) == 8 * workers, f"{backend}: {workers} worker(s) completed {len(completed)} rows")
        for limits in found["limits"]:
            checks.see(
                limits["mismatch"] is None
                and limits["gpus"] == [gpu.uuid]
                and limits["backends"][backend]["devices"] == 1,
                f"{backend}: a worker sees its own device alone and may take {limits['gpu_fraction'] or 'all'} of it",
            )
        fraction = found["limits"][0]["gpu_fraction"]
        if fraction is not None:
            most = fraction * gpu.memory + CUDA_CONTEXT_MIB * MIB
            checks.see(
                all(peak <= most for peak in found["peaks"]),
                f"{backend}: peaks of {workers} workers {[peak // MIB for peak in found['peaks']]} MiB are within {most / MIB:.0f}",
            )
        speed = rate(found["records"])
        first = first or speed
        peak = max(found["peaks"], default=0) // MIB
        table.append(f"| {backend} | {workers} | {fraction or 'all'} | {peak} | {speed:.2f} | {speed / first:.2f} |")
    greedy = sweep(gpu, backend, 2, rows=8, greedy=3, too_much=int(0.6 * gpu.memory))
    by_row = {record["row"]: record for record in greedy["records"]}
    checks.see(by_row[3]["cause"] == "gpu-oom", f"{backend}: a trial over its share fails as {by_row[3]['cause']}")
    others = [record["status"] for row, record in by_row.items() if row != 3]
    checks.see(set(others) == {"completed"}, f"{backend}: its {len(others)} neighbours completed")
    print(
        "\n| backend | workers | fraction | peak MiB of a process | rows/s | against one |\n| --- | --- | --- | --- | --- | --- |"
    )
    print("\n".join(table), "\n")


def main() -> int:
    """Check what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--backend", action="append", choices=sorted(TRAIN))
    given = parser.parse_args()
    gpus = [gpu for gpu in local_gpus() if given.gpu in (gpu.label, gpu.uuid)]
    if not gpus:
        print(f"no GPU {given.gpu} here: this check needs an NVIDIA GPU and its driver", file=sys.stderr)
        return 5
    (gpu,) = gpus
    print(f"{gpu.name}, {show_size(gpu.memory)}, {show_size(gpu.used)} in use by others\n")
    checks = Checks()
    for backend in given.backend or [name for name in sorted(TRAIN) if importlib.util.find_spec(name)]:
        check(gpu, backend, checks)
    print(f"{checks.failed} check(s) failed" if checks.failed else "everything held")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
