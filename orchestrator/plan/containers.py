"""Container specs and job files out of a sweep and its shares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.plan.mounts import within
from orchestrator.plan.specs import Bind, ContainerSpec, View
from orchestrator.records.layout import RunDir, SweepDir
from orchestrator.schema import Job, Share, SweepFile

INSIDE = "/talos-orch"
_HOME = "/tmp/home"  # noqa: S108 - a tmpfs inside the container
_CACHES = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "KERAS_HOME": ".keras",
    "TORCH_HOME": ".cache/torch",
    "TORCHINDUCTOR_CACHE_DIR": ".cache/inductor",
    "TRITON_CACHE_DIR": ".cache/triton",
    "MPLCONFIGDIR": ".config/matplotlib",
    "NUMBA_CACHE_DIR": ".cache/numba",
    "CUDA_CACHE_PATH": ".cache/cuda",
}
# What is downloaded rather than compiled: data sets and weights.
_DOWNLOADS = {
    "KERAS_HOME": "keras",
    "TORCH_HOME": "torch",
    "HF_HOME": "huggingface",
    "NLTK_DATA": "nltk",
    "SCIKIT_LEARN_DATA": "scikit-learn",
    "TFDS_DATA_DIR": "tensorflow-datasets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What specs need to know beside the sweep: read once by the caller, so that planning stays pure.

    ``package`` is the folder of our own code on the host; ``python`` the interpreter of the process engine; ``binds`` what
    every container sees beside its own folders; ``cache`` the folder of downloads that all workers of all sweeps share.
    """

    package: str
    python: str
    isolated: bool
    limits_enforced: bool
    user_name: str
    timezone: str
    network: str
    extra: Mapping[str, str] | None = None
    binds: tuple[Bind, ...] = ()
    cache: str | None = None


def driver_spec(
    sweep: SweepFile, folder: SweepDir, share: Share, world: World, *, view: bool
) -> tuple[ContainerSpec, Job]:
    """Give the driver. It sees no GPU.

    With a ``view`` what it writes into the project is kept apart until its end, so that workers, which run the same
    script, start from the project as it was; without one it writes into the project itself.
    """
    inside = _inside(world, folder.driver, folder.driver)
    job = _job(sweep, "driver", inside, share, world, script=sweep.script, workdir=sweep.workdir)
    private = _view(sweep, folder.driver, sweep.project, copied=False) if view else None
    binds = () if view else (Bind(source=sweep.project, target=sweep.project),)
    spec = _spec(sweep, folder, folder.driver, job, share, world, binds, private, attempt=1)
    return spec, job


def worker_spec(
    sweep: SweepFile, folder: SweepDir, share: Share, world: World, attempt: int = 1, *, copied: bool = False
) -> tuple[ContainerSpec, Job]:
    """Give one worker: it sees the project through a view of its own, and the driver's directory read-only."""
    run = folder.worker(share.worker)
    inside = _inside(world, run, folder.driver)
    project = sweep.project if world.isolated else run.files
    job = _job(
        sweep,
        "worker",
        inside,
        share,
        world,
        script=_moved(sweep.script, sweep.project, project),
        workdir=_moved(sweep.workdir, sweep.project, project),
        attempt=attempt,
    )
    view = _view(sweep, run, project, copied=copied)
    return _spec(sweep, folder, run, job, share, world, (), view, attempt=attempt), job


def _view(sweep: SweepFile, run: RunDir, target: str, *, copied: bool) -> View:
    return View(project=sweep.project, target=target, upper=run.files, scratch=run.scratch, copied=copied)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    run: str
    driver: str
    enter: str


def _inside(world: World, run: RunDir, driver: RunDir) -> _Inside:
    enter = "worker/enter.py"
    if not world.isolated:
        return _Inside(run=run.path, driver=driver.path, enter=os.path.join(world.package, enter))
    own = f"{INSIDE}/driver" if run == driver else f"{INSIDE}/run"
    return _Inside(run=own, driver=f"{INSIDE}/driver", enter=f"{INSIDE}/lib/orchestrator/{enter}")


def _job(
    sweep: SweepFile,
    role: str,
    inside: _Inside,
    share: Share,
    world: World,
    *,
    script: str,
    workdir: str,
    attempt: int = 1,
) -> Job:
    return Job(
        role=role,
        sweep=sweep.name,
        script=f"{inside.driver}/{sweep.generated}" if sweep.generated else script,
        folder=os.path.dirname(script) if sweep.generated else None,
        arguments=sweep.arguments,
        workdir=workdir,
        run=inside.run,
        driver=inside.driver,
        seed=sweep.seed,
        keep_models=sweep.keep_models,
        worker=share.worker,
        attempt=attempt,
        limits_enforced=world.limits_enforced,
        isolated=world.isolated,
        share=share.to_json(),
    )


