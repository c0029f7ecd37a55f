"""The merged table as a DataFrame and as ``results.csv``."""

from __future__ import annotations

import io

import pandas as pd

from orchestrator.records.atomic import write_text
from orchestrator.records.layout import SweepDir
from orchestrator.records.table import full_table
from orchestrator.results.merge import collect
from orchestrator.results.text import record_values
from orchestrator.schema import TrialRecord


def frame_of(records: list[TrialRecord]) -> pd.DataFrame:
    """Build the table of one stage: Talos's columns in Talos's order, then ours; one row per record."""
    table = full_table(records, record_values)
    frame: pd.DataFrame = pd.DataFrame(table.rows, columns=table.columns or None)
    return frame


def sweep_frame(sweep: SweepDir) -> pd.DataFrame:
    """Build the table of a whole sweep; with several Scans their tables follow one another, told apart by ``scan``."""
    stages = sweep.driver.stages()
    frames = [frame_of(collect(sweep, stage)) for stage in stages]
    if len(frames) <= 1:
        return frames[0] if frames else pd.DataFrame()
    numbered = [frame.assign(scan=stage) for stage, frame in zip(stages, frames, strict=True) if len(frame)]
    whole: pd.DataFrame = pd.concat(numbered, ignore_index=True) if numbered else pd.DataFrame()
    return whole


def write_csv(frame: pd.DataFrame, path: str) -> None:
    """Write a table whole or not at all."""
    text = io.StringIO()
    frame.to_csv(text, index=False)
    write_text(path, text.getvalue())
