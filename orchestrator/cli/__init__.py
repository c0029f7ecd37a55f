"""The command line: flags in, words and an exit code out."""

from __future__ import annotations

import datetime
import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from orchestrator.cli.options import ScriptCommand, launch_options, resume_options, script_arguments
from orchestrator.errors import OrchestratorError
from orchestrator.version import __version__

_F = TypeVar("_F", bound=Callable[..., Any])
_STARTED = time.monotonic()

EXIT_CODES = """
\b
Exit codes: 0 every trial completed · 1 internal error · 2 bad input · 3 finished, with failed trials
4 stopped before the end · 5 the environment is not ready (Docker, GPU, image) · 130 killed
"""


def _guard(function: _F) -> _F:
    """Turn an error of ours into its one line and its exit code."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        from orchestrator.console import write_error

        try:
            return function(*arguments, **options)
        except OrchestratorError as error:
            write_error(str(error))
            sys.exit(error.exit_code)
        except BrokenPipeError:
            _nobody_reads()
            sys.exit(0)

    return wrapped  # type: ignore[return-value]


def _nobody_reads() -> None:
    """Let what is still to be written go nowhere, Python's own flush at exit included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)


def _surroundings_and_settings(options: dict[str, Any]) -> tuple[Any, Any]:
    from orchestrator.config import load_settings, read_surroundings

    around = read_surroundings(os.environ)
    return around, load_settings(options, os.environ, around.folder)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="talos-orch")
def main() -> None:
    r"""Run a Talos sweep on N isolated workers, with one merged result.

    \b
    talos-orch launch my_scan.py --workers 4            on the CPU
    talos-orch launch --gpus 0,1 --workers 4 my_scan.py on two GPUs
    """


@main.command(cls=ScriptCommand, epilog=EXIT_CODES)
@launch_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event on stdout.")
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1)
@_guard
def launch(script: str | None, arguments: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Run SCRIPT with its Scan spread over the workers; what follows -- are the script's own arguments.

    Ctrl-C once lets the rows in hand finish and merges what there is; twice ends everything at once.
    """
    from orchestrator.run import launch as run_launch

    around, settings = _surroundings_and_settings({"script": script, **options})
    given = script_arguments(arguments)
    _carry_out(lambda switch, clock, show, say: run_launch(settings, around, given, switch, clock, show, say), as_json)


@main.command(epilog=EXIT_CODES)
@resume_options
@click.option("--rerun", type=click.Choice(["failed"]), help="Run failed rows again, of a finished sweep too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event on stdout.")
@click.option("--runs", help="Folder of all sweeps (default: ./runs).")
@click.argument("name")
@_guard
def resume(name: str, runs: str | None, rerun: str | None, as_json: bool, **options: Any) -> None:
    """Go on with a sweep that was stopped, killed or cut off: recorded rows stay, the others run.

    Its options are those of its launch; the ones given here take their place, for the rows that are left.
    """
    from orchestrator.config import read_surroundings
    from orchestrator.queries import find_sweep
    from orchestrator.resuming import resume as run_resume

    folder, around = find_sweep(_runs_folder(runs), name), read_surroundings(os.environ)
    _carry_out(
        lambda switch, clock, show, say: run_resume(
            folder, options, around, switch, clock, show, say, rerun_failed=rerun is not None
        ),
        as_json,
    )


def _carry_out(run: Callable[[Any, Any, Any, Any], Any], as_json: bool) -> None:
    """Run a sweep in front of whoever watches, and leave with its exit code."""
    from orchestrator.console import choose_view, write_error
    from orchestrator.coordinator.clock import Clock
    from orchestrator.coordinator.stopping import StopSwitch

    switch, view = StopSwitch(), choose_view(as_json=as_json)
    switch.armed = False  # until the sweep has begun
    _press_on_signals(switch, view.say)
    clock = Clock(steady=time.monotonic, wall=_now, sleep=time.sleep, started=_STARTED)
    try:
        finished = run(switch, clock, view.show, view.say)
    except KeyboardInterrupt:
        view.say("stopped before anything was started")
        sys.exit(130)
    finally:
        view.close()
    try:
        _summarise(finished, view, as_json=as_json)
        if finished.message is not None and finished.exit_code not in (0, 3):
            write_error(finished.message)
    except BrokenPipeError:
        _nobody_reads()
    sys.exit(finished.exit_code)


def _press_on_signals(switch: Any, say: Callable[[str], None]) -> None:
    def press(_number: int, _frame: Any) -> None:
        switch.press()
        if switch.level > 1:
            say("ending everything now")

    # A closed terminal drains too: its rows in hand are not lost, and nothing is left running.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, press)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def _summarise(finished: Any, view: Any, *, as_json: bool) -> None:
    from orchestrator.queries import sweep_summary

    summary = sweep_summary(finished.folder)
    if as_json:
        from orchestrator.console import write_json_line

        write_json_line({"event": "end", "exit_code": finished.exit_code, "message": finished.message, **summary.data})
        return
    for line in summary.lines if summary.data["completed"] else summary.lines[-2:-1]:
        view.say(line)


@main.command(cls=ScriptCommand)
@launch_options
@click.option("--json", "as_json", is_flag=True, help="The plan as JSON.")
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1)
@_guard
def plan(script: str | None, arguments: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Print what launch would do with the same options, and start nothing."""
    from orchestrator.console import write_data
    from orchestrator.prepare import prepare
    from orchestrator.queries import plan_text

    around, settings = _surroundings_and_settings({"script": script, **options})
    stamp = _now()[:19].replace("-", "").replace(":", "").replace("T", "-")
    write_data(plan_text(prepare(settings, around, script_arguments(arguments), stamp), as_json=as_json))


@main.command()
@click.argument("device", type=click.Choice(["cpu", "gpu"]))
@click.option(
    "--backend", type=click.Choice(["tensorflow", "torch", "both"]), default="both", show_default=True, help="What is in it."
)  # fmt: skip
@click.option("--base", help="Base image (default: a slim official Python).")
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of wheels: no index is asked.",
)
@click.option("--torch-index", help="An extra package index for Torch's CPU build.")
@_guard
def build(device: str, backend: str, base: str | None, wheels: Path | None, torch_index: str | None) -> None:
    """Build a worker image; an unchanged one is never built again."""
    from orchestrator.config import read_surroundings
    from orchestrator.console import LineView, write_data
    from orchestrator.engine.open import build_worker_image, docker_engine, worker_image_name

    around = read_surroundings(os.environ)
    name, request = worker_image_name(device, backend, base=base, wheels=wheels, torch_index=torch_index)
    build_worker_image(docker_engine(around), request, around, LineView().say)
    write_data(name)


