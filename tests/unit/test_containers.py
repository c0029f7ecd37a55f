"""What a driver and a worker are given: folders, limits, environment; and how Docker is asked for it."""

from __future__ import annotations

import pytest
from makers import GIB, share, sweep_file, world

from orchestrator.plan.containers import driver_spec, worker_spec
from orchestrator.plan.specs import Bind
from orchestrator.records.layout import SweepDir

PROJECT, RUNS = "/home/ada/project", "/home/ada/runs"
FOLDER = SweepDir(f"{RUNS}/case-1")


WALLS = ("/talos-orch/run/files", "/talos-orch/run/.work")


def driver(folder=FOLDER, on=None, view=True, **sweep):
    return driver_spec(sweep_file(PROJECT, **sweep), folder, share(-1), on or world(), view=view)


def worker(number=0, folder=FOLDER, on=None, attempt=1, given=None, **sweep):
    return worker_spec(sweep_file(PROJECT, **sweep), folder, given or share(number), on or world(), attempt)


class TestDriver:
    def test_writes_into_a_view_of_the_project_and_its_own_directory_alone(self):
        spec, _ = driver()
        own = {
            Bind(source=f"{RUNS}/case-1/driver", target="/talos-orch/driver"),
            Bind(source="/opt/package/orchestrator", target="/talos-orch/lib/orchestrator", read_only=True),
        }
        assert set(spec.binds) == own
        assert (spec.view.project, spec.view.target, spec.view.upper) == (
            PROJECT,
            PROJECT,
            f"{RUNS}/case-1/driver/files",
        )
        direct, _ = driver(view=False)
        assert set(direct.binds) == own | {Bind(source=PROJECT, target=PROJECT)}
        assert direct.view is None

    def test_sees_no_gpu(self):
        spec, _ = driver()
        assert spec.gpus == ()
        assert spec.environment["CUDA_VISIBLE_DEVICES"] == "-1"

    def test_runs_the_script_where_it_lies_with_its_own_arguments(self):
        spec, job = driver()
        assert (job.role, job.script, job.arguments, job.workdir) == (
            "driver",
            f"{PROJECT}/scan.py",
            ["--fast"],
            PROJECT,
        )
        assert job.run == job.driver == "/talos-orch/driver"
        assert spec.command == (
            "python3", "/talos-orch/lib/orchestrator/worker/enter.py", "drive", "/talos-orch/driver/job.json",
        )  # fmt: skip
        assert (spec.member, spec.workdir, spec.uid, spec.gid) == ("driver", PROJECT, 1000, 1001)


class TestWorker:
    def test_sees_the_drivers_directory_read_only_and_no_other_workers(self):
        spec, _ = worker(3)
        assert set(spec.binds) == {
            Bind(source=f"{RUNS}/case-1/workers/03", target="/talos-orch/run"),
            Bind(source=f"{RUNS}/case-1/driver", target="/talos-orch/driver", read_only=True),
            Bind(source="/opt/package/orchestrator", target="/talos-orch/lib/orchestrator", read_only=True),
        }

    def test_sees_the_project_through_a_view_of_its_own(self):
        spec, job = worker(3)
        view = spec.view
        assert (view.project, view.target) == (PROJECT, PROJECT)
        assert view.upper == f"{RUNS}/case-1/workers/03/files"
        assert view.scratch == f"{RUNS}/case-1/workers/03/.work"
        assert job.script == f"{PROJECT}/scan.py"

    def test_is_named_by_number_and_attempt(self):
        spec, job = worker(3, attempt=2)
        assert (spec.member, spec.worker, spec.attempt, job.attempt, job.worker) == ("w03", 3, 2, 2, 3)
        assert spec.command[2:] == ("supervise", "/talos-orch/run/job.json")

    def test_has_its_share_as_limits(self):
        spec, job = worker(given=share(0, memory=3 * GIB, shm=GIB, cpus=1.5, pids=700))
        assert (spec.memory, spec.shm, spec.cpus, spec.pids) == (3 * GIB, GIB, 1.5, 700)
        assert job.share["memory"] == 3 * GIB

    def test_of_a_gpu_share_gets_its_devices_and_no_others(self):
        spec, _ = worker(given=share(0, gpus=["GPU-1", "GPU-2"], gpu_fraction=0.4))
        assert spec.gpus == ("GPU-1", "GPU-2")
        assert spec.environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
        assert spec.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.400"
        assert "NVIDIA_VISIBLE_DEVICES" not in spec.environment
        assert spec.environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"

    def test_of_a_cpu_share_has_every_gpu_hidden(self):
        spec, _ = worker()
        assert spec.environment["CUDA_VISIBLE_DEVICES"] == "-1"
        assert spec.environment["NVIDIA_VISIBLE_DEVICES"] == "void"

    def test_runs_the_image_by_its_id(self):
        assert worker()[0].image == "sha256:abc"
        assert worker(image_id=None)[0].image == "talos-orch:cpu"

    def test_has_the_network_that_was_asked_for(self):
        assert worker(on=world(network="none"))[0].network == "none"


