"""Events and records as sentences and small tables: text for people, drawn by nobody here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.coordinator.events import Notice, StageBegun, StageEnded
from orchestrator.scan.objective import choose_metric, lower_is_better, rank_key
from orchestrator.schema import COMPLETED, TrialRecord


def printable(text: str) -> str:
    """Take terminal escapes and other control characters out of text that user code may have made."""
    return "".join(mark if mark.isprintable() or mark in "\t\n" else "\N{REPLACEMENT CHARACTER}" for mark in text)


def stage_line(event: StageBegun) -> str:
    """Announce a Scan."""
    plan = event.plan
    keys = ", ".join(plan.keys[:8]) + (" …" if len(plan.keys) > 8 else "")
    return f"Scan {plan.stage} {plan.experiment_name!r}: {plan.rows} rows of {keys} on {event.workers} workers"


def ended_line(event: StageEnded) -> str:
    """Say how a Scan ended."""
    result = event.result
    bad = f", {result.failed + result.lost} failed" if result.failed + result.lost else ""
    why = f" ({result.reason})" if result.reason else ""
    return f"Scan {result.stage} {result.status}: {result.completed} of {result.rows} rows completed{bad}{why}"


def notice_line(event: Notice) -> str:
    """Say what was noticed."""
    return f"warning: {event.text}" if event.level == "warning" else event.text


def trial_line(record: TrialRecord) -> str:
    """Say what became of a row."""
    if record.status != COMPLETED:
        return f"row {record.row} {record.status} ({record.cause}) on worker {record.worker}: {record.error}"
    metrics = " ".join(f"{name}={show_number(value)}" for name, value in list(record.metrics.items())[:4])
    return f"row {record.row} completed on worker {record.worker} in {show_seconds(record.duration)}: {metrics}"


def show_seconds(seconds: float) -> str:
    """Write a time for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def show_number(value: Any) -> str:
    """Write a number with five digits, anything else as it is."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def summary_lines(records: list[TrialRecord], keys: list[str], cell: Callable[[Any], Any], count: int = 5) -> list[str]:
    """Give the best rows as a small table, and the failures grouped by cause."""
    completed = [record for record in records if record.status == COMPLETED]
    lines: list[str] = []
    names = list(dict.fromkeys(name for record in completed for name in record.metrics))
    metric = choose_metric(names, "val_acc")
    if metric is not None:
        best = sorted(completed, key=lambda record: rank_key(metric, record.metrics.get(metric)))[:count]
        lines.append(f"best rows by {metric} ({'lowest' if lower_is_better(metric) else 'highest'} first):")
        header = ["row", metric, *keys]
        body = []
        for record in best:
            cells = (_short(cell(record.params.get(key))) for key in keys)
            body.append([str(record.row), show_number(record.metrics.get(metric)), *cells])
        lines += _aligned([header, *body])
    groups: dict[tuple[str, str], list[int]] = {}
    for record in records:
        if record.status != COMPLETED:
            groups.setdefault((str(record.cause), str(record.error)), []).append(record.row)
    for (cause, error), rows in sorted(groups.items(), key=lambda item: -len(item[1]))[:count]:
        shown = ", ".join(map(str, rows[:8])) + (" …" if len(rows) > 8 else "")
        lines.append(f"{len(rows)} failed ({cause}): {error} [row {shown}]")
    return lines


def _short(value: Any) -> str:
    text = show_number(value)
    return text if len(text) <= 24 else "…" + text[-23:]


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