_RUNS = click.option("--runs", help="Folder of all sweeps (default: ./runs).")
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


def _runs_folder(runs: str | None) -> Path:
    around, settings = _surroundings_and_settings({"runs": runs})
    return Path(around.folder / settings.runs)


@main.command("ls")
@_RUNS
@_JSON
@_guard
def list_sweeps(runs: str | None, as_json: bool) -> None:
    """List the sweeps, oldest first."""
    from orchestrator.console import write_data
    from orchestrator.queries import list_text

    write_data(list_text(_runs_folder(runs), as_json=as_json))


@main.command()
@click.argument("name")
@_RUNS
@_JSON
@_guard
def status(name: str, runs: str | None, as_json: bool) -> None:
    """Say how a sweep stands: rows, workers, failures."""
    from orchestrator.console import write_data
    from orchestrator.queries import find_sweep, status_text

    write_data(status_text(find_sweep(_runs_folder(runs), name), as_json=as_json))


@main.command()
@click.argument("name")
@click.option("-w", "--worker", type=int, help="A worker's log (default: the driver's).")
@click.option("-f", "--follow", is_flag=True, help="Go on until the sweep ends.")
@_RUNS
@_guard
def logs(name: str, worker: int | None, follow: bool, runs: str | None) -> None:
    """Print the output of the driver, or of one worker."""
    from orchestrator.queries import find_sweep, print_log

    print_log(find_sweep(_runs_folder(runs), name), worker, follow=follow, sleep=time.sleep)


@main.command()
@click.argument("name")
@click.argument("worker", type=int, required=False)
@_RUNS
@_guard
def inspect(name: str, worker: int | None, runs: str | None) -> None:
    """Print all that is known of a sweep, or of one of its workers, as JSON."""
    from orchestrator.console import write_data
    from orchestrator.queries import find_sweep, inspect_text

    write_data(inspect_text(find_sweep(_runs_folder(runs), name), worker))


@main.command()
@click.argument("name")
@click.option(
    "--format", "form", type=click.Choice(["csv", "json", "table"]), default="table", show_default=True, help="Its form."
)  # fmt: skip
@_RUNS
@_guard
def results(name: str, form: str, runs: str | None) -> None:
    """Print the merged table, of a running sweep too."""
    from orchestrator.console import write_data
    from orchestrator.queries import find_sweep, results_text

    write_data(results_text(find_sweep(_runs_folder(runs), name), form))


@main.command()
@click.argument("name")
@click.option("--now", is_flag=True, help="End everything at once; rows in hand are not recorded.")
@_RUNS
@_guard
def stop(name: str, now: bool, runs: str | None) -> None:
    """Stop a sweep: rows in hand finish, what there is is merged."""
    from orchestrator.config import read_surroundings
    from orchestrator.queries import find_sweep
    from orchestrator.stop import stop_sweep

    folder = find_sweep(_runs_folder(runs), name)
    click.echo(stop_sweep(folder, read_surroundings(os.environ), now=now), err=True)


@main.command()
@click.option("--yes", is_flag=True, help="Do it, instead of only saying what would be done.")
@_RUNS
@_guard
def clean(yes: bool, runs: str | None) -> None:
    """Find containers, volumes and work folders of sweeps whose launch is gone, and remove them with --yes.

    Without --runs it looks at the sweeps of every folder that have something on the Docker Engine.
    """
    from orchestrator.config import read_surroundings
    from orchestrator.stop import clean_leftovers

    folder = Path(os.path.realpath(_runs_folder(runs)))
    for line in clean_leftovers(folder, read_surroundings(os.environ), everywhere=runs is None, remove=yes):
        click.echo(line)
