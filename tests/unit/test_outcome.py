"""What a model function may return, and the one line that says what was wrong with anything else. Needs no numpy."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest

from orchestrator.errors import ContractError
from orchestrator.scan.outcome import EXPECTED, backend_of, plain_number, read_outcome


class History:
    def __init__(self, history):
        self.history = history


class Model:
    pass


class Module:
    """Looks like Torch's: it has its weights, and the history hangs on it."""

    def __init__(self, history):
        self.history = history

    def state_dict(self):
        return {}


class Tensor:
    """A number on a device, as backends give them."""

    def __init__(self, value):
        self.value = value

    def detach(self):
        return self

    def item(self):
        return self.value


MODEL = Model()


class TestAccepted:
    @pytest.mark.parametrize("history", [{"loss": [3, 2, 1], "acc": [0.1]}, History({"loss": [3, 2, 1], "acc": [0.1]})])
    def test_a_history_and_a_model(self, history):
        found = read_outcome((history, MODEL))
        assert found.metrics == {"loss": 1, "acc": 0.1}
        assert found.history == {"loss": [3, 2, 1], "acc": [0.1]}
        assert found.model is MODEL
        assert found.backend == "generic"

    def test_torchs_module_and_its_parameters(self):
        module = Module({"loss": [1.0]})
        found = read_outcome((module, iter(())))
        assert found.model is module
        assert found.metrics == {"loss": 1.0}

    def test_torchs_module_as_the_model(self):
        module = Module({})
        assert read_outcome(({"loss": [1]}, module)).model is module

    def test_no_model(self):
        found = read_outcome(({"loss": [1]}, None))
        assert (found.model, found.backend) == (None, None)

    def test_a_dictionary_of_metrics(self):
        found = read_outcome({"acc": 0.5, "loss": 2, "passed": True})
        assert found.metrics == {"acc": 0.5, "loss": 2, "passed": True}
        assert found.history == {}

    def test_a_dictionary_with_model_history_and_predictions(self):
        found = read_outcome({"acc": 0.5, "model": MODEL, "history": History({"loss": [2, 1]}), "predictions": [1, 2]})
        assert found.metrics == {"acc": 0.5, "loss": 1}
        assert found.model is MODEL
        assert found.history == {"loss": [2, 1]}

    def test_a_dictionary_that_names_its_metrics(self):
        assert read_outcome({"metrics": {"f1": 0.5}, "anything": object(), "_model": MODEL}).metrics == {"f1": 0.5}

    def test_a_metric_given_beside_its_series_counts(self):
        assert read_outcome({"loss": 0.5, "history": {"loss": [2, 1]}}).metrics == {"loss": 0.5}

    def test_tensors_of_one_element(self):
        found = read_outcome(({"loss": [Tensor(2.0), Tensor(1)]}, None))
        assert found.history == {"loss": [2.0, 1]}

    def test_numbers_of_any_kind(self):
        found = read_outcome({"half": Fraction(1, 2), "nan": math.nan, "inf": math.inf})
        assert found.metrics["half"] == 0.5
        assert type(found.metrics["half"]) is float
        assert math.isnan(found.metrics["nan"])

    def test_metrics_keep_their_order(self):
        assert list(read_outcome(({"z": [1], "a": [1], "m": [1]}, None)).metrics) == ["z", "a", "m"]

    def test_an_empty_series_is_no_metric(self):
        assert read_outcome(({"loss": [1], "val_loss": []}, None)).metrics == {"loss": 1}

    def test_any_series_that_can_be_gone_through(self):
        assert read_outcome(({"loss": (2, 1), "acc": range(2)}, None)).history == {"loss": [2, 1], "acc": [0, 1]}


class NotIterable:
    def __iter__(self):
        raise TypeError("iteration over a 0-d array")


