"""``talos.Scan`` is ours however a script reaches it, with Talos and without. In processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from orchestrator.scan.hooks import install_hooks

FAKE = {
    "talos/__init__.py": "from .scan.Scan import Scan\nfrom .utils import gpu_utils\nREAL = True\n",
    "talos/scan/__init__.py": "",
    "talos/scan/Scan.py": "class Scan:\n    real = True\n",
    "talos/parameters/__init__.py": "",
    "talos/parameters/ParamSpace.py": "class ParamSpace:\n    real = True\n",
    "talos/parameters/DistributeParamSpace.py": (
        "from .ParamSpace import ParamSpace\nclass DistributeParamSpace(ParamSpace):\n    real = True\n"
    ),
    "talos/utils/__init__.py": "from . import gpu_utils\nfrom .extra import early_stopper\n",
    "talos/utils/extra.py": "def early_stopper():\n    return 'real'\n",
    "talos/utils/gpu_utils.py": "def parallel_gpu_jobs():\n    pass\n\ndef force_cpu():\n    pass\n",
}
START = """
import sys
from orchestrator.scan.hooks import install_hooks
from orchestrator.scan.redirect import install_stand_in, talos_hooks
install_hooks(talos_hooks())
install_stand_in()
"""
HIDE = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None: None if name.split(".")[0] == "talos" else find(name, path, target)
)
"""
IS_OURS = "\nimport orchestrator\nassert {name} is orchestrator.{what}, {name}\nprint('ours')\n"


def python(code, folder):
    hide = "import hidden\n" if (folder / "hidden.py").exists() else ""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + hide + code
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


@pytest.fixture
def fake(tmp_path):
    for name, text in FAKE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def without(tmp_path):
    """A folder whose Python knows no Talos, also where one is installed."""
    (tmp_path / "hidden.py").write_text(HIDE)
    return tmp_path


FORMS = [
    ("import talos", "talos.Scan", "Scan"),
    ("import talos as ta", "ta.Scan", "Scan"),
    ("from talos import Scan", "Scan", "Scan"),
    ("from talos import Scan as S", "S", "Scan"),
    ("from talos.scan.Scan import Scan", "Scan", "Scan"),
    ("import talos.scan.Scan as module", "module.Scan", "Scan"),
    ("import importlib; Scan = importlib.import_module('talos').Scan", "Scan", "Scan"),
    ("def late():\n    from talos import Scan\n    return Scan", "late()", "Scan"),
    ("from talos.parameters.ParamSpace import ParamSpace", "ParamSpace", "ParamSpace"),
    (
        "from talos.parameters.DistributeParamSpace import DistributeParamSpace",
        "DistributeParamSpace",
        "DistributeParamSpace",
    ),
    ("from talos.utils.gpu_utils import parallel_gpu_jobs", "parallel_gpu_jobs", "parallel_gpu_jobs"),
    ("import talos", "talos.utils.gpu_utils.force_cpu", "force_cpu"),
]


def test_every_form_of_import_of_a_talos_that_is_there_is_redirected(fake):
    checks = "".join(f"{form}{IS_OURS.format(name=name, what=what)}" for form, name, what in FORMS)
    done = python(START + checks, fake)
    assert done.stderr == ""
    assert done.stdout.split() == ["ours"] * len(FORMS)


@pytest.mark.parametrize(("form", "name", "what"), [FORMS[0], FORMS[2], FORMS[4], FORMS[9]])
def test_the_first_import_of_a_process_may_be_any_of_them(fake, form, name, what):
    done = python(START + form + IS_OURS.format(name=name, what=what), fake)
    assert (done.stdout, done.stderr) == ("ours\n", "")


def test_what_is_not_ours_stays_talos_own(fake):
    code = (
        "import talos\nfrom talos.utils import early_stopper\nassert talos.REAL\nprint(early_stopper(), talos.__file__)"
    )
    done = python(START + code, fake)
    assert done.stdout.split() == ["real", str(fake / "talos" / "__init__.py")]


def test_a_talos_that_was_imported_before_is_redirected_too(fake):
    done = python(
        "import talos\nassert talos.Scan.real\n" + START + IS_OURS.format(name="talos.Scan", what="Scan"), fake
    )
    assert (done.stdout, done.stderr) == ("ours\n", "")


def test_the_loader_stays_one_that_tells_its_source(fake):
    code = "import inspect, talos.scan.Scan\nprint('real = True' in inspect.getsource(sys.modules['talos.scan.Scan']))"
    assert python(START + code, fake).stdout == "True\n"


class TestStandIn:
    def test_offers_every_name_of_ours(self, without):
        checks = "".join(f"{form}{IS_OURS.format(name=name, what=what)}" for form, name, what in FORMS)
        done = python(START + checks, without)
        assert done.stderr == ""
        assert done.stdout.split() == ["ours"] * len(FORMS)

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            ("import talos; talos.Reporting", "talos.Reporting"),
            ("import talos; talos.utils.early_stopper", "talos.utils.early_stopper"),
        ],
    )
    def test_says_what_is_missing_and_how_to_get_it(self, without, code, name):
        done = python(START + code, without)
        assert done.stderr.splitlines()[-1] == (
            f"AttributeError: {name} needs Talos itself, which this image lacks: add talos to the image (pip install talos)"
        )

    def test_a_module_of_talos_that_is_not_ours_is_an_import_error(self, without):
        done = python(START + "import talos.templates", without)
        assert "ModuleNotFoundError" in done.stderr.splitlines()[-1]

    def test_can_be_tried_for(self, without):
        code = "import talos\nprint(hasattr(talos, 'Reporting'), getattr(talos, '__version__', None))"
        assert python(START + code, without).stdout == "False None\n"


def test_a_hook_runs_once_after_the_modules_own_code(tmp_path, monkeypatch):
    (tmp_path / "hooked_once.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    seen = []
    install_hooks({"hooked_once": lambda module: seen.append(module.value)})
    assert seen == []
    import hooked_once

    monkeypatch.delitem(sys.modules, "hooked_once")
    assert seen == [1]
    assert hooked_once.value == 1


def test_a_hook_for_a_module_that_is_not_there_changes_nothing(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    install_hooks({"no_such_module_here": print})
    with pytest.raises(ModuleNotFoundError, match="no_such_module_here"):
        import no_such_module_here  # noqa: F401


def test_an_error_in_a_hooked_module_is_the_modules_own(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    code = textwrap.dedent("""
        from orchestrator.scan.hooks import install_hooks
        install_hooks({"broken": lambda module: print("never")})
        import broken
    """)
    done = python(code, tmp_path)
    assert done.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert done.stdout == ""
