"""A notebook as the script that it is a record of."""

from __future__ import annotations

import json
import re
from typing import Any

from orchestrator.errors import ScriptError

# Lines that only IPython understands: %magic, !shell, ?help and help?.
_MAGIC = re.compile(r"\s*(%|!|\?|[\w.]+\?{1,2}\s*$)")
# Cell magics whose cell is Python all the same.
_AROUND_PYTHON = (["time"], ["timeit"], ["capture"], ["prun"])
_ASSIGNED = re.compile(r"\s*\w+\s*=\s*[!%]")


def notebook_source(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Join the code cells of a notebook (format 4); (Python source, what was left out). ScriptError if it is none."""
    try:
        cells: Any = json.loads(text)["cells"]
        codes = [_text(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ScriptError(f"{name}: not a notebook of format 4 ({type(error).__name__}: {error})") from error
    notes: list[str] = []
    lines: list[str] = []
    for number, code in enumerate(codes, 1):
        lines.append(f"# cell {number}")
        first = code.lstrip().split("\n", 1)[0]
        if first.startswith("%%") and first[2:].split(maxsplit=1)[:1] not in _AROUND_PYTHON:
            notes.append(f"cell {number} is left out: {first!r} is for IPython")
            continue
        for line in code.splitlines():
            if _MAGIC.match(line) or _ASSIGNED.match(line):
                notes.append(f"cell {number}: {line.strip()!r} is left out, it is for IPython")
                indent = line[: len(line) - len(line.lstrip())]
                lines.append(f"{indent}pass")
            else:
                lines.append(line)
        lines.append("")
    return "\n".join(lines) + "\n", tuple(notes)


def _text(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)
