"""Parts of GPUs, held by living sweeps and by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from orchestrator.leases import BusyError, holders, leased


def never(holder):
    return False


def lease(place, parts, sweep="mine", still_runs=never):
    return leased(parts, sweep, f"/runs/{sweep}", "here", still_runs, place=str(place))


def test_two_halves_fit_and_a_third_does_not(tmp_path):
    place = tmp_path / "leases"
    with lease(place, {"GPU-1": 0.5}, "one"), lease(place, {"GPU-1": 0.5, "GPU-2": 1.0}, "two"):
        with pytest.raises(BusyError, match=r"GPU GPU-1: 100% of it is in use by one \(pid \d+\), two \(pid") as caught:
            lease(place, {"GPU-1": 0.1}, "three").__enter__()
        assert "--wait-for-gpu SECONDS" in str(caught.value)
        with lease(place, {"GPU-3": 1.0}, "three"):
            assert [each.sweep for each in sorted(holders(never, str(place)), key=lambda each: each.sweep)] == [
                "one", "three", "two",
            ]  # fmt: skip
    assert holders(never, str(place)) == []
    assert [path.name for path in place.iterdir()] == ["lock"]


def test_nothing_is_written_for_a_sweep_without_gpus(tmp_path):
    with lease(tmp_path / "leases", {}):
        assert not (tmp_path / "leases").exists()


def test_every_user_can_lease_and_nobody_can_remove_anothers(tmp_path):
    place = tmp_path / "leases"
    with lease(place, {"GPU-1": 1.0}):
        assert place.stat().st_mode & 0o7777 == 0o1777
        assert {oct(path.stat().st_mode & 0o777) for path in place.glob("*.json")} == {"0o644"}
        assert (place / "lock").stat().st_mode & 0o777 == 0o666


HOLD = """
import os, signal, sys
from orchestrator.leases import leased
with leased({"GPU-1": 1.0}, "dead", "/runs/dead", "there", lambda holder: False, place=sys.argv[1]):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_dead_owner_holds_nothing_unless_its_workers_still_run(tmp_path):
    place = tmp_path / "leases"
    done = subprocess.run([sys.executable, "-c", HOLD, str(place)], capture_output=True, text=True, check=False)
    assert done.stdout == "held\n"
    asked = []

    def still_runs(holder):
        asked.append((holder.folder, holder.engine))
        return True

    with pytest.raises(BusyError, match=r"in use by dead"):
        lease(place, {"GPU-1": 1.0}, still_runs=still_runs).__enter__()
    assert asked[0] == ("/runs/dead", "there")
    with lease(place, {"GPU-1": 1.0}):
        assert [each.sweep for each in holders(never, str(place))] == ["mine"]


def test_a_sweep_that_is_resumed_is_not_in_its_own_way(tmp_path):
    place = tmp_path / "leases"
    subprocess.run([sys.executable, "-c", HOLD, str(place)], capture_output=True, check=False)
    with lease(place, {"GPU-1": 1.0}, "dead", still_runs=lambda holder: holder.pid != os.getpid()):
        pass


def test_what_anybody_else_puts_there_is_passed_over(tmp_path):
    place = tmp_path / "leases"
    place.mkdir()
    (place / "a.json").write_text("{")
    (place / "b.json").write_text('{"parts": {"GPU-1": "x"}}')
    (place / "c.json").symlink_to("/etc/passwd")
    os.mkfifo(place / "d.json")
    with lease(place, {"GPU-1": 1.0}):
        pass
    assert {path.name for path in place.iterdir()} == {"a.json", "b.json", "c.json", "d.json", "lock"}


def test_a_lease_outlives_a_launch_that_could_not_end_its_workers(tmp_path):
    place = tmp_path / "leases"
    with lease(place, {"GPU-1": 1.0}, "stuck", still_runs=lambda holder: True):
        pass
    assert [each.sweep for each in holders(lambda holder: True, str(place))] == ["stuck"]
    assert holders(never, str(place)) == []