REFUSED = [
    (None, f"the model function returned None; {EXPECTED}"),
    (0.5, f"the model function returned a float; {EXPECTED}"),
    (MODEL, f"the model function returned a Model; {EXPECTED}"),
    ([{"loss": [1]}, MODEL], f"the model function returned a list; {EXPECTED}"),
    ((), f"the model function returned (); {EXPECTED}"),
    ((1, 2, 3), f"the model function returned (int, int, int); {EXPECTED}"),
    ((0.5, MODEL), f"the model function returned (float, Model); {EXPECTED}"),
    ((MODEL, History({})), f"the model function returned (Model, History); the two are the other way round; {EXPECTED}"),
    ((MODEL, {"loss": [1]}), f"the model function returned (Model, dict); the two are the other way round; {EXPECTED}"),
    (({1: [1]}, MODEL), f"history key 1 is not a string; {EXPECTED}"),
    (({"loss": 0.5}, MODEL), "history['loss'] is a float; give one number per epoch, in a list"),
    (({"loss": "0.5"}, MODEL), "history['loss'] is a str; give one number per epoch, in a list"),
    (({"loss": {}}, MODEL), "history['loss'] is a dict; give one number per epoch, in a list"),
    (({"loss": None}, MODEL), "history['loss'] is None; give one number per epoch, in a list"),
    (({"loss": NotIterable()}, MODEL),
     "history['loss'] is not a list: iteration over a 0-d array; give one number per epoch"),
    (({"loss": [1, "2"]}, MODEL), "history['loss'][1] is a str, not a number"),
    (({"loss": [[1]]}, MODEL), "history['loss'][0] is a list, not a number"),
    (({"loss": [None]}, MODEL), "history['loss'][0] is None, not a number"),
    (({"start": [1]}, MODEL), "metric 'start' has the name of a column of the result table; rename it"),
    ({"duration": 1}, "metric 'duration' has the name of a column of the result table; rename it"),
    ({"acc": "good"}, f"metric 'acc' is a str, not a number; {EXPECTED}"),
    ({"acc": None}, f"metric 'acc' is None, not a number; {EXPECTED}"),
    ({"acc": Decimal("0.5")}, f"metric 'acc' is a Decimal, not a number; {EXPECTED}"),
    ({1: 0.5}, f"metric 1 is not named by a string; {EXPECTED}"),
    ({"acc": 1, "history": [1, 2]}, f"the model function returned a dictionary whose history is a list; {EXPECTED}"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "said"), REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_anything_else_is_refused_in_one_line(output, said):
    with pytest.raises(ContractError) as caught:
        read_outcome(output)
    assert str(caught.value) == said
    assert isinstance(caught.value, TypeError)


def test_a_number_that_is_many_is_given_back(monkeypatch):
    class Many:
        def item(self):
            raise ValueError("only one element tensors")

    many = Many()
    assert plain_number(many) is many


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("keras.src.models", "keras"), ("tensorflow.python.keras", "tensorflow"), ("torch.nn.modules", "torch"),
        ("torch", "torch"), ("torchvision_of_mine", "generic"), ("sklearn.linear_model", "generic"),
    ],
)  # fmt: skip
def test_a_framework_is_known_by_where_its_classes_come_from(module, name):
    base = type("Base", (), {"__module__": module})
    assert backend_of(type("Mine", (base,), {"__module__": "__main__"})()) == name


def test_reading_an_outcome_needs_no_numpy():
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['pandas'] = None\n"
        "from orchestrator.scan.outcome import read_outcome\n"
        "print(read_outcome(({'loss': [2, 1]}, None)).metrics)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'loss': 1}"


@pytest.mark.backend
def test_real_backends_numbers_are_pythons_own():
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    given = {"a": [numpy.float32(0.5), numpy.int64(3), torch.tensor(2.0, requires_grad=True), numpy.array([1.5])]}
    found = read_outcome((given, None)).history["a"]
    assert found == [0.5, 3, 2.0, 1.5]
    assert [type(value) for value in found] == [float, int, float, float]
    assert read_outcome(({"a": numpy.array([1.0, 2.0])}, None)).metrics == {"a": 2.0}
    with pytest.raises(ContractError, match="not a number"):
        read_outcome(({"a": [numpy.zeros(3)]}, None))