class TestEnvironment:
    def test_threads_are_those_of_the_share_in_every_library(self):
        found = worker(given=share(0, threads=3))[0].environment
        names = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
        assert {found[f"{name}_NUM_THREADS"] for name in names} == {"3"}
        assert found["TF_NUM_INTRAOP_THREADS"] == found["TF_NUM_INTEROP_THREADS"] == "3"

    def test_the_world_is_stable(self):
        found = worker(seed=2**32 + 7)[0].environment
        assert found["PYTHONHASHSEED"] == "7"
        assert (found["TZ"], found["USER"], found["MPLBACKEND"]) == ("Europe/Berlin", "ada", "Agg")
        assert found["PYTHONDONTWRITEBYTECODE"] == "1"
        assert all(isinstance(value, str) for value in found.values())

    def test_home_and_caches_are_writable(self):
        found = worker()[0].environment
        assert found["HOME"] == "/tmp/home"
        assert found["KERAS_HOME"].startswith("/tmp/home/")

    def test_what_the_user_adds_wins(self):
        found = worker(on=world(extra={"OMP_NUM_THREADS": "9", "DATA": "/data"}))[0].environment
        assert (found["OMP_NUM_THREADS"], found["DATA"]) == ("9", "/data")
        assert driver(on=world(extra={"DATA": "/data"}))[0].environment["DATA"] == "/data"

    def test_the_same_sweep_gives_the_same_specs(self):
        assert worker(2) == worker(2)


class TestMasks:
    def test_the_views_own_folders_can_be_neither_reached_nor_replaced(self):
        assert worker()[0].tmpfs == ("/tmp", *WALLS)
        assert driver()[0].tmpfs == ("/tmp", "/talos-orch/driver/files", "/talos-orch/driver/.work")
        assert driver(view=False)[0].tmpfs == ("/tmp",)

    def test_a_sweep_in_the_project_is_hidden_from_every_role_and_nothing_else_is(self):
        folder = SweepDir(f"{PROJECT}/runs/case-1")
        hidden = ("/tmp", f"{PROJECT}/runs/case-1")
        assert worker(folder=folder)[0].tmpfs == (*hidden, *WALLS)
        assert driver(folder=folder, view=False)[0].tmpfs == hidden

    def test_a_folder_with_a_like_name_is_not_within(self):
        runs = f"{PROJECT}-runs"
        assert worker(folder=SweepDir(f"{runs}/case-1"))[0].tmpfs == ("/tmp", *WALLS)


