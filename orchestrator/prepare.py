"""Everything that is known before a container starts: the plan that ``talos-orch plan`` prints and ``launch`` carries out."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import DEFAULT_SCRIPT, Settings, Surroundings
from orchestrator.engine.base import Engine, EngineInfo
from orchestrator.engine.images import ImageRequest
from orchestrator.engine.open import find_worker_image, image_request, local_gpus, open_engine
from orchestrator.errors import EnvironmentNotReadyError, SettingsError
from orchestrator.inputs import read_environment
from orchestrator.plan.containers import World
from orchestrator.plan.devices import DeviceRequest
from orchestrator.plan.mounts import Mounts, named_mounts, parse_mount
from orchestrator.plan.preflight import Preflight
from orchestrator.plan.reading import read_script
from orchestrator.plan.shares import SharePlan, ShareRequest, plan_shares
from orchestrator.plan.sizes import parse_size
from orchestrator.project import (
    check_name,
    check_runs,
    find_project,
    find_script,
    find_workdir,
    local_modules,
    outward_links,
    read_source,
    real_path,
)
from orchestrator.scan.models import KeepPolicy
from orchestrator.schema import SweepFile
from orchestrator.version import __version__

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A sweep that can start. ``image`` is None for the process engine; ``image_id`` None for one that is still to build.

    ``source`` is the Python text of a script that is a notebook. ``request`` is the worker image of ours that is meant,
    None for the user's own.
    """

    sweep: SweepFile
    runs: Path
    shares: SharePlan
    engine: Engine
    info: EngineInfo
    world: World
    preflight: Preflight
    source: str | None
    request: ImageRequest | None
    image: str | None
    image_id: str | None


def prepare(
    settings: Settings,
    surroundings: Surroundings,
    arguments: tuple[str, ...],
    stamp: str,
    again: SweepFile | None = None,
) -> Prepared:
    """Check and decide all of it; every error that can be known before a container starts is raised here.

    ``stamp`` is the time for the default name, ``YYYYMMDD-HHMMSS``. ``again`` is a sweep that there is already, to be
    resumed: its name and image stay.
    """
    KeepPolicy.parse(settings.keep_models)
    script = find_script(settings.script, DEFAULT_SCRIPT, surroundings.folder)
    source = read_source(script)
    reading = read_script(source, str(script), local_modules(script))
    preflight = reading.preflight
    home = Path(surroundings.environ.get("HOME") or "/")
    project = find_project(script, settings.project, surroundings.folder, home)
    workdir = find_workdir(script, settings.workdir, surroundings.folder, project)
    wanted = tuple(part.strip() for part in (settings.gpus or "").split(",") if part.strip())
    wanted = () if wanted == ("none",) else wanted
    engine = open_engine(settings.engine, surroundings, local_gpus() if wanted else ())
    info = engine.info()
    if wanted and info.gpu_trouble is not None:
        raise EnvironmentNotReadyError(
            f"--gpus {settings.gpus}: {info.gpu_trouble}, or leave out --gpus to run on the CPU"
        )
    _refuse_unheld(settings, info, engine)
    asked = _share_request(settings, wanted)
    mounts = _mounts(settings, surroundings, preflight, workdir, project)
    shares = plan_shares(asked, info.machine, preflight.rows)
    runs = Path(os.path.realpath(surroundings.folder / settings.runs))
    if again is None:
        name = _checked_name(settings.name) or _free_name(runs, f"{_clean(script.stem)}-{stamp}")
        check_name(runs, name)
    else:
        name = again.name
    check_runs(runs, info.data_root if engine.isolated else None)
    request = image_request(settings, "gpu" if wanted else "cpu", preflight.imports) if engine.isolated else None
    image, image_id = (None, None)
    if engine.isolated:
        image, image_id = find_worker_image(engine, settings.image, request, again.image_id if again else None)
    sweep = SweepFile(
        name=name,
        script=str(script),
        arguments=list(arguments),
        project=str(project),
        workdir=str(workdir),
        engine=info.name,
        endpoint=info.endpoint,
        image=image,
        image_id=image_id,
        workers=len(shares.workers),
        seed=settings.seed,
        keep_models=settings.keep_models,
        created=stamp,
        version=__version__,
        uid=surroundings.uid,
        gid=surroundings.gid,
        shares=[share.to_json() for share in shares.workers],
        options={key: value for key, value in settings.sources.items() if value != "default"},
        notes=[*reading.notes, *mounts.notes, *info.notes, *shares.notes],
        keep_going=settings.keep_going,
        generated=reading.name,
        script_sha256=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
    )
    world = _world(settings, surroundings, engine, info, mounts)
    return Prepared(
        sweep=sweep, runs=runs, shares=shares, engine=engine, info=info, world=world, preflight=preflight,
        source=reading.source, request=None if settings.image else request, image=image, image_id=image_id,
    )  # fmt: skip


