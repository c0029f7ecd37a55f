"""One machine, divided: what is given out fits together, and what does not fit is refused with the numbers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from makers import GIB

from orchestrator.errors import EnvironmentNotReadyError, InputError, SettingsError
from orchestrator.plan.shares import CUDA_CONTEXT_MIB, Gpu, Machine, ShareRequest, plan_shares, resolve_gpus

MIB = 1024**2


def gpus(count, memory=80 * GIB):
    return tuple(
        Gpu(uuid=f"GPU-{number:04d}-abcd", index=number, name="H200", memory=memory) for number in range(count)
    )


def machine(cpus=16, memory=64 * GIB, devices=0):
    return Machine(cpus=cpus, memory=memory, gpus=gpus(devices))


def shares(request=None, on=None, **asked):
    return plan_shares(request or ShareRequest(**asked), on or machine())


def refusal(error=InputError, on=None, **asked):
    with pytest.raises(error) as caught:
        shares(on=on, **asked)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_even_split_leaves_a_reserve_and_a_part_for_the_driver():
    plan = shares(workers=4)
    assert {(each.cpus, each.threads) for each in plan.workers} == {(4.0, 4)}
    given_out = sum(each.memory for each in plan.workers) + plan.driver.memory
    assert given_out <= 64 * GIB * 0.85
    assert given_out > 64 * GIB * 0.84
    assert plan.notes == ()


def test_shared_memory_is_a_quarter_and_swap_is_none_of_ours():
    one = shares(workers=4).workers[0]
    assert one.shm == one.memory // 4
    assert shares(workers=4, shm=GIB).workers[0].shm == GIB


def test_without_a_number_there_are_two_workers_or_one_per_gpu():
    assert len(shares().workers) == 2
    assert len(shares(on=machine(cpus=1, memory=8 * GIB)).workers) == 1
    assert len(shares(on=machine(devices=3), gpus=("all",)).workers) == 3


def test_workers_are_spread_evenly_over_the_devices():
    plan = shares(on=machine(devices=2), gpus=("0", "1"), workers=4)
    assert [each.gpus for each in plan.workers] == [[gpu.uuid] for gpu in gpus(2)] * 2
    assert plan.driver.gpus == []


def test_a_worker_that_has_a_device_alone_is_not_limited_on_it():
    plan = shares(on=machine(devices=2), gpus=("all",), workers=3)
    assert plan.workers[1].gpu_fraction is None
    assert plan.workers[0].gpu_fraction == plan.workers[2].gpu_fraction
    assert 0.4 < plan.workers[0].gpu_fraction < 0.5


@given(
    count=st.integers(1, 12), workers=st.integers(1, 40), memory=st.integers(2 * GIB, 200 * GIB), cpus=st.integers(1, 256)
)  # fmt: skip
def test_fractions_and_contexts_fit_on_every_device(count, workers, memory, cpus):
    devices = gpus(count, memory)
    try:
        plan = shares(gpus=("all",), workers=workers, on=Machine(cpus=cpus, memory=4096 * GIB, gpus=devices))
    except InputError:
        assume(False)
    used, spread = Counter(), Counter()
    for each in plan.workers:
        part = 1 if each.gpu_fraction is None else each.gpu_fraction + CUDA_CONTEXT_MIB * MIB / memory
        assert part > 0
        assert each.gpu_fraction is None or each.gpu_fraction > 0
        used[each.gpus[0]] += part
        spread[each.gpus[0]] += 1
    assert all(part <= 1 + 1e-9 for part in used.values())
    assert max(spread.values()) - min(spread.values()) <= 1


@given(workers=st.integers(1, 64), cpus=st.integers(1, 128), memory=st.integers(GIB, 1024 * GIB))
def test_what_is_given_out_is_there(workers, cpus, memory):
    try:
        plan = shares(workers=workers, on=machine(cpus=cpus, memory=memory))
    except InputError:
        return
    assert sum(each.memory for each in plan.workers) + plan.driver.memory <= memory - GIB
    assert sum(each.cpus for each in plan.workers) <= cpus + 0.001 * workers
    assert [each.worker for each in plan.workers] == list(range(workers))


def test_more_threads_than_cores_are_told():
    assert "take turns" in shares(workers=8, on=machine(cpus=4)).notes[0]


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(workers):
    assert refusal(SettingsError, workers=workers) == f"--workers {workers}: give at least 1"


def test_memory_that_does_not_fit_is_refused_with_the_numbers():
    message = refusal(workers=8, memory=10 * GIB)
    assert all(part in message for part in ("--memory 10.0 GiB", "8 workers", "80.0 GiB", "54.4 GiB", "64.0 GiB"))


def test_memory_that_no_backend_can_live_in_is_refused():
    assert "at least 256 MiB" in refusal(workers=1, memory=100 * MIB)


def test_workers_that_would_starve_are_refused_with_what_each_would_have():
    message = refusal(workers=300)
    assert message.startswith("--workers 300: each would have 185 MiB of this engine's 64.0 GiB")


@pytest.mark.parametrize("cpus", [0, -1.0, 17, float("inf"), float("nan")])
def test_cores_that_are_not_there_are_refused(cpus):
    assert "this engine has 16" in refusal(workers=1, cpus=cpus)


def test_no_threads_are_refused():
    assert "--threads 0" in refusal(SettingsError, workers=1, threads=0)


def test_too_many_workers_for_a_device_are_refused_with_the_numbers():
    message = refusal(gpus=("0",), workers=14, on=Machine(cpus=64, memory=512 * GIB, gpus=gpus(1, 8 * GIB)))
    assert message.startswith("14 workers do not fit on H200 (8.0 GiB): each needs 600 MiB")


@pytest.mark.parametrize(
    ("asked", "indices"),
    [
        ((), []), (("none",), []), (("all",), [0, 1, 2]), (("2", "0"), [2, 0]), (("GPU-0001-abcd",), [1]),
        (("GPU-0002",), [2]),
    ],
)  # fmt: skip
def test_devices_are_named_by_index_uuid_or_its_beginning(asked, indices):
    assert [gpu.index for gpu in resolve_gpus(asked, gpus(3))] == indices


@pytest.mark.parametrize("asked", ["3", "GPU-000", "GPU-9999", "H200", "-1", "0 ", "all"])
def test_an_unknown_device_is_refused_with_those_there_are(asked):
    with pytest.raises(InputError, match=r"no such GPU here; there are: 0 \(GPU-0000-abcd\), 1 \(GPU-0001-abcd\)"):
        resolve_gpus(("0", asked), gpus(2))


def test_a_device_is_named_once():
    with pytest.raises(InputError, match="GPU GPU-0001-abcd is named twice"):
        resolve_gpus(("1", "GPU-0001-abcd"), gpus(2))


def test_without_a_driver_the_way_out_is_named():
    with pytest.raises(EnvironmentNotReadyError, match=r"--gpus 0,1: .*leave out --gpus to run on the CPU"):
        resolve_gpus(("0", "1"), ())
    assert resolve_gpus(("none",), ()) == ()
