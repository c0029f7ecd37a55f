"""What is said about a script before anything starts, and what is left to the run."""

from pathlib import Path

import pytest

from orchestrator.errors import OrchestratorError, ParamsTypeError, ParamsValueError, ScriptError
from orchestrator.plan.preflight import check_script
from orchestrator.space.domain import Domain

CASES = Path(__file__).parents[1] / "cases"
EXAMPLES = Path(__file__).parents[2] / "examples"


def scan(params, head="", **keywords):
    """Return a script that scans over ``params``, given as source."""
    words = "".join(f", {name}={value}" for name, value in keywords.items())
    return f"import talos\n{head}\ntalos.Scan(x, y, {params}, model, 'name'{words})\n"


def refusal(source, error=OrchestratorError, **keywords):
    with pytest.raises(error) as caught:
        check_script(source, "sweep.py", **keywords)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("sweep.py:")
    return message


class TestNotPython:
    def test_a_syntax_error_names_its_line(self):
        message = refusal("import talos\np = {'a': [1}\n", ScriptError)
        assert message.startswith("sweep.py:2: syntax error")
        assert "p = {'a': [1}" in message

    def test_null_bytes_are_named_with_their_line(self):
        assert refusal("import talos\n\0\n", ScriptError).startswith("sweep.py:2: holds null bytes")

    def test_a_notebook_is_told_how_to_become_a_script(self):
        assert "nbconvert" in refusal('{"cells": [], "nbformat": 4}', ScriptError)

    def test_json_is_no_script(self):
        assert "JSON" in refusal('{"a": [1, 2]}', ScriptError)

    def test_a_notebook_line_is_called_by_its_name(self):
        assert "`%matplotlib inline` is a notebook line" in refusal("import talos\n%matplotlib inline\n", ScriptError)

    def test_old_print_statements_are_syntax_errors(self):
        assert "print" in refusal("import talos\nprint 'hello'\n", ScriptError)

    def test_a_byte_order_mark_is_no_fault(self):
        assert check_script("\ufeff" + scan("{'a': [1]}"), "sweep.py").rows == 1

    def test_odd_escapes_warn_nobody(self):
        check_script("import talos\nword = '\\d'\n", "sweep.py")


class TestNeverScans:
    @pytest.mark.parametrize("source", ["", "print('hello')\n", "import numpy as np\nimport os\nnp.zeros(3)\n"])
    def test_a_script_that_cannot_scan_is_refused(self, source):
        assert "never calls Scan" in refusal(source, ScriptError)

    @pytest.mark.parametrize(
        "source",
        [
            "import talos\n",
            "from talos.utils import gpu_utils\n",
            "import orchestrator\n",
            "def go():\n    import talos as ta\n",
            "import company_sweeps\n",  # installed where the script runs, and unknown here
            "from . import search\n",
            "import importlib\nimportlib.import_module('tal' + 'os')\n",
            "exec(open('rest.py').read())\n",
            "import numpy\nnumpy.Scan()\n",
            "from numpy import Scan\n",
        ],
    )
    def test_in_doubt_it_may_scan(self, source):
        assert check_script(source, "sweep.py").scan_lines == ()

    def test_a_module_beside_the_script_may_scan_whatever_its_name(self):
        refusal("import json\n", ScriptError)
        check_script("import json\n", "sweep.py", frozenset({"json"}))


class TestWhatItTells:
    def test_imports_are_found_wherever_they_are(self):
        source = "import talos, os.path as p\ndef go():\n    from torch.nn import Linear\n    from . import near\n"
        assert check_script(source, "sweep.py").imports == {"talos", "os", "torch"}

    @pytest.mark.parametrize(
        "source",
        [
            "import talos\ntalos.Scan()",
            "import talos as ta\nta.Scan()",
            "import talos.utils\ntalos.Scan()",
            "from talos import Scan\nScan()",
            "from talos import Scan as sweep\nsweep()",
            "from talos.scan.Scan import Scan\nScan()",
            "from orchestrator import Scan\nScan()",
            "try: from orchestrator import Scan\nexcept ImportError: from talos import Scan\nScan()",
        ],
    )
    def test_a_scan_is_known_by_every_usual_name(self, source):
        assert check_script(source, "sweep.py").scan_lines == (source.count("\n") + 1,)

    @pytest.mark.parametrize(
        "source",
        [
            "import talos\nfrom mine import Scan\nScan(x, y, 5)",
            "from talos import Scan\nclass Scan: pass\nScan(x, y, 5)",
            "from talos import Scan\ndef go(Scan):\n    Scan(x, y, 5)",
            "import talos\ntalos = other\ntalos.Scan(x, y, 5)",
        ],
    )
    def test_another_scan_of_that_name_is_left_alone(self, source):
        assert check_script(source, "sweep.py").scan_lines == ()

    def test_a_very_long_expression_is_read(self):
        source = scan("{'a': [1, 2]}", head="total = " + " + ".join(["1"] * 900))
        assert check_script(source, "sweep.py").rows == 2


