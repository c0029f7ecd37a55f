"""Everything that is drawn or said to a person; the only module that does. Words go to stderr, data to stdout."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from rich.console import Console as RichConsole
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.coordinator.events import (
    Event,
    Notice,
    Output,
    StageBegun,
    StageEnded,
    Tick,
    TrialDone,
    event_json,
)
from orchestrator.scan.objective import choose_metric, rank_key
from orchestrator.schema import COMPLETED, TrialRecord
from orchestrator.words import ended_line, notice_line, printable, show_number, show_seconds, stage_line, trial_line


class View(Protocol):
    """One way to show a launch."""

    def show(self, event: Event) -> None:
        """Take an event."""

    def say(self, text: str) -> None:
        """Say a sentence."""

    def close(self) -> None:
        """Leave the screen in order."""


def choose_view(*, as_json: bool) -> View:
    """JSON lines when asked for, a live table on a terminal, lines of text otherwise."""
    if as_json:
        return Unheard(JsonView())
    return Unheard(LiveView() if sys.stderr.isatty() else LineView())


class Unheard:
    """Another view whose listener may go away (``| head``): the sweep goes on, unseen."""

    def __init__(self, view: View) -> None:
        self._view: View | None = view

    def show(self, event: Event) -> None:
        """Pass the event on, while somebody reads."""
        self._pass(lambda view: view.show(event))

    def say(self, text: str) -> None:
        """Pass the sentence on, while somebody reads."""
        self._pass(lambda view: view.say(text))

    def close(self) -> None:
        """Close the other view."""
        self._pass(lambda view: view.close())

    def _pass(self, call: Callable[[View], None]) -> None:
        if self._view is None:
            return
        try:
            call(self._view)
        except BrokenPipeError:
            self._view = None


class JsonView:
    """One JSON object per event on stdout; sentences are events too."""

    def show(self, event: Event) -> None:
        """Write the event."""
        data = event_json(event)
        if data is not None:
            write_json_line(data)

    def say(self, text: str) -> None:
        """Write a sentence as an event."""
        write_json_line({"event": "info", "text": text})

    def close(self) -> None:
        """Nothing to put in order."""


class LineView:
    """One line per event, for a pipe or a log."""

    def __init__(self) -> None:
        self._done = 0
        self._rows = 0

    def show(self, event: Event) -> None:
        """Write the event; the script's own output goes where it would have gone."""
        if isinstance(event, Output):
            write_output(event)
        elif isinstance(event, StageBegun):
            self._done, self._rows = 0, event.plan.rows
            self.say(stage_line(event))
        elif isinstance(event, TrialDone):
            self._done += 1
            self.say(f"[{self._done}/{self._rows}] {trial_line(event.record)}")
        elif isinstance(event, StageEnded):
            self.say(ended_line(event))
        elif isinstance(event, Notice):
            self.say(notice_line(event))

    def say(self, text: str) -> None:
        """Write one line to stderr."""
        sys.stderr.write(f"talos-orch: {printable(text)}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Nothing to put in order."""


class LiveView:
    """One table that is redrawn, with everything else scrolling above it."""

    def __init__(self) -> None:
        self._console = RichConsole(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._running = False
        self._pending = {"out": "", "err": ""}
        self._best: TrialRecord | None = None
        self._began = time.monotonic()
        self._metric: str | None = None

    def show(self, event: Event) -> None:
        """Draw the event."""
        if isinstance(event, Output):
            self._output(event)
        elif isinstance(event, Tick):
            self._draw(event)
        elif isinstance(event, StageBegun):
            self._best, self._began, self._metric = None, time.monotonic(), event.plan.objective
            self.say(stage_line(event))
        elif isinstance(event, TrialDone):
            self._note(event.record)
        elif isinstance(event, StageEnded):
            self._pause()
            self.say(ended_line(event))
        elif isinstance(event, Notice):
            self.say(notice_line(event))

    def say(self, text: str) -> None:
        """Print a sentence above the table."""
        self._console.print(Text(f"talos-orch: {printable(text)}", style="dim"))

    def close(self) -> None:
        """Take the table away."""
        for stream, rest in self._pending.items():
            if rest:
                write_output(Output(stream=stream, text=rest))
        self._pause()

    def _pause(self) -> None:
        if self._running:
            self._live.update(Text(""), refresh=True)
            self._live.stop()
            self._running = False

    def _output(self, event: Output) -> None:
        if not self._running:
            write_output(event)
            return
        *lines, self._pending[event.stream] = (self._pending[event.stream] + event.text).split("\n")
        for line in lines:
            if event.stream == "out" and not sys.stdout.isatty():
                write_output(Output(stream="out", text=line + "\n"))
            else:
                self._console.print(Text(printable(line)))

    def _note(self, record: TrialRecord) -> None:
        if record.status != COMPLETED:
            self._console.print(Text(printable(trial_line(record)), style="red"))
            return
        metric = choose_metric(list(record.metrics), self._metric)
        if metric is None:
            return
        value = rank_key(metric, record.metrics.get(metric))
        if self._best is None or value < rank_key(metric, self._best.metrics.get(metric)):
            self._best = record

    def _draw(self, tick: Tick) -> None:
        if not tick.workers:
            self._pause()
            return
        if not self._running:
            self._live.start()
            self._running = True
        table = Table(box=None, pad_edge=False, header_style="bold")
        on_gpus = any(view.gpu_mib is not None for view in tick.workers)
        for name in ("worker", "device", "state", "done", "failed", "left", "row", *(["GPU MiB"] if on_gpus else [])):
            table.add_column(name, justify="left" if name in ("device", "state") else "right")
        for view in tick.workers:
            row = "" if view.current is None else str(view.current)
            device = view.device[:16]
            cells = [str(view.worker), device, view.state, str(view.done), str(view.failed), str(view.left), row]
            table.add_row(*cells, *([f"{view.gpu_mib or 0:.0f}"] if on_gpus else []))
        self._live.update(Group(table, Text(self._caption(tick), style="dim")), refresh=True)

    def _caption(self, tick: Tick) -> str:
        seconds = time.monotonic() - self._began
        rate = tick.done / seconds if seconds > 0 else 0.0
        left = f", {show_seconds((tick.rows - tick.done) / rate)} left" if rate > 0 else ""
        text = f"{tick.done}/{tick.rows} rows, {rate:.2g} rows/s{left}"
        if self._best is not None:
            metric = choose_metric(list(self._best.metrics), self._metric)
            text += f"; best {metric} {show_number(self._best.metrics.get(str(metric)))} in row {self._best.row}"
        return text


def write_output(event: Output) -> None:
    """Pass the script's own output on, unchanged, to the stream on which it came."""
    stream = sys.stdout if event.stream == "out" else sys.stderr
    stream.write(event.text)
    stream.flush()


def write_json_line(data: dict[str, Any]) -> None:
    """Write one JSON object on one line of stdout."""
    sys.stdout.write(json.dumps(_finite(data), ensure_ascii=False, default=str, allow_nan=False) + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    """Give NaN and infinities as null: JSON has no word for them, and many readers stop at Python's."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def write_data(text: str) -> None:
    """Write data to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def write_error(text: str) -> None:
    """Write the one line of an error."""
    sys.stderr.write(f"talos-orch: error: {printable(text)}\n")


def table_text(headers: list[str], rows: list[list[str]]) -> str:
    """Write an aligned table for people."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(item)) for item in row))
    console = RichConsole(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 240)
    with console.capture() as captured:
        console.print(table)
    return captured.get()