def _refuse_unheld(settings: Settings, info: EngineInfo, engine: Engine) -> None:
    """Refuse a limit that was asked for by name where the engine would take it and not hold it."""
    asked = {"memory": settings.memory, "cpus": settings.cpus}
    for limit in info.not_enforced if engine.isolated else ():
        if asked.get(limit) is not None:
            raise EnvironmentNotReadyError(
                f"--{limit} {asked[limit]}: this engine does not hold limits of {limit}: leave it out, use an engine that "
                "runs as root, or delegate control groups to it (cgroup v2)"
            )


def _share_request(settings: Settings, gpus: tuple[str, ...]) -> ShareRequest:
    return ShareRequest(
        workers=settings.workers,
        devices=DeviceRequest(
            gpus=gpus,
            per_worker=settings.gpus_per_worker,
            fraction=None if settings.gpu_fraction in (None, "auto") else float(str(settings.gpu_fraction)),
            memory=parse_size(settings.gpu_memory, "--gpu-memory") if settings.gpu_memory else None,
        ),
        cpuset=settings.cpuset,
        cpus=settings.cpus,
        memory=parse_size(settings.memory, "--memory") if settings.memory else None,
        shm=parse_size(settings.shm_size, "--shm-size") if settings.shm_size else None,
        threads=settings.threads,
    )


def _world(settings: Settings, around: Surroundings, engine: Engine, info: EngineInfo, mounts: Mounts) -> World:
    environment, secrets = read_environment(settings, around, isolated=engine.isolated)
    return World(
        package=str(Path(__file__).resolve().parent),
        python=settings.python or around.python,
        isolated=engine.isolated,
        limits_enforced="memory" not in info.not_enforced,
        user_name=around.user_name,
        timezone=around.timezone,
        network=settings.network,
        extra=environment,
        binds=(*mounts.binds, *secrets),
        cache=str(around.cache / "downloads"),
    )


def _mounts(settings: Settings, around: Surroundings, preflight: Preflight, workdir: Path, project: Path) -> Mounts:
    """Bring together what was asked for and what the script names."""
    asked = tuple(parse_mount(text, str(around.folder), real_path) for text in settings.mount)
    home = around.environ.get("HOME") or "/"
    paths = (*preflight.paths, *outward_links(project, workdir))
    named = named_mounts(paths, str(workdir), str(project), home, real_path)
    taken = {bind.target for bind in asked}
    return Mounts(
        binds=(*asked, *(bind for bind in named.binds if bind.target not in taken)),
        notes=tuple(note for note in named.notes if not any(note.startswith(f"{target} ") for target in taken)),
    )


def _checked_name(name: str | None) -> str | None:
    if name is not None and not _NAME.fullmatch(name):
        raise SettingsError(
            f"--name {name!r}: use letters, digits, '_', '-' and '.', at most 63, a letter or digit first"
        )
    return name


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-_.")[:40] or "sweep"


def _free_name(runs: Path, name: str) -> str:
    number, free = 1, name
    while (runs / free).exists():
        number += 1
        free = f"{name}-{number}"
    return free