FAULTS = [
    ("{'b': [1], 'a': 5}", ParamsTypeError),
    ("{'a': 'relu'}", ParamsTypeError),
    ("{'a': None}", ParamsTypeError),
    ("{'a': -0.5}", ParamsTypeError),
    ("{'a': {1, 2}}", ParamsTypeError),
    ("{'a': {'b': [1]}}", ParamsTypeError),
    ("{'a': ('relu', 'tanh', 'elu')}", ParamsTypeError),
    ("{'a': (25, 32)}", ParamsValueError),
    ("{'a': (1, 2, 3, 4)}", ParamsValueError),
    ("{'a': ()}", ParamsValueError),
    ("{'a': (1, 5, 0)}", ParamsValueError),
    ("{'a': (1, 5, -2)}", ParamsValueError),
    ("{'a': (0.5, 0.5, 3)}", ParamsValueError),
    ("{'a': []}", ParamsValueError),
    ("{}", ParamsValueError),
    ("{'_trial_id': [1]}", ParamsValueError),
    ("{3: [1]}", ParamsTypeError),
    ("[('a', [1])]", ParamsTypeError),
    ("'a'", ParamsTypeError),
    ("None", ParamsTypeError),
]


class TestMalformedParameters:
    @pytest.mark.parametrize(("params", "error"), FAULTS)
    def test_the_words_are_those_of_the_run_itself(self, params, error):
        with pytest.raises(error) as later:
            Domain.of(eval(params))  # noqa: S307 - the literals above
        assert refusal(scan(params), error) == f"sweep.py:3: {later.value}"

    def test_the_line_is_that_of_the_value(self):
        source = scan("p", head="p = {\n    'b': [1],\n    'a': 5,\n}")
        assert refusal(source, ParamsTypeError).startswith("sweep.py:4: parameter 'a' is 5 (int)")

    @pytest.mark.parametrize("form", ["model=m, params=p", "x, y, params=p, model=m", "x=x, y=y, model=m, params=p"])
    def test_params_are_found_by_keyword(self, form):
        refusal(f"import talos\np = {{'a': 5}}\ntalos.Scan({form})\n", ParamsTypeError)

    def test_a_tuple_of_names_is_shown_as_written(self):
        assert "(nn.ReLU, nn.Tanh)" in refusal(scan("{'a': (nn.ReLU, nn.Tanh)}"), ParamsValueError)

    @pytest.mark.parametrize(
        "source",
        [
            "import talos\ndef go():\n    p = {'a': 5}\n    talos.Scan(x, y, p, m, 'n')\ngo()\n",
            "import talos\np = {'a': 5}\ndef go():\n    talos.Scan(x, y, p, m, 'n')\ngo()\n",
            "import talos\ndef model(x, y, u, v, p): p['b'] = 1\np = {'a': 5}\ntalos.Scan(x, y, p, model, 'n')\n",
            "import talos\np: dict = {'a': 5}\nprint(len(p), p)\ntalos.Scan(x, y, p, m, 'n')\n",
            "import talos\np = {'a': 5}\nif __name__ == '__main__':\n    talos.Scan(x, y, p, m, 'n')\n",
            "import talos\nclass A:\n    def go(self):\n        p = {'a': 5}\n        talos.Scan(x, y, p, m, 'n')\n",
            "import talos\ntalos.Scan(x, y, {'a': 5}, m, 'n')\ntalos.Scan(x, y, {'a': [5]}, m, 'n')\n",
        ],
    )
    def test_a_fault_is_certain_where_the_dictionary_is(self, source):
        refusal(source, ParamsTypeError)


UNCERTAIN_USES = [
    "p['a'] = [5]",
    "p.update(a=[5])",
    "del p['a']",
    "p |= {'a': [5]}",
    "p = {'a': [5]}",
    "q = p",
    "repair(p)",
    "repair(params=p)",
    "for p in spaces: pass",
    "[p.pop() for _ in x]",
    "def repair():\n    p['a'] = [5]",
    "def repair():\n    global p\n    p = {'a': [5]}",
    "from mine import *",
    "from mine import p",
    "exec('p = {}')",
    "globals()['p'] = {}",
    "def print(p): p['a'] = [5]\nprint(p)",
]