class TestProcessEngine:
    on = world(isolated=False, limits_enforced=False)

    def test_a_worker_works_in_its_copy_of_the_project(self):
        spec, job = worker(1, on=self.on, script=f"{PROJECT}/sub/scan.py", workdir=f"{PROJECT}/sub")
        files = f"{RUNS}/case-1/workers/01/files"
        assert (job.script, job.workdir) == (f"{files}/sub/scan.py", f"{files}/sub")
        assert spec.view.target == files
        assert job.limits_enforced is False

    def test_paths_are_the_hosts(self):
        spec, job = worker(1, on=self.on)
        assert job.run == f"{RUNS}/case-1/workers/01"
        assert job.driver == f"{RUNS}/case-1/driver"
        assert spec.command == (
            "/usr/bin/python3", "/opt/package/orchestrator/worker/enter.py", "supervise",
            f"{RUNS}/case-1/workers/01/job.json",
        )  # fmt: skip
        assert spec.workdir == f"{RUNS}/case-1/workers/01"
        assert spec.environment["HOME"] == f"{RUNS}/case-1/workers/01/.home"
        assert spec.tmpfs == ("/tmp",)

    def test_devices_are_chosen_by_variable(self):
        spec, _ = worker(on=self.on, given=share(0, gpus=["GPU-1", "GPU-2"]))
        assert spec.environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"

    def test_the_driver_works_in_the_project_itself(self):
        spec, job = driver(on=self.on, view=False)
        assert spec.view is None
        assert (job.script, spec.workdir) == (f"{PROJECT}/scan.py", PROJECT)


class TestDockerArguments:
    @pytest.fixture(autouse=True)
    def _needs_docker_py(self):
        pytest.importorskip("docker")

    def arguments(self, **given):
        from orchestrator.engine.docker import container_arguments

        return container_arguments(worker(3, given=share(3, **given))[0])

    def test_are_exactly_these(self):
        found = self.arguments()
        environment = found.pop("environment")
        log = found.pop("log_config")
        assert environment["OMP_NUM_THREADS"] == "2"
        assert (log["Type"], log["Config"]["max-size"]) == ("json-file", "10m")
        place = found["name"].split("-")[-2]
        assert found == {
            "image": "sha256:abc",
            "command": ["python3", "/talos-orch/lib/orchestrator/worker/enter.py", "supervise", "/talos-orch/run/job.json"],
            "entrypoint": [],
            "name": f"talos-orch-case-1-{place}-w03",
            "hostname": "w03",
            "labels": {
                "talos-orch.sweep": "case-1", "talos-orch.folder": f"{RUNS}/case-1", "talos-orch.role": "worker",
                "talos-orch.member": "w03", "talos-orch.worker": "3", "talos-orch.attempt": "1",
                "talos-orch.version": found["labels"]["talos-orch.version"],
            },
            "user": "1000:1001",
            "working_dir": PROJECT,
            "init": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "read_only": True,
            "tmpfs": dict.fromkeys(("/tmp", *WALLS), "rw,nosuid,nodev,exec,mode=1777"),
            "pids_limit": 512,
            "mem_limit": 2 * GIB,
            "memswap_limit": 2 * GIB,
            "nano_cpus": 2_000_000_000,
            "shm_size": GIB // 2,
            "network_mode": "bridge",
            "restart_policy": {"Name": "no"},
        }  # fmt: skip

    def test_never_ask_for_a_container_that_removes_itself(self):
        assert not {"auto_remove", "remove", "privileged", "volumes_from"} & set(self.arguments())

    def test_labels_are_text(self):
        assert all(isinstance(value, str) for value in self.arguments()["labels"].values())

    def test_devices_are_one_request_with_all_of_them(self):
        (request,) = self.arguments(gpus=["GPU-1", "GPU-2"])["device_requests"]
        assert request["DeviceIDs"] == ["GPU-1", "GPU-2"]
        assert request["Capabilities"] == [["gpu", "compute", "utility"]]
        assert "device_requests" not in self.arguments()

    def test_a_name_is_the_same_every_time_and_another_for_another_folder_or_attempt(self):
        from orchestrator.engine.docker import container_name

        name = container_name(worker(3)[0])
        assert name == container_name(worker(3)[0])
        others = [
            worker(4)[0],
            worker(3, attempt=2)[0],
            worker(3, folder=SweepDir("/elsewhere/case-1"))[0],
            driver()[0],
        ]
        assert len({name, *map(container_name, others)}) == 5
        assert container_name(worker(3, attempt=2)[0]) == name + "-2"


def test_no_unit_test_reaches_an_engine():
    docker = pytest.importorskip("docker")
    for connect in (docker.from_env, docker.DockerClient):
        with pytest.raises(AssertionError, match="tried to reach a Docker Engine"):
            connect()
