"""``orchestrator.Scan`` outside any sweep, with models that need no backend."""

from __future__ import annotations

import json
import math

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("pandas")

from orchestrator import Scan  # noqa: E402
from orchestrator.errors import ContractError, InputError, ParamsTypeError, ParamsValueError  # noqa: E402
from orchestrator.records.trial_log import read_log  # noqa: E402
from orchestrator.scan.entropy import series_entropy  # noqa: E402
from orchestrator.scan.split import split_data  # noqa: E402

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10.0)


class Model:
    """Stands for a trained model; at module level, so that it can be pickled."""

    def __init__(self, a):
        self.a = a


def model(x_train, y_train, x_val, y_val, params):
    return {"loss": [3.0, 1 / params["a"]], "val_acc": [0.0, params["a"] / 10]}, Model(params["a"])


@pytest.fixture
def scan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(params=None, function=model, **options):
        given = {"x_val": X, "y_val": Y, "disable_progress_bar": True, "experiment_name": "case", **options}
        given.setdefault("clear_session", False)  # collecting garbage after each trial takes long in a test process
        return Scan(X, Y, {"a": [1, 2, 3, 4]} if params is None else params, function, **given)

    return run


class TestRows:
    def test_are_all_there_in_order(self, scan):
        found = scan({"a": [1, 2], "b": ["x", "y", "z"]})
        assert found.data[["a", "b"]].to_numpy().tolist() == [[a, b] for a in (1, 2) for b in "xyz"]
        assert found.data["loss"].tolist() == [1, 1, 1, 0.5, 0.5, 0.5]
        assert found.status == "complete"

    def test_have_talos_columns(self, scan):
        found = scan()
        assert list(found.data.columns) == [
            "start", "end", "duration", "execution_time", "round_epochs", "_warnings", "loss", "val_acc",
            "_trial_id", "_param_hash", "a",
        ]  # fmt: skip
        assert found.data["round_epochs"].tolist() == [2] * 4
        assert found.result[0] == list(found.data.columns)
        assert len(found.result) == 5
        assert found.experiment_log is found.data

    def test_a_tables_list_takes_what_the_caller_sees(self, scan):
        found = scan()
        assert list(found.round_times.columns) == ["start", "end", "duration"]
        assert found.round_history[1] == {"loss": [3.0, 0.5], "val_acc": [0.0, 0.2]}
        assert len(found.learning_entropy) == 4
        assert found.details["experiment_name"] == "case"

    def test_are_recorded_on_disk_under_the_experiments_name(self, scan, tmp_path):
        found = scan()
        (run,) = (tmp_path / "case").iterdir()
        assert str(found.run_dir) == str(run)
        assert [each.row for each in read_log(str(run / "trials.jsonl"))] == [0, 1, 2, 3]
        assert json.loads((run / "result.json").read_text())["status"] == "complete"

    def test_limits_are_kept(self, scan):
        assert len(scan({"a": list(range(1, 101))}, round_limit=7, seed=1).data) == 7
        assert len(scan({"a": list(range(1, 101))}, fraction_limit=0.1, seed=1).data) == 10
        assert scan(boolean_limit=lambda p: p["a"] > 2).data["a"].tolist() == [3, 4]

    def test_a_seed_gives_the_same_rows_again(self, scan):
        def drawn(x_train, y_train, x_val, y_val, params):
            return {"loss": [float(np.random.rand())]}, None

        one, other = (scan(function=drawn, seed=3).data["loss"].tolist() for _ in range(2))
        assert one == other
        assert len(set(one)) == 4

    def test_each_row_has_containers_of_its_own(self, scan):
        def eats(x_train, y_train, x_val, y_val, params):
            params["layers"].clear()
            return {"loss": [1.0]}, None

        found = scan({"layers": [[8, 4]], "a": [1, 2]}, eats)
        assert found.data["layers"].tolist() == [[], []]

    def test_objects_stay_objects(self, scan):
        found = scan({"a": [1], "f": [math.sin, math.cos]})
        assert found.data["f"].tolist() == [math.sin, math.cos]

    def test_warnings_of_a_trial_are_in_its_row(self, scan):
        def warns(x_train, y_train, x_val, y_val, params):
            import warnings

            warnings.simplefilter("always")
            warnings.warn("hot", stacklevel=1)
            return {"loss": [1.0]}, None

        with pytest.warns(UserWarning, match="hot"):
            found = scan({"a": [1]}, warns)
        assert json.loads(found.data["_warnings"][0])[0]["message"] == "hot"