class TestDoubt:
    @pytest.mark.parametrize("use", UNCERTAIN_USES)
    def test_a_dictionary_that_may_change_is_left_to_the_run(self, use):
        found = check_script(scan("p", head=f"p = {{'a': 5}}\n{use}"), "sweep.py")
        assert found.rows is None
        assert len(found.scan_lines) == 1

    @pytest.mark.parametrize(
        "params",
        ["{'a': five}", "{'a': (low, high, 3)}", "{**base, 'a': 5}", "{key: 5}", "{'a': (*three,)}", "{'a': [*many]}",
         "{'a': [n for n in many]}", "{'a': range(3)}", "dict(a=5)", "make()", "p", "self.p", "{'a': 1 / 3}"],
    )  # fmt: skip
    def test_a_value_that_only_the_run_knows_is_left_to_it(self, params):
        assert check_script(scan(params), "sweep.py").rows is None

    def test_a_scan_in_a_try_may_be_meant_to_fail(self):
        source = "import talos\ntry:\n    talos.Scan(x, y, {'a': 5}, m, 'n')\nexcept TypeError:\n    pass\n"
        assert check_script(source, "sweep.py").rows is None

    def test_one_of_several_scans_may_never_be_reached(self):
        source = (
            "import talos\nif fast:\n    talos.Scan(x, y, {'a': 5}, m, 'n')\nelse:\n    talos.Scan(x, y, p, m, 'n')\n"
        )
        assert check_script(source, "sweep.py").scan_lines == (3, 5)


class TestRows:
    @pytest.mark.parametrize(
        ("params", "rows"),
        [
            ("{'a': [1, 2], 'b': [relu, tanh, None]}", 6),
            ("{'a': [1, 1, 2]}", 3),
            ("{'a': (2, 10, 30)}", 8),
            ("{'a': (0.0, 2.1, 7)}", 8),  # Talos's own rounding reaches the end
            ("{'a': (-5, 2, 5), 'b': [[50, 25], [20]]}", 8),
            ("{'a': 5, 'a': [1, 2]}", 2),
        ],
    )
    def test_a_literal_grid_has_an_exact_size(self, params, rows):
        assert check_script(scan(params), "sweep.py").rows == rows

    @pytest.mark.parametrize("limit", ["fraction_limit", "round_limit", "boolean_limit", "time_limit", "stop_after"])
    def test_a_limit_leaves_the_number_to_the_run(self, limit):
        assert check_script(scan("{'a': [1, 2]}", **{limit: 1}), "sweep.py").rows is None
        assert check_script(scan("{'a': [1, 2]}", **{limit: None}), "sweep.py").rows == 2

    @pytest.mark.parametrize(
        "call",
        ["S(x, y, {'a': [1]}, m, 'n', **more)", "S(x, y, {'a': [1]}, *more)", "S(" + "x, " * 12 + "1)"],
    )
    def test_arguments_that_are_not_spelled_out_may_hold_limits(self, call):
        assert check_script(f"from talos import Scan as S\n{call}\n", "sweep.py").rows is None

    def test_several_scans_have_no_one_number(self):
        assert check_script(scan("{'a': [1]}") + scan("{'a': [1]}"), "sweep.py").rows is None


class TestHandedScripts:
    @pytest.mark.parametrize(("name", "rows"), [("iris_keras", 12), ("iris_torch", 12), ("digits_torch", 16)])
    def test_examples_have_known_sizes(self, name, rows):
        found = check_script((EXAMPLES / f"{name}.py").read_text("utf-8"), name)
        assert found.rows == rows
        assert len(found.scan_lines) == 1

    @pytest.mark.parametrize(
        ("name", "error"),
        [
            ("x01_scalar_value.py", ParamsTypeError),
            ("x03_four_items.py", ParamsValueError),
            ("x03_two_items.py", ParamsValueError),
            ("empty_params.py", ParamsValueError),
            ("params_not_a_dict.py", ParamsTypeError),
            ("syntax_error.py.txt", ScriptError),
        ],
    )
    def test_faults_in_the_text_are_seen(self, name, error):
        refusal((CASES / name).read_text("utf-8"), error)

    def test_every_other_case_is_let_through(self):
        seen = {
            "empty_params",
            "params_not_a_dict",
            "x01_scalar_value",
            "x03_four_items",
            "x03_two_items",
            "q11_bare_string",
        }
        modules = {"s21_classifier"}
        rest = [path for path in CASES.glob("*.py") if path.stem not in seen | modules]
        assert len(rest) > 15
        for path in rest:
            check_script(path.read_text("utf-8"), path.name)
