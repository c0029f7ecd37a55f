"""Plan and shard parameter spaces, beside Talos's own classes, each case in a process of its own.

    python benchmarks/planning.py            # needs Talos in this Python

Prints CPU seconds and peak resident MiB of each case (imports included in the memory, not in the time), and the ratio.
"""

from __future__ import annotations

import json
import subprocess
import sys

# (what, combinations, machines to shard for; 0: the space alone)
CASES = [
    ("space", 10**5, 0),
    ("space", 10**6, 0),
    ("shards", 10**5, 64),
    ("shards", 10**6, 64),
    ("space", 10**9, 0),
    ("space", 10**18, 0),
    ("shards", 10**18, 64),
]
TALOS_LARGEST = 10**6  # it builds every combination

CODE = """
import json, resource, sys, time
owner, combinations, machines = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if owner == "talos":
    from talos.parameters.ParamSpace import ParamSpace
    from talos.parameters.DistributeParamSpace import DistributeParamSpace
else:
    from orchestrator import DistributeParamSpace, ParamSpace
params = {f"k{number}": list(range(10)) for number in range(len(str(combinations)) - 1)}
began = time.process_time()
if machines:
    shards = DistributeParamSpace(params, machines=machines, seed=1).param_spaces
    last = shards[machines - 1]
    row = last.param_space[0]
else:
    space = ParamSpace(params, seed=1)
    row = space.param_space[combinations - 1]
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "peak": peak}))
"""


def measure(owner: str, combinations: int, machines: int) -> dict[str, float] | None:
    """Run one case; None where Talos is not asked (too large) or not there."""
    if owner == "talos" and (combinations > TALOS_LARGEST or (machines and combinations * machines > 10**7)):
        return None
    done = subprocess.run(
        [sys.executable, "-c", CODE, owner, str(combinations), str(machines)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Print the table."""
    print("| what | combinations | machines | Talos s | Talos MiB | ours s | ours MiB | times faster |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for what, combinations, machines in CASES:
        talos, ours = measure("talos", combinations, machines), measure("ours", combinations, machines)
        assert ours is not None
        theirs = ("-", "-", "-")
        if talos is not None:
            theirs = (f"{talos['seconds']:.2f}", f"{talos['peak']:.0f}", f"{talos['seconds'] / ours['seconds']:.0f}")
        power = len(str(combinations)) - 1
        print(
            f"| {what} | 10^{power} | {machines or '-'} | {theirs[0]} | {theirs[1]} | {ours['seconds']:.4f} "
            f"| {ours['peak']:.0f} | {theirs[2]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