def fails_at_two(x_train, y_train, x_val, y_val, params):
    if params["a"] == 2:
        raise ValueError("no\nsecond line")
    if params["a"] == 3:
        raise SystemExit(7)
    return model(x_train, y_train, x_val, y_val, params)


class TestFailures:
    def test_cost_their_own_trials(self, scan, capsys):
        found = scan(function=fails_at_two)
        assert found.data["a"].tolist() == [1, 4]
        assert found.failures["row"].tolist() == [1, 2]
        assert found.failures["error"].tolist() == ["ValueError: no", "SystemExit: 7"]
        assert found.failures["cause"].tolist() == ["exception", "exception"]
        assert "2 of 4 trials did not complete" in capsys.readouterr().err

    def test_keep_their_traceback_in_the_record(self, scan):
        found = scan(function=fails_at_two)
        failed = read_log(str(found.run_dir / "trials.jsonl"))[1]
        assert "fails_at_two" in failed.traceback
        assert failed.params == {"a": 2}

    @pytest.mark.parametrize(
        ("error", "cause"),
        [
            (MemoryError(), "host-oom"), (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), "gpu-oom"),
            (type("ResourceExhaustedError", (Exception,), {})("OOM on GPU:0"), "gpu-oom"),
            (type("ResourceExhaustedError", (Exception,), {})("OOM on CPU"), "host-oom"),
            (RuntimeError("unable to write to file </torch_1> in /dev/shm"), "shm"), (KeyError("x"), "exception"),
        ],
    )  # fmt: skip
    def test_say_their_cause(self, scan, error, cause):
        def raises(x_train, y_train, x_val, y_val, params):
            raise error

        assert scan({"a": [1]}, raises).failures["cause"].tolist() == [cause]

    def test_of_every_trial_leave_an_empty_table(self, scan):
        def raises(*_):
            raise ValueError("never")

        found = scan(function=raises)
        assert len(found.data) == 0
        assert len(found.failures) == 4
        with pytest.raises(KeyError, match="no row completed"):
            found.best_model("loss")


class TestContract:
    def test_is_checked_at_the_first_trial(self, scan):
        calls = []

        def wrong(x_train, y_train, x_val, y_val, params):
            calls.append(1)
            return 0.5

        with pytest.raises(ContractError, match="returned a float"):
            scan(function=wrong)
        assert len(calls) == 1

    def test_broken_later_costs_one_trial(self, scan):
        def sometimes(x_train, y_train, x_val, y_val, params):
            return model(x_train, y_train, x_val, y_val, params) if params["a"] != 3 else None

        found = scan(function=sometimes)
        assert found.data["a"].tolist() == [1, 2, 4]
        assert found.failures["error"][0].startswith("the model function returned None")


def test_ctrl_c_keeps_the_rows_that_are_done(scan, capsys):
    def interrupted(x_train, y_train, x_val, y_val, params):
        if params["a"] == 3:
            raise KeyboardInterrupt
        return model(x_train, y_train, x_val, y_val, params)

    found = scan(function=interrupted)
    assert found.status == "paused"
    assert found.data["a"].tolist() == [1, 2]
    assert "stopped with 2 of 4 rows not run" in capsys.readouterr().err


