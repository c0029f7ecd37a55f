"""The options of ``launch`` and ``plan``, and what stands after ``--``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

_LAUNCH_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "workers": click.option("-w", "--workers", metavar="N|auto", help="How many workers (default: one per GPU, or 2)."),
    "gpus": click.option("--gpus", help="GPUs to use: 0,1 or UUIDs or all; none (the default) runs on the CPU."),
    "gpus_per_worker": click.option("--gpus-per-worker", type=int, help="Whole GPUs of each worker (default: 1)."),
    "gpu_fraction": click.option("--gpu-fraction", metavar="F|auto", help="Part of each GPU's memory for each worker on it."),
    "gpu_memory": click.option("--gpu-memory", help="The same as a size, such as 6g."),
    "wait_for_gpu": click.option("--wait-for-gpu", type=float, metavar="SECONDS", help="Wait for GPUs that another sweep has."),
    "name": click.option("--name", help="The sweep's name (default: script and time)."),
    "runs": click.option("--runs", help="Folder of all sweeps (default: ./runs)."),
    "engine": click.option("--engine", type=click.Choice(["docker", "process"]), help="Where workers run (default: docker)."),
    "image": click.option("--image", help="Worker image of your own: Python 3.9 or newer and a backend."),
    "backend": click.option("--backend", type=click.Choice(["tensorflow", "torch", "both"]), help="Which of our images."),
    "build": click.option("--build/--no-build", default=None, help="Build our image when it is missing (default: build)."),
    "memory": click.option("--memory", help="Memory of each worker, such as 4g (default: an even share)."),
    "cpus": click.option("--cpus", type=float, help="Cores of each worker (default: an even share)."),
    "cpuset": click.option("--cpuset", metavar="LIST|auto|none", help="CPUs to cut into sets, such as 0-7 (default: auto)."),
    "threads": click.option("--threads", type=int, help="Threads of each worker (default: its whole cores, at least 1)."),
    "shm_size": click.option("--shm-size", help="Shared memory of each worker, such as 1g (default: a quarter of its memory)."),
    "seed": click.option("--seed", type=int, help="Seed where the script gives Scan none (default: 0)."),
    "keep_models": click.option("--keep-models", help="best[:N], all or none (default: best:10, by each metric)."),
    "project": click.option("--project", help="Folder that the containers see (default: around the script)."),
    "workdir": click.option("--workdir", help="The script's working directory (default: its own folder)."),
    "network": click.option("--network", type=click.Choice(["bridge", "none"]), help="Their network (default: bridge)."),
    "python": click.option("--python", help="Interpreter for --engine process (default: this one)."),
    "env_file": click.option("--env-file", multiple=True, metavar="FILE", help="File of KEY=VALUE lines."),
    "secret": click.option("--secret", multiple=True, metavar="NAME=FILE", help="File seen as /run/secrets/NAME, read-only."),
    "mount": click.option("--mount", multiple=True, metavar="PATH[:ro|rw]", help="Folder or file seen at the same path inside."),
    "keep_going": click.option("--keep-going", is_flag=True, default=None, help="Go on although the first rows all fail alike."),
    "env": click.option("-e", "--env", multiple=True, metavar="KEY[=VALUE]", help="Environment variable for the script."),
}  # fmt: skip


# What a resume may change: how the rows that are left are run, not which rows there are.
_RESUME = (
    "workers", "gpus", "gpus_per_worker", "gpu_fraction", "gpu_memory", "wait_for_gpu", "build", "memory", "cpus", "cpuset",
    "threads", "shm_size", "keep_going",
)  # fmt: skip


class ScriptCommand(click.Command):
    """What stands after ``--`` are the script's arguments, also when the script itself is named elsewhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the script's arguments out before click looks."""
        if "--" in args:
            cut = args.index("--")
            args, ctx.meta["arguments"] = args[:cut], tuple(args[cut + 1 :])
        return super().parse_args(ctx, args)


def script_arguments(given: tuple[str, ...]) -> tuple[str, ...]:
    """Give the script's own arguments: those given, and what stood after ``--``."""
    rest: tuple[str, ...] = click.get_current_context().meta.get("arguments", ())
    return (*given, *rest)


def launch_options(function: _F) -> _F:
    """Give a command every option of a launch."""
    for option in reversed(_LAUNCH_OPTIONS.values()):
        function = option(function)
    return function


def resume_options(function: _F) -> _F:
    """Give a command the options of a launch that a resume may change."""
    for name in reversed(_RESUME):
        function = _LAUNCH_OPTIONS[name](function)
    return function
