"""The merged table as a DataFrame, as ``results.csv`` and, where pyarrow is there, as ``results.parquet``.

pandas is imported where a table is made, so that a launch does not wait for it before its first container.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import os
from typing import TYPE_CHECKING

from orchestrator.records.atomic import write_text
from orchestrator.records.layout import SweepDir
from orchestrator.records.table import full_table
from orchestrator.records.text import record_values
from orchestrator.results.merge import collect
from orchestrator.schema import TrialRecord

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


def frame_of(records: list[TrialRecord]) -> pd.DataFrame:
    """Build the table of one stage: Talos's columns in Talos's order, then ours; one row per record."""
    import pandas as pd

    table = full_table(records, record_values)
    frame: pd.DataFrame = pd.DataFrame(table.rows, columns=table.columns or None)
    return frame


def sweep_frame(sweep: SweepDir) -> pd.DataFrame:
    """Build the table of a whole sweep; with several Scans their tables follow one another, told apart by ``scan``."""
    import pandas as pd

    stages = sweep.driver.stages()
    frames = [frame_of(collect(sweep, stage)) for stage in stages]
    if len(frames) <= 1:
        return frames[0] if frames else pd.DataFrame()
    column = "orch__scan" if any("scan" in frame for frame in frames) else "scan"
    numbered = [frame.assign(**{column: stage}) for stage, frame in zip(stages, frames, strict=True) if len(frame)]
    whole: pd.DataFrame = pd.concat(numbered, ignore_index=True) if numbered else pd.DataFrame()
    return whole


def write_tables(frame: pd.DataFrame, csv: str) -> None:
    """Write ``csv`` whole or not at all, and the same table beside it as parquet if pyarrow is installed."""
    text = io.StringIO()
    frame.to_csv(text, index=False)
    write_text(csv, text.getvalue())
    if importlib.util.find_spec("pyarrow") is None:
        return
    path = os.path.splitext(csv)[0] + ".parquet"
    # A parameter column may hold a number in one row and text in the next, which parquet does not take.
    mixed = [name for name in frame.columns if frame[name].dtype == object]
    try:
        frame.astype(dict.fromkeys(mixed, "string")).to_parquet(path + ".tmp", index=False)
        os.replace(path + ".tmp", path)
    except (ValueError, TypeError, NotImplementedError) as error:  # the CSV is the table; this is a convenience
        logger.warning("%s not written: %s", path, error)