class TestModels:
    def test_come_back_from_disk(self, scan):
        found = scan(clear_session=True)
        assert [each.a for each in found.models] == [1, 2, 3, 4]
        assert found.models[-1].a == 4
        assert [each.a for each in found.models[1:3]] == [2, 3]
        with pytest.raises(IndexError):
            found.models[4]

    def test_the_best_is_the_one_of_the_best_row(self, scan):
        found = scan()
        assert found.best_model("val_acc").a == 4
        assert found.best_model("loss", asc=True).a == 4
        assert found.best_model("loss", asc=False).a == 1
        assert found.best_model().a == 4

    def test_a_best_model_that_was_not_kept_is_trained_again(self, scan, capsys):
        found = scan(save_weights=False)
        assert list(found.models) == [None] * 4
        assert found.best_model("val_acc").a == 4
        assert "training that row again" in capsys.readouterr().err

    def test_a_metric_that_is_not_there_is_refused_with_those_that_are(self, scan):
        with pytest.raises(KeyError, match="no metric 'f1' in the result; there are: loss, val_acc"):
            scan().best_model("f1")

    def test_rows_without_a_value_are_never_best(self, scan):
        def some_nan(x_train, y_train, x_val, y_val, params):
            return {"acc": [float("nan") if params["a"] > 2 else params["a"]]}, Model(params["a"])

        assert scan(function=some_nan).best_model("acc").a == 2
        with pytest.raises(ValueError, match="no row has a usable value of 'acc'"):
            scan({"a": [3, 4]}, some_nan).best_model("acc")


class TestArguments:
    def test_old_ones_warn_and_have_no_effect(self, scan):
        with pytest.warns(UserWarning, match="'dataset_name' is of an older Talos than .* and has no effect"):
            assert len(scan(dataset_name="iris").data) == 4

    def test_renamed_ones_are_taken_over(self, scan):
        with pytest.warns(UserWarning, match="'grid_downsample' is now 'fraction_limit'"):
            assert len(scan(grid_downsample=0.5, seed=1).data) == 2
        with pytest.warns(UserWarning, match="'reduce_loss' is now 'minimize_loss'"):
            found = scan(reduce_loss=True)
        assert found.objective["direction"] == "min"
        assert found.minimize_loss is True

    def test_talos_own_that_steer_its_run_directory_pass(self, scan):
        assert len(scan(checkpoint_interval=5, output_format="csv").data) == 4

    def test_unknown_ones_are_refused_with_a_suggestion(self, scan):
        with pytest.raises(InputError, match=r"Scan has no argument 'round_limits'; did you mean 'round_limit'\?"):
            scan(round_limits=3)
        with pytest.raises(InputError, match=r"Scan has no argument 'xyzzy'$"):
            scan(xyzzy=3)

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("reduction_method", "tree", "give a function, or one of correlation"),
            ("performance_target", "val_acc", r"give \[metric, threshold, minimize\]"),
            ("performance_target", ["loss", True, True], r"give \[metric, threshold, minimize\]"),
            ("time_limit", "tomorrow", "'YYYY-MM-DD HH:MM'"),
            ("time_limit", "2001-01-01 00:00", "is in the past: 0 of"),
        ],
    )
    def test_rules_in_another_form_are_refused(self, scan, name, value, said):
        with pytest.raises(ParamsValueError, match=said):
            scan(**{name: value})

    @pytest.mark.parametrize(
        ("options", "error", "said"),
        [
            ({"function": 5}, ParamsTypeError, "model is a int"),
            ({"y_val": None}, ParamsValueError, "x_val is given without y_val"),
            ({"x_val": None}, ParamsValueError, "y_val is given without x_val"),
            ({"seed": "x"}, InputError, "seed is 'x'"),
            ({"params": [1]}, ParamsTypeError, "list"),
            ({"x_val": None, "y_val": None, "val_split": 1.0}, ParamsValueError, "val_split is 1.0"),
            ({"x_val": None, "y_val": None, "val_split": 0.95}, ParamsValueError, "leaves one side empty"),
        ],
    )
    def test_wrong_ones_are_refused_in_one_line(self, scan, options, error, said):
        with pytest.raises(error, match=said) as caught:
            scan(**options)
        assert "\n" not in str(caught.value)

    def test_a_list_of_inputs_wants_multi_input(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ParamsTypeError, match="set multi_input=True"):
            Scan([X, X], Y, {"a": [1]}, model, "list")


