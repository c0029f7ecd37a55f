"""One machine, divided: what is given out fits together, and what does not fit is refused with the numbers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from makers import GIB

from orchestrator.errors import EnvironmentNotReadyError, InputError, SettingsError
from orchestrator.plan.cpus import Cpu, cut_cpus, parse_cpuset, show_cpuset
from orchestrator.plan.devices import CUDA_CONTEXT_MIB, DeviceRequest, Gpu, resolve_gpus
from orchestrator.plan.shares import Machine, ShareRequest, plan_shares

MIB = 1024**2


def gpus(count, memory=80 * GIB):
    return tuple(
        Gpu(uuid=f"GPU-{number:04d}-abcd", index=number, name="H200", memory=memory) for number in range(count)
    )


def machine(cpus=16, memory=64 * GIB, devices=0):
    return Machine(cpus=cpus, memory=memory, gpus=gpus(devices))


def shares(on=None, rows=None, gpus=(), per_worker=1, fraction=None, gpu_memory=None, **asked):
    devices = DeviceRequest(gpus=gpus, per_worker=per_worker, fraction=fraction, memory=gpu_memory)
    return plan_shares(ShareRequest(devices=devices, **asked), on or machine(), rows)


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


def with_topology(nodes=1, cores=8, threads=1):
    """A machine whose second hardware threads have the higher numbers, as Intel's do."""
    count = nodes * cores
    found = [
        Cpu(number=number + thread * count, core=number, node=number // cores)
        for number in range(count)
        for thread in range(threads)
    ]
    return Machine(cpus=len(found), memory=64 * GIB, gpus=gpus(4), topology=tuple(found))


def sets_of(plan):
    return [each.cpuset for each in plan.workers]


class TestCpuSets:
    def test_each_worker_has_whole_cores_of_its_own(self):
        assert sets_of(shares(on=with_topology(cores=4, threads=2), workers=2)) == ["0-1,4-5", "2-3,6-7"]
        assert sets_of(shares(on=with_topology(cores=4, threads=2), workers=4)) == ["0,4", "1,5", "2,6", "3,7"]

    def test_a_worker_stays_in_one_node_where_it_fits(self):
        plan = shares(on=with_topology(nodes=2, cores=8), workers=4)
        assert sets_of(plan) == ["0-3", "8-11", "4-7", "12-15"]
        assert {(each.cpus, each.threads) for each in plan.workers} == {(4.0, 4)}

    def test_what_does_not_go_into_whole_cpus_is_a_quota(self):
        plan = shares(on=with_topology(cores=2), workers=4)
        assert sets_of(plan) == [None] * 4
        assert plan.workers[0].cpus == 0.5

    def test_a_remainder_is_left_over_so_that_all_workers_are_alike(self):
        plan = shares(on=with_topology(cores=8), workers=3)
        assert {each.cpus for each in plan.workers} == {2.0}
        assert sets_of(plan) == ["0-1", "2-3", "4-5"]

    def test_workers_that_leave_cpus_unused_are_not_bound_unasked(self):
        assert sets_of(shares(on=with_topology(cores=8), workers=2, cpus=2)) == [None, None]
        assert sets_of(shares(on=with_topology(cores=8), workers=2, cpus=2, cpuset="auto")) == ["0-1", "2-3"]

    def test_the_cpus_can_be_named(self):
        assert sets_of(shares(on=with_topology(cores=8), workers=2, cpuset="2-5")) == ["2-3", "4-5"]
        assert sets_of(shares(on=with_topology(cores=8), workers=2, cpuset="none")) == [None, None]

    @pytest.mark.parametrize(
        ("asked", "words"),
        [("9", "no CPU 9; it has 0-7"), ("0,1", "4 workers with"), ("a", "give CPU numbers such as"), ("3-1", "0-3,8")],
    )
    def test_what_cannot_be_is_refused(self, asked, words):
        error = SettingsError if "give CPU" in words or "0-3,8" in words else InputError
        assert words in refusal(
            error, on=with_topology(cores=8), workers=4, cpuset=asked, **({"cpus": 1} if "," in asked else {})
        )

    def test_an_engine_elsewhere_has_no_cpus_to_name(self):
        assert "cannot be seen from here" in refusal(cpuset="0-3", workers=2)

    @given(
        nodes=st.integers(1, 4), cores=st.integers(1, 16), threads=st.integers(1, 2), workers=st.integers(1, 40),
        size=st.integers(1, 20),
    )  # fmt: skip
    def test_no_cpu_is_given_twice(self, nodes, cores, threads, workers, size):
        cpus = with_topology(nodes, cores, threads).topology
        sets = cut_cpus(cpus, workers, size)
        if workers * size > len(cpus):
            assert sets is None
            return
        given_out = [number for each in sets for number in each]
        assert len(given_out) == len(set(given_out)) == workers * size
        assert {len(each) for each in sets} == {size}

    @given(st.sets(st.integers(0, 200), min_size=1))
    def test_lists_are_written_as_they_are_read(self, numbers):
        assert parse_cpuset(show_cpuset(sorted(numbers))) == sorted(numbers)


class TestAskedFractions:
    def test_a_fraction_is_what_each_worker_gets(self):
        plan = shares(on=machine(devices=1), gpus=("0",), workers=2, fraction=0.3)
        assert [each.gpu_fraction for each in plan.workers] == [0.3, 0.3]

    def test_memory_is_a_fraction_of_the_device(self):
        plan = shares(on=machine(devices=1), gpus=("0",), workers=1, gpu_memory=20 * GIB)
        assert plan.workers[0].gpu_fraction == 0.25

    def test_what_is_too_much_is_refused_with_the_numbers(self):
        message = refusal(on=machine(devices=1), gpus=("0",), workers=3, fraction=0.5)
        assert message.startswith(
            "--gpu-fraction 0.5: 3 worker(s) on H200 would take 121.8 GiB with 600 MiB of context each"
        )
        assert message.endswith("it has 80.0 GiB; give less, or at most 1 worker(s) for each such GPU")
        assert "--gpu-memory 90.0 GiB: H200 (GPU 0) has 80.0 GiB" in refusal(
            on=machine(devices=1), gpus=("0",), workers=1, gpu_memory=90 * GIB
        )

    def test_auto_starts_as_many_as_fit(self):
        plan = shares(on=machine(devices=2), gpus=("all",), workers="auto", fraction=0.3)
        assert len(plan.workers) == 6
        assert len(shares(on=machine(devices=2), gpus=("all",), workers="auto", gpu_memory=9 * GIB).workers) == 16
        assert len(shares(on=machine(devices=2), gpus=("all",), workers="auto").workers) == 2

    def test_auto_on_the_cpu_is_a_worker_for_each_core_with_room_to_live(self):
        assert len(shares(on=with_topology(cores=8, threads=2), workers="auto").workers) == 8
        assert len(shares(on=machine(cpus=64, memory=20 * GIB), workers="auto").workers) == 7
        plan = shares(on=machine(cpus=64), workers="auto", rows=3)
        assert (len(plan.workers), plan.notes) == (3, ())

    @pytest.mark.parametrize("fraction", [0, -0.5, 1.5, float("nan")])
    def test_what_is_no_part_is_refused(self, fraction):
        assert "more than 0 and at most 1" in refusal(
            SettingsError, on=machine(devices=1), gpus=("0",), fraction=fraction
        )

    @pytest.mark.parametrize("asked", [{"fraction": 0.5}, {"gpu_memory": GIB}, {"per_worker": 2}])
    def test_a_part_of_nothing_is_refused(self, asked):
        assert "--gpus" in refusal(SettingsError, **asked)

    def test_only_one_of_the_two_forms(self):
        assert "one of the two" in refusal(
            SettingsError, on=machine(devices=1), gpus=("0",), fraction=0.5, gpu_memory=GIB
        )

    @given(workers=st.integers(1, 12), fraction=st.floats(0.01, 1), memory=st.integers(4 * GIB, 141 * GIB))
    def test_an_accepted_fraction_fits(self, workers, fraction, memory):
        on = Machine(cpus=64, memory=512 * GIB, gpus=gpus(1, memory))
        try:
            plan = shares(on=on, gpus=("0",), workers=workers, fraction=fraction)
        except InputError:
            return
        parts = [each.gpu_fraction for each in plan.workers]
        if parts != [None]:
            assert sum(parts) + workers * CUDA_CONTEXT_MIB * MIB / memory <= 1 + 1e-9
            assert all(part <= fraction for part in parts)


class TestGroups:
    def test_a_worker_can_have_several_whole_devices(self):
        plan = shares(on=machine(devices=4), gpus=("all",), per_worker=2)
        assert [each.gpus for each in plan.workers] == [
            [gpus(4)[0].uuid, gpus(4)[1].uuid],
            [gpus(4)[2].uuid, gpus(4)[3].uuid],
        ]
        assert [each.gpu_fraction for each in plan.workers] == [None, None]

    def test_workers_can_share_such_a_group(self):
        plan = shares(on=machine(devices=2), gpus=("all",), per_worker=2, workers=2)
        assert {tuple(each.gpus) for each in plan.workers} == {tuple(gpu.uuid for gpu in gpus(2))}
        assert 0.4 < plan.workers[0].gpu_fraction < 0.5

    def test_a_device_left_over_is_named(self):
        plan = shares(on=machine(devices=3), gpus=("all",), per_worker=2)
        assert "GPU 2 is not used: --gpus-per-worker 2 of 3 leaves it over" in plan.notes

    def test_more_than_there_are_are_refused(self):
        assert "--gpus names 1" in refusal(on=machine(devices=2), gpus=("0",), per_worker=2)

    def test_mig_instances_are_devices_and_one_is_all_a_process_can_use(self):
        slices = tuple(
            Gpu(uuid=f"MIG-{number}", index=0, instance=number, name="H200 MIG", memory=20 * GIB) for number in range(3)
        )
        on = Machine(cpus=16, memory=64 * GIB, gpus=slices)
        assert [each.gpus for each in shares(on=on, gpus=("0:1", "MIG-2")).workers] == [["MIG-1"], ["MIG-2"]]
        assert "only one MIG instance" in refusal(on=on, gpus=("all",), per_worker=2)
        assert "0:0 (MIG-0)" in refusal(on=on, gpus=("0",))

    def test_a_device_for_one_process_takes_one_worker(self):
        alone = (Gpu(uuid="GPU-1", index=0, name="H200", memory=80 * GIB, exclusive=True),)
        on = Machine(cpus=16, memory=64 * GIB, gpus=alone)
        assert "nvidia-smi -c DEFAULT" in refusal(on=on, gpus=("0",), workers=2)
        assert len(shares(on=on, gpus=("0",), workers="auto", fraction=0.2).workers) == 1

    def test_memory_that_others_use_is_told(self):
        busy = (Gpu(uuid="GPU-1", index=0, name="H200", memory=80 * GIB, used=30 * GIB),)
        plan = shares(on=Machine(cpus=16, memory=64 * GIB, gpus=busy), gpus=("0",))
        assert plan.notes == ("GPU 0 has 30.0 GiB of 80.0 GiB in use by others",)


class TestEnough:
    def test_no_more_workers_than_rows(self):
        plan = shares(workers=5, rows=2)
        assert len(plan.workers) == 2
        assert plan.notes[0] == "5 workers asked for and 2 rows to run: 2 workers are enough"
        assert len(shares(rows=1).workers) == 2, "what nobody asked for is no promise that was broken"
