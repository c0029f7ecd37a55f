import sys
import types

import pytest

from orchestrator.scan.drift import Drift, fingerprint


class Array:
    """As much of a numpy array as is looked at."""

    def __init__(self, values):
        self.values_in = list(values)
        self.shape = (len(self.values_in),)
        self.itemsize = 1
        self.dtype = types.SimpleNamespace(hasobject=False)

    def ravel(self):
        return self

    def __len__(self):
        return len(self.values_in)

    def __getitem__(self, places):
        return Array(self.values_in[places])

    def tobytes(self):
        return bytes(self.values_in)


@pytest.fixture
def script(monkeypatch, tmp_path):
    module = types.ModuleType("__main__")
    module.__file__ = str(tmp_path / "scan.py")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def changed_by(script, data, act):
    drift = Drift(data)
    drift.before()
    act()
    return drift.after()


def test_a_trial_that_leaves_all_as_it_was_is_not_spoken_of(script):
    script.lr, script.table = 0.1, {"a": [1]}
    assert changed_by(script, (Array([1, 2]),), lambda: None) is None


@pytest.mark.parametrize("value", [1, [1], {"a": 1}, types.SimpleNamespace(n=1)])
def test_a_changed_global_is_named(script, value):
    script.state = value

    def act():
        if isinstance(value, list):
            value.append(2)
        elif isinstance(value, dict):
            value["a"] = 2
        elif isinstance(value, int):
            script.state = 2
        else:
            value.n = 2

    assert "the global state" in changed_by(script, (), act)


def test_changed_data_are_named(script):
    data = Array([1, 2, 3])
    assert "its data 'x'" in changed_by(script, (data,), data.values_in.reverse)


def test_it_is_said_once_and_only_the_first_trials_are_looked_at(script):
    script.n = 0
    drift = Drift((), looks=2)
    said = []
    for _ in range(4):
        drift.before()
        script.n += 1
        said.append(drift.after())
    assert [bool(text) for text in said] == [True, False, False, False]


def test_what_is_large_or_cannot_be_written_down_is_not_compared(script):
    class Odd:
        __module__ = "__main__"

        def __repr__(self):
            raise ValueError

    script.big, script.odd = ["x" * 10_000_000], types.SimpleNamespace(inner=Odd())
    assert changed_by(script, (), lambda: script.big.append("y" * 10_000_000)) is None


def test_equal_arrays_have_equal_fingerprints_and_others_do_not():
    assert fingerprint(Array([1, 2])) == fingerprint(Array([1, 2]))
    assert fingerprint(Array([1, 2])) != fingerprint(Array([2, 1]))
    assert fingerprint((Array([1]), "a")) != fingerprint((Array([1]), "b"))