class TestSplit:
    def test_keeps_rows_together_and_loses_none(self):
        x_train, y_train, x_val, y_val = split_data(X, Y, 0.3, False, 5)
        assert (len(y_train), len(y_val)) == (7, 3)
        assert sorted([*y_train, *y_val]) == list(Y)
        assert (x_train[:, 0] == 2 * y_train).all()
        assert (x_val[:, 0] == 2 * y_val).all()

    @pytest.mark.backend
    @pytest.mark.parametrize("seed", [0, 7, 2**31])
    @pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.75])
    def test_is_that_of_talos(self, seed, share):
        pytest.importorskip("talos")
        import pandas as pd
        from talos.utils.validation_split import validation_split

        cases = [
            (X, Y, False), ([X, X + 1], Y, True), (X, [Y, Y + 1], False), (pd.DataFrame(X), pd.Series(Y), False),
            ({"in": X}, {"out": Y}, False),
        ]  # fmt: skip
        for x, y, several in cases:
            talos = type("Holder", (), {})()
            talos.__dict__.update(
                x=x, y=y, multi_input=several, val_split=share, seed=seed, custom_val_split=False
            )  # fmt: skip
            validation_split(talos)
            ours = split_data(x, y, share, several, seed)
            for own, name in zip(ours, ("x_train", "y_train", "x_val", "y_val"), strict=True):
                assert flat(own) == flat(getattr(talos, name))


def flat(values):
    if isinstance(values, dict):
        return {key: flat(value) for key, value in values.items()}
    if isinstance(values, list):
        return [flat(value) for value in values]
    return np.asarray(values).tolist()


class TestEntropy:
    def test_an_even_series_has_the_logarithm_of_its_length(self):
        assert series_entropy({"loss": [2, 2, 2, 2]})["loss"] == pytest.approx(math.log(4))

    def test_is_undefined_where_there_is_no_distribution(self):
        found = series_entropy({"a": [], "b": [-1, 2], "c": [0, 0], "d": [math.nan], "e": [math.inf]})
        assert all(math.isnan(value) for value in found.values())

    @pytest.mark.backend
    def test_is_that_of_talos(self):
        pytest.importorskip("talos")
        from hypothesis import given
        from hypothesis import strategies as st
        from talos.experiment.runner import _entropy

        number = st.floats(0, 100) | st.sampled_from([0.0, -1.0, math.nan, math.inf])
        series = st.lists(number, max_size=5)

        @given(st.dictionaries(st.sampled_from(["loss", "val_loss", "acc", "val_acc"]), series))
        def compare(history):
            ours, theirs = series_entropy(history), _entropy(history)
            assert list(ours) == list(theirs)
            for name, value in theirs.items():
                assert ours[name] == pytest.approx(value, abs=1e-9, nan_ok=True)

        compare()


@pytest.mark.backend
def test_the_table_is_that_of_talos(scan):
    talos = pytest.importorskip("talos")
    params = {"a": [1, 2, 3, 4], "acc": [5, 6], "b": (0, 10, 5)}

    def clashing(x_train, y_train, x_val, y_val, params):
        return {"loss": [3.0, float(len(x_train)) + params["a"]], "acc": [float(np.random.rand())]}, None

    options = {"seed": 11, "round_limit": 9, "random_method": "uniform_mersenne"}
    ours = scan(params, clashing, x_val=None, y_val=None, **options)
    theirs = talos.Scan(X, Y, params, clashing, "theirs", save_weights=False, disable_progress_bar=True, **options)
    assert list(ours.data.columns) == list(theirs.data.columns)
    assert ours.parameter_columns == theirs.parameter_columns
    same = [name for name in ours.data if name not in ("start", "end", "duration", "execution_time")]
    assert ours.data[same].to_dict("list") == theirs.data[same].to_dict("list")
