import json

import pytest

from orchestrator.errors import ScriptError
from orchestrator.plan.notebook import notebook_source


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "# words"}, *code]})


def test_code_cells_follow_one_another_and_words_are_left_out():
    source, notes = notebook_source(notebook("a = 1", "b = a + 1"), "x.ipynb")
    space: dict = {}
    exec(source, space)
    assert space["b"] == 2
    assert "words" not in source
    assert notes == ()


@pytest.mark.parametrize(
    "line", ["%matplotlib inline", "!pip install x", "?print", "print?", "files = !ls", "t = %timeit 1"]
)
def test_a_line_for_ipython_is_left_out_with_a_notice(line):
    source, notes = notebook_source(notebook(f"if True:\n    {line}\na = 1"), "x.ipynb")
    space: dict = {}
    exec(source, space)
    assert space["a"] == 1
    assert len(notes) == 1
    assert line in notes[0]


def test_a_cell_for_another_program_is_left_out_and_one_around_python_is_kept():
    source, notes = notebook_source(notebook("%%bash\nrm -rf x", "%%time\na = 1"), "x.ipynb")
    space: dict = {}
    exec(source, space)
    assert space["a"] == 1
    assert "rm -rf" not in source
    assert len(notes) == 2


@pytest.mark.parametrize(
    "text", ["{}", "[]", "no json", '{"cells": 5}', '{"cells": [5]}', '{"cells": [{"cell_type": "code"}]}']
)
def test_what_is_no_notebook_says_so(text):
    with pytest.raises(ScriptError, match="not a notebook"):
        notebook_source(text, "x.ipynb")
