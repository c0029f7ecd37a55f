"""Which row is better, and which models stay: a worker never drops what the whole sweep would keep."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.scan.models import KeepPolicy, KeptRows, ModelStore, load_model
from orchestrator.scan.objective import choose_metric, lower_is_better, rank_key


@pytest.mark.parametrize(
    "name",
    ["loss", "val_loss", "mae", "val_mse", "root.mean.error", "Binary_CrossEntropy", "top-1 error", "train_time"],
)
def test_errors_and_losses_are_better_when_small(name):
    assert lower_is_better(name)


@pytest.mark.parametrize("name", ["acc", "val_accuracy", "f1", "auc", "score", "maelstrom_score", "lossless", "r2", ""])
def test_everything_else_is_better_when_large(name):
    assert not lower_is_better(name)


def test_the_metric_shown_is_the_one_asked_for_else_talos_order_else_the_first():
    assert choose_metric(["f1", "loss", "val_acc"], "f1") == "f1"
    assert choose_metric(["f1", "loss", "val_acc"], "auc") == "loss"
    assert choose_metric(["f1", "val_acc"]) == "val_acc"
    assert choose_metric(["f1", "auc"]) == "f1"
    assert choose_metric([]) is None


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_the_best_comes_first_and_what_is_no_number_last(values):
    for metric, best in (("loss", min), ("acc", max)):
        ranked = sorted([*values, math.nan, None, "x"], key=lambda value: rank_key(metric, value))
        if all(map(math.isfinite, values)):
            assert ranked[0] == best(values)
            assert {str(value) for value in ranked[-3:]} == {"nan", "None", "x"}


def test_a_direction_that_is_given_wins():
    assert rank_key("loss", 2.0, minimize=False) == -2.0
    assert rank_key("acc", 2.0, minimize=True) == 2.0


class TestKeepPolicy:
    @pytest.mark.parametrize(
        ("text", "kind", "count"),
        [("best", "best", 10), ("best:3", "best", 3), ("all", "all", 10), ("none", "none", 10)],
    )
    def test_is_read(self, text, kind, count):
        assert KeepPolicy.parse(text) == KeepPolicy(kind, count)

    @pytest.mark.parametrize("text", ["", "best:0", "best:-1", "best:x", "all:3", "none:1", "some", "best:1.5", "Best"])
    def test_anything_else_is_refused(self, text):
        with pytest.raises(InputError, match=r"--keep-models .*: give best, best:N, all or none"):
            KeepPolicy.parse(text)


metrics = st.dictionaries(
    st.sampled_from(["loss", "acc", "f1"]), st.floats(allow_nan=True) | st.integers(-3, 3), max_size=3
)


@given(st.lists(metrics, max_size=30), st.integers(1, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_what_the_sweep_would_keep_some_worker_has_kept(results, count, workers, random):
    policy = KeepPolicy("best", count)
    whole = KeptRows(policy)
    own = [KeptRows(policy) for _ in range(workers)]
    for row, found in enumerate(results):
        whole.offer(row, found)
    order = list(enumerate(results))
    random.shuffle(order)  # workers end in any order
    for row, found in order:
        random.choice(own).offer(row, found)
    assert whole.rows() <= set().union(*(kept.rows() for kept in own))


@given(st.lists(metrics, max_size=30), st.integers(1, 4))
def test_each_metrics_best_rows_are_kept_and_those_dropped_are_named(results, count):
    kept, there = KeptRows(KeepPolicy("best", count)), set()
    for row, found in enumerate(results):
        is_kept, gone = kept.offer(row, found)
        if is_kept:
            there.add(row)
        there -= gone
        assert there == kept.rows()
    for name in ("loss", "acc", "f1"):
        rows = [row for row, found in enumerate(results) if name in found]
        best = sorted(rows, key=lambda row: (rank_key(name, results[row][name]), row))[:count]
        assert set(best) <= kept.rows()


def test_all_and_none_keep_all_and_none():
    every, nothing = KeptRows(KeepPolicy("all")), KeptRows(KeepPolicy("none"))
    assert [every.offer(row, {"loss": row}) for row in range(3)] == [(True, set())] * 3
    assert nothing.offer(0, {"loss": 0}) == (False, set())
    assert (every.rows(), nothing.rows()) == ({0, 1, 2}, set())


class TestModelStore:
    @pytest.fixture
    def store(self, tmp_path):
        return ModelStore(str(tmp_path / "models"), KeepPolicy("best", 1))

    def test_writes_the_best_and_takes_the_beaten_away(self, store, tmp_path):
        first = store.offer(0, {"loss": 2.0}, {"weights": [1]})
        assert first == {"backend": "generic", "format": "pickle", "path": "models/0.pkl"}
        assert store.offer(1, {"loss": 3.0}, {"weights": [2]}) is None
        assert store.offer(2, {"loss": 1.0}, {"weights": [3]})["path"] == "models/2.pkl"
        assert [path.name for path in (tmp_path / "models").iterdir()] == ["2.pkl"]

    def test_what_it_wrote_comes_back(self, store, tmp_path):
        descriptor = store.offer(0, {"loss": 2.0}, {"weights": [1]})
        assert load_model(descriptor, str(tmp_path)) == {"weights": [1]}

    def test_a_model_that_cannot_be_saved_costs_a_warning_not_the_trial(self, store):
        with pytest.warns(UserWarning, match="the model of row 0 could not be saved"):
            assert store.offer(0, {"loss": 2.0}, lambda: None) is None

    def test_no_model_is_nothing_to_write(self, store, tmp_path):
        assert store.offer(0, {"loss": 2.0}, None) is None
        assert not (tmp_path / "models").exists()

    def test_an_earlier_process_s_rows_count(self, store, tmp_path):
        descriptor = store.offer(0, {"loss": 1.0}, "best")
        again = ModelStore(str(tmp_path / "models"), KeepPolicy("best", 1))
        again.remember(0, {"loss": 1.0}, descriptor)
        assert again.offer(1, {"loss": 2.0}, "worse") is None
        assert again.offer(2, {"loss": 0.5}, "better") is not None
        assert [path.name for path in (tmp_path / "models").iterdir()] == ["2.pkl"]


def test_weights_alone_are_no_model(tmp_path):
    with pytest.raises(LookupError):
        load_model({"format": "torch_state_dict", "path": "models/0.pt"}, str(tmp_path))
