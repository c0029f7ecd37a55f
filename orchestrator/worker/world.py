"""What of the usual world is not there in a container, made harmless before the user's first line.

No display, nobody at a keyboard, and fewer cores than the machine has.
"""

from __future__ import annotations

import builtins
import math
import os
import sys
from types import ModuleType
from typing import Any, Optional

from orchestrator.errors import ScriptError
from orchestrator.scan.hooks import Hook
from orchestrator.schema import Job

# Matplotlib's backends that draw without a display; every other one needs a window.
_WITHOUT_WINDOW = frozenset(
    ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template", "module://matplotlib_inline.backend_inline")
)


def world_hooks() -> dict[str, Hook]:
    """Give what to do after the import of each module that expects a screen or a keyboard."""
    return {"matplotlib": _no_window, "matplotlib.pyplot": _no_show, "pdb": _no_debugger}


def prepare_world(job: Job) -> None:
    """Answer ``input``, ``breakpoint`` and the number of cores for this process."""
    builtins.input = _no_input
    if job.script.endswith("/notebook.py"):
        builtins.display = _display  # type: ignore[attr-defined]  # IPython's, in every notebook
    sys.breakpointhook = _go_on
    cpus = (job.share or {}).get("cpus")
    if cpus:
        # A quota is invisible to these, and code that starts one process per core would start one per core of the host.
        count = max(1, math.ceil(cpus))
        os.cpu_count = lambda: count
        if hasattr(os, "process_cpu_count"):
            os.process_cpu_count = lambda: count


def _display(*objects: Any, **_options: Any) -> None:
    """Stand in for a notebook's ``display``: print what it would draw."""
    for each in objects:
        sys.stdout.write(f"{each}\n")


def _no_input(prompt: object = "") -> str:
    raise ScriptError(
        f"the script asks for input ({str(prompt).strip()!r}): give it as an argument after --, nobody types here"
    )


def _go_on(*_: Any, **__: Any) -> None:
    _say("a breakpoint was passed over: nobody types here")


def _no_debugger(pdb: ModuleType) -> None:
    pdb.set_trace = _go_on  # type: ignore[attr-defined]


def _no_window(matplotlib: ModuleType) -> None:
    choose = matplotlib.use

    def use(backend: str, *, force: bool = True) -> None:
        if str(backend).lower() in _WITHOUT_WINDOW:
            choose(backend, force=force)
        else:
            _say(f"matplotlib's backend {backend!r} needs a display, which is not here: Agg is used instead")

    matplotlib.use = use  # type: ignore[attr-defined]


def _no_show(pyplot: ModuleType) -> None:
    switch = pyplot.switch_backend

    def switch_backend(newbackend: Optional[str]) -> None:
        switch(newbackend if newbackend is None or str(newbackend).lower() in _WITHOUT_WINDOW else "agg")

    pyplot.switch_backend = switch_backend  # type: ignore[attr-defined]
    pyplot.show = lambda *_, **__: None  # type: ignore[attr-defined]


def _say(text: str) -> None:
    sys.stderr.write(f"talos-orch: {text}\n")