def _spec(
    sweep: SweepFile, folder: SweepDir, run: RunDir, job: Job, share: Share, world: World,
    binds: tuple[Bind, ...], view: View | None, *, attempt: int,
) -> ContainerSpec:  # fmt: skip
    inside = _inside(world, run, folder.driver)
    own = [Bind(source=run.path, target=inside.run)]
    if job.role == "worker":
        own.append(Bind(source=folder.driver.path, target=inside.driver, read_only=True))
    if world.isolated:
        own.append(Bind(source=world.package, target=f"{INSIDE}/lib/orchestrator", read_only=True))
        own += world.binds
        if world.cache is not None:
            own.append(Bind(source=world.cache, target=f"{INSIDE}/cache"))
    verb = "drive" if job.role == "driver" else "supervise"
    return ContainerSpec(
        sweep=sweep.name,
        folder=folder.path,
        role=job.role,
        worker=share.worker,
        attempt=attempt,
        image=sweep.image_id or sweep.image,
        command=("python3" if world.isolated else world.python, inside.enter, verb, f"{inside.run}/job.json"),
        environment=environment(share, sweep.seed, world, run),
        workdir=job.workdir if view is None or world.isolated else run.path,
        run=run.path,
        uid=sweep.uid,
        gid=sweep.gid,
        binds=(*own, *binds),
        memory=share.memory,
        shm=share.shm,
        cpus=share.cpus,
        pids=share.pids,
        cpuset=share.cpuset,
        view=view,
        tmpfs=("/tmp", *_masked(sweep, folder, world), *_walled(inside, view, world)),  # noqa: S108 - inside the container
        gpus=tuple(share.gpus),
        network=world.network,
    )


def environment(share: Share, seed: int, world: World, run: RunDir) -> dict[str, str]:
    """Give the environment of one container: threads, seeds, caches, devices; the user's own additions win."""
    threads = str(share.threads)
    home = _HOME if world.isolated else os.path.join(run.path, ".home")
    values = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "NUMEXPR_NUM_THREADS": threads,
        "VECLIB_MAXIMUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": threads,
        # Idle threads that spin instead of sleeping cost a busy machine 8 to 50 times in Torch.
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONHASHSEED": str(seed % 2**32),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "Agg",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "TZ": world.timezone,
        "LANG": "C.UTF-8",
        "USER": world.user_name,
        "LOGNAME": world.user_name,
        "HOME": home,
        "TMPDIR": "/tmp" if world.isolated else os.path.join(run.path, ".tmp"),  # noqa: S108 - a tmpfs
        **{name: f"{home}/{path}" for name, path in _CACHES.items()},
        **_downloads(world),
    }
    if share.gpus:
        values["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        values["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        # Inside a container too: WSL2 shows every device whatever was asked for. UUIDs hold on either side of the wall.
        values["CUDA_VISIBLE_DEVICES"] = ",".join(share.gpus)
        if share.gpu_fraction is None:
            values["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        else:
            values["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{share.gpu_fraction:.3f}"
    else:
        values["CUDA_VISIBLE_DEVICES"] = "-1"
        values["NVIDIA_VISIBLE_DEVICES"] = "void"
    return {**values, **(world.extra or {})}


def _downloads(world: World) -> dict[str, str]:
    """Name where libraries keep what they download: once for all workers, and still there for the next sweep."""
    if world.cache is None:
        return {}
    folder = f"{INSIDE}/cache" if world.isolated else world.cache
    return {name: f"{folder}/{path}" for name, path in _DOWNLOADS.items()}


def _masked(sweep: SweepFile, folder: SweepDir, world: World) -> tuple[str, ...]:
    """Name the sweep's own folder if it lies inside the project: an empty tmpfs over it keeps the roles apart.

    Not the folder of all sweeps: a script may have a ``runs`` of its own there, and what it writes must not vanish.
    """
    inside = world.isolated and within(folder.path, sweep.project)
    return (folder.path,) if inside else ()


def _walled(inside: _Inside, view: View | None, world: World) -> tuple[str, ...]:
    """Name the view's own folders inside the run directory: under a mount they can be neither reached nor replaced."""
    if view is None or not world.isolated:
        return ()
    return (f"{inside.run}/{os.path.basename(view.upper)}", f"{inside.run}/{os.path.basename(view.scratch)}")


def _moved(path: str, project: str, target: str) -> str:
    return os.path.normpath(os.path.join(target, os.path.relpath(path, project)))
