"""Settings: who wins, who said it, and what is refused."""

from __future__ import annotations

import pytest

from orchestrator.config import Settings, load_settings, read_surroundings
from orchestrator.errors import SettingsError


@pytest.fixture
def write(tmp_path):
    def put(text, name="talos-orch.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")

    return put


def load(folder, flags=None, environ=None):
    return load_settings(flags or {}, environ or {}, folder)


def refusal(folder, flags=None, environ=None):
    with pytest.raises(SettingsError) as caught:
        load(folder, flags, environ)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_anything_the_defaults_hold(tmp_path):
    found = load(tmp_path)
    assert found == Settings()
    assert set(found.sources.values()) == {"default"}


def test_flags_win_over_the_environment_over_the_file_over_the_default(tmp_path, write):
    write('workers = 2\nseed = 2\nengine = "process"\nruns = "there"\n')
    environ = {"TALOS_ORCH_WORKERS": "3", "TALOS_ORCH_SEED": "3"}
    found = load(tmp_path, {"workers": 4, "seed": None}, environ)
    assert (found.workers, found.seed, found.engine, found.network) == (4, 3, "process", "bridge")
    assert {name: found.sources[name] for name in ("workers", "seed", "engine", "network")} == {
        "workers": "flag", "seed": "TALOS_ORCH_SEED", "engine": "talos-orch.toml", "network": "default",
    }  # fmt: skip


def test_pyprojects_table_is_read_where_there_is_no_file_of_ours(tmp_path, write):
    write("[tool.talos-orch]\nworkers = 5\n[tool.other]\nx = 1\n", "pyproject.toml")
    found = load(tmp_path)
    assert (found.workers, found.sources["workers"]) == (5, "pyproject.toml")
    write("workers = 6\n")
    assert load(tmp_path).workers == 6


def test_a_pyproject_without_our_table_says_nothing(tmp_path, write):
    write("[project]\nname = 'x'\n", "pyproject.toml")
    assert load(tmp_path) == Settings()


def test_keys_may_have_hyphens_and_gpus_may_be_a_list(tmp_path, write):
    write('shm-size = "1g"\nkeep_models = "all"\ngpus = [0, 1]\nenv = ["A=1", "B"]\n')
    found = load(tmp_path)
    assert (found.shm_size, found.keep_models, found.gpus, found.env) == ("1g", "all", "0,1", ("A=1", "B"))


def test_one_variable_may_stand_without_a_list(tmp_path, write):
    write('env = "A=1"\n')
    assert load(tmp_path).env == ("A=1",)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("worker", "did you mean 'workers'?"),
        ("shm_sise", "did you mean 'shm-size'?"),
        ("xyzzy", "known are: script, workers"),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path, write, key, hint):
    write(f"{key} = 3\n")
    message = refusal(tmp_path)
    assert message.startswith(f"talos-orch.toml: unknown key {key!r}")
    assert hint in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('workers = "many"', "workers 'many' is not a whole number"),
        ("workers = 2.5", "workers 2.5 is not a whole number"),
        ("workers = true", "workers True is not a whole number"),
        ("seed = inf", "seed inf is not a whole number"),
        ("cpus = nan", "cpus nan is not a number"),
        ("cpus = []", "cpus [] is not a number"),
        ('engine = "podman"', "engine 'podman': give docker or process"),
        ('network = "host"', "network 'host': give bridge or none"),
        ('backend = "jax"', "backend 'jax': give tensorflow or torch or both"),
        ('build = "maybe"', "build 'maybe': give true or false"),
        ("script = ['a.py']", "script ['a.py'] is not a text"),
        ("name = true", "name True is not a text"),
    ],
)
def test_a_wrong_value_is_refused_by_file_and_key(tmp_path, write, line, said):
    write(line + "\n")
    assert refusal(tmp_path) == f"talos-orch.toml: {said}"


def test_a_wrong_variable_is_refused_by_its_name(tmp_path):
    assert refusal(tmp_path, environ={"TALOS_ORCH_THREADS": "x"}).startswith("TALOS_ORCH_THREADS: threads 'x'")


def test_a_wrong_flag_is_refused_by_its_name(tmp_path):
    assert refusal(tmp_path, {"engine": "podman"}).startswith("--engine: engine 'podman'")


@pytest.mark.parametrize("text", ["workers = ", "a = 1\na = 2\n"])
def test_a_file_that_is_no_toml_is_refused_in_one_line(tmp_path, write, text):
    write(text)
    assert refusal(tmp_path).startswith("talos-orch.toml: not readable as TOML")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "talos-orch.toml").write_bytes(b"\xff\xfe")
    assert "not readable as TOML" in refusal(tmp_path)


def test_a_value_where_a_table_belongs_is_refused(tmp_path, write):
    write("[tool]\ntalos-orch = 5\n", "pyproject.toml")
    assert "not a table" in refusal(tmp_path)


@pytest.mark.parametrize(("word", "meant"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("no", False)])
def test_switches_are_read_from_the_environment(tmp_path, word, meant):
    assert load(tmp_path, environ={"TALOS_ORCH_BUILD": word}).build is meant


def test_a_switch_that_is_off_by_flag_is_not_forgotten(tmp_path, write):
    write("build = true\n")
    assert load(tmp_path, {"build": False}).build is False


def test_variables_come_as_words(tmp_path):
    assert load(tmp_path, environ={"TALOS_ORCH_ENV": "A=1 B"}).env == ("A=1", "B")


def test_variables_of_others_are_left_alone(tmp_path):
    others = {"TALOS_ORCH_SECRET_KEY": "/run/secrets/KEY", "WORKERS": "9", "talos_orch_workers": "9"}
    assert load(tmp_path, environ=others) == Settings()


def test_a_misspelt_variable_is_an_error_with_a_suggestion(tmp_path):
    with pytest.raises(SettingsError, match=r"TALOS_ORCH_WORKER: unknown key 'worker'; did you mean 'workers'"):
        load(tmp_path, environ={"TALOS_ORCH_WORKER": "2"})


def test_variables_for_the_script_add_up_and_flags_win(tmp_path):
    (tmp_path / "talos-orch.toml").write_text('env = ["A=1", "B=1"]')
    assert load(tmp_path, {"env": ("B=2",)}).env == ("A=1", "B=1", "B=2")


def test_every_default_is_a_value_that_may_be_given(tmp_path):
    fields = {
        name: value for name, value in vars_of(Settings()).items() if value not in (None, ()) and name != "sources"
    }
    assert load(tmp_path, fields) == Settings()


def vars_of(settings):
    import dataclasses

    return {entry.name: getattr(settings, entry.name) for entry in dataclasses.fields(settings)}


def test_surroundings_are_read_from_what_is_given():
    found = read_surroundings({"HOME": "/home/ada", "TZ": "Asia/Tokyo"})
    assert str(found.cache) == "/home/ada/.cache/talos-orch"
    assert found.timezone == "Asia/Tokyo"
    assert str(read_surroundings({"XDG_CACHE_HOME": "/c"}).cache) == "/c/talos-orch"
    assert read_surroundings({}).timezone
