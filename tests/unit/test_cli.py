"""The command line: an error that a user can cause is one line with the documented exit code."""

from __future__ import annotations

import json
import signal

import pytest

pytest.importorskip("click")
pytest.importorskip("pandas")

from click.testing import CliRunner
from makers import plan as make_plan
from makers import record, share, sweep_file

from orchestrator.cli import main
from orchestrator.records.atomic import write_json
from orchestrator.records.layout import SweepDir
from orchestrator.records.trial_log import TrialLog
from orchestrator.schema import SweepState
from orchestrator.version import __version__

SCAN = "import talos\ntalos.Scan(x, y, {'a': [1, 2, 3]}, model, 'name')\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in an empty folder, with the process's signal handlers put back after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("TALOS_ORCH_ENGINE", "TALOS_ORCH_RUNS", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "scan.py").write_text(SCAN)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lambda *arguments: CliRunner().invoke(main, [str(each) for each in arguments])
    for number, handler in before.items():
        signal.signal(number, handler)


def refusal(result, code):
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("talos-orch: error: ")
    return line.removeprefix("talos-orch: error: ")


COMMANDS = sorted(main.commands)


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_of_every_command_says_in_a_sentence_what_it_does(self, run, command):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert result.stdout.splitlines()[2].strip()

    @pytest.mark.parametrize("words", [(), ("launch",)])
    def test_names_the_exit_codes(self, run, words):
        text = run(*words, "--help").stdout
        assert all(f"{code} " in text.split("Exit codes:")[1] for code in (0, 1, 2, 3, 4, 5, 130))

    def test_is_there_for_every_command_in_the_overview(self, run):
        text = run("-h").stdout
        assert all(f"  {command} " in text for command in COMMANDS)

    def test_of_every_option_has_words(self):
        for name, command in main.commands.items():
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    assert parameter.help, f"{name} {parameter.opts}"

    def test_knows_the_version(self, run):
        assert run("--version").stdout.strip() == f"talos-orch, version {__version__}"


@pytest.mark.parametrize("command", ["launch", "plan"])
class TestBadInput:
    def refused(self, run, command, *words, code=2):
        return refusal(run(command, "--engine", "process", *words), code)

    def test_a_missing_script(self, run, command):
        assert self.refused(run, command, "none.py").startswith("none.py: no such file in ")

    def test_no_script_at_all(self, run, command):
        assert "name one: talos-orch launch my_scan.py" in self.refused(run, command)

    def test_something_else_than_python(self, run, command, tmp_path):
        (tmp_path / "scan.txt").write_text("{}")
        assert (
            self.refused(run, command, "scan.txt")
            == "scan.txt: not a script (.py), notebook (.ipynb) or Talos manifest (.yaml)"
        )

    def test_a_notebook_that_is_none(self, run, command, tmp_path):
        (tmp_path / "scan.ipynb").write_text("{}")
        assert self.refused(run, command, "scan.ipynb").startswith("scan.ipynb: not a notebook of format 4")

    def test_a_syntax_error(self, run, command, tmp_path):
        (tmp_path / "bad.py").write_text("import talos\np = {'a': [1}\n")
        assert self.refused(run, command, "bad.py").startswith("bad.py:2: syntax error")

    def test_a_script_that_never_scans(self, run, command, tmp_path):
        (tmp_path / "plain.py").write_text("print('hello')\n")
        assert self.refused(run, command, "plain.py").startswith("plain.py:")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--workers", 0), "--workers 0: give at least 1"),
            (("-w", -3), "--workers -3: give at least 1"),
            (("--memory", "lots"), "--memory 'lots': give a size such as 512m or 6g"),
            (("--memory", "1m"), "--memory 1 MiB: a backend needs at least 256 MiB"),
            (("--memory", "900t", "-w", 1), "--memory "),
            (("--shm-size", "x"), "--shm-size 'x': give a size"),
            (("--cpus", 0), "--cpus 0: this engine has "),
            (("--cpus", "nan"), "--cpus: cpus nan is not a number"),
            (("--threads", 0), "--threads 0: give at least 1"),
            (("--keep-models", "some"), "--keep-models 'some': give best, best:N, all or none"),
            (("--name", "../x"), "--name '../x': use letters"),
            (("--project", "/nowhere"), "--project /nowhere: the script "),
            (("--workdir", "/"), "--workdir /: give a folder within the project"),
            (("-e", "TALOS_ORCH_NO_SUCH_VARIABLE"), "-e TALOS_ORCH_NO_SUCH_VARIABLE: give KEY=VALUE"),
            (("-e", "=x"), "-e =x: give KEY=VALUE"),
        ],
    )
    def test_a_bad_option(self, run, command, words, said):
        assert self.refused(run, command, "scan.py", *words).startswith(said)

    def test_a_name_in_use(self, run, command, tmp_path):
        (tmp_path / "runs" / "mine").mkdir(parents=True)
        assert self.refused(run, command, "scan.py", "--name", "mine").startswith("--name mine: ")

    def test_an_unknown_key_in_the_settings_file(self, run, command, tmp_path):
        (tmp_path / "talos-orch.toml").write_text("worker = 3\n")
        said = self.refused(run, command, "scan.py")
        assert said == "talos-orch.toml: unknown key 'worker'; did you mean 'workers'?"

    def test_a_gpu_where_there_is_none(self, run, command, monkeypatch):
        monkeypatch.setattr("orchestrator.prepare.local_gpus", lambda: ())
        assert "no NVIDIA GPU is visible" in self.refused(run, command, "scan.py", "--gpus", "0", code=5)

    def test_runs_that_are_a_file(self, run, command, tmp_path):
        (tmp_path / "file").write_text("")
        assert "not a folder" in self.refused(run, command, "scan.py", "--runs", "file", code=5)

    def test_leaves_nothing_behind(self, run, command, tmp_path):
        self.refused(run, command, "scan.py", "-w", 0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["scan.py"]


def test_click_refuses_an_unknown_option_with_the_same_code(run):
    result = run("launch", "--wrokers", 3)
    assert result.exit_code == 2
    assert "--workers" in result.stderr


class TestPlan:
    def test_prints_what_launch_would_do_and_starts_nothing(self, run, tmp_path):
        result = run("plan", "scan.py", "--engine", "process", "-w", 1, "--memory", "300m", "--name", "mine")
        assert result.exit_code == 0, result.output
        assert "rows      3" in result.stdout
        assert "sweep     mine" in result.stdout
        assert not (tmp_path / "runs").exists()

    def test_as_json_is_one_document(self, run):
        words = ("--engine", "process", "-w", 1, "--memory", "300m", "--json", "--", "--fast", "1")
        data = json.loads(run("plan", "scan.py", *words).stdout)
        assert (data["rows"], data["workers"], data["arguments"]) == (3, 1, ["--fast", "1"])
        assert data["options"]["engine"] == "flag"


@pytest.fixture
def finished(tmp_path):
    """A sweep that ran."""
    folder = SweepDir(str(tmp_path / "runs" / "case-1"))
    for number in (0, 1):
        log = TrialLog(folder.worker(number).stage(1).trials)
        log.append(record(number, worker=number))
        log.close()
    (tmp_path / "runs" / "case-1" / "driver" / "scan-01").mkdir(parents=True)
    write_json(folder.sweep, sweep_file(str(tmp_path), [share(0), share(1)], engine="process").to_json())
    write_json(folder.driver.stage(1).plan, make_plan(2).to_json())
    write_json(folder.state, SweepState("finished", "now", 1, exit_code=0, rows=2, completed=2).to_json())
    with open(folder.driver.log, "w") as stream:
        stream.write("hello\n")
    return folder


LOOKING = [
    ("status", ()), ("logs", ()), ("inspect", ()), ("results", ()), ("stop", ()),
]  # fmt: skip


class TestLooking:
    @pytest.mark.parametrize(("command", "words"), LOOKING)
    def test_at_an_unknown_sweep_names_those_there_are(self, run, finished, command, words):
        said = refusal(run(command, "none", *words), 2)
        assert said.startswith("none: no such sweep in ")
        assert "case-1" in said

    @pytest.mark.parametrize(("command", "words"), LOOKING)
    def test_where_there_are_no_sweeps_says_so(self, run, command, words):
        assert "none there; see --runs" in refusal(run(command, "none", *words), 2)

    def test_at_a_list(self, run, finished):
        assert "case-1" in run("ls").stdout
        (only,) = json.loads(run("ls", "--json").stdout)
        assert (only["name"], only["status"], only["completed"]) == ("case-1", "finished", 2)

    def test_at_an_empty_list(self, run):
        assert run("ls").stdout.startswith("no sweeps in ")

    def test_at_a_sweep_by_the_beginning_of_its_name(self, run, finished):
        assert run("status", "cas").stdout.startswith("case-1: finished")
        assert json.loads(run("status", "case-1", "--json").stdout)["scans"][0]["recorded"] == 2

    def test_at_a_sweep_by_its_folder(self, run, finished):
        assert run("status", finished.path, "--runs", "elsewhere").exit_code == 0

    def test_at_a_beginning_of_several_names(self, run, finished, tmp_path):
        other = tmp_path / "runs" / "case-2"
        other.mkdir()
        (other / "sweep.json").write_text("{}")
        assert "2 sweeps begin so: case-1, case-2" in refusal(run("status", "case"), 2)

    def test_at_results_in_each_form(self, run, finished):
        assert len(run("results", "case-1", "--format", "csv").stdout.splitlines()) == 3
        assert [row["row"] for row in json.loads(run("results", "case-1", "--format", "json").stdout)] == [0, 1]
        assert "loss" in run("results", "case-1").stdout

    def test_at_a_log(self, run, finished):
        assert run("logs", "case-1").stdout == "hello\n"
        assert "has no worker 7; it has 0, 1" in refusal(run("logs", "case-1", "-w", 7), 2)

    def test_at_everything(self, run, finished):
        assert json.loads(run("inspect", "case-1").stdout)["state"]["status"] == "finished"
        assert "has no worker 7" in refusal(run("inspect", "case-1", 7), 2)

    def test_at_damage_names_the_file(self, run, finished):
        with open(finished.sweep, "w") as stream:
            stream.write("{")
        assert "sweep.json: not readable as JSON" in refusal(run("status", "case-1"), 1)

    def test_stopping_what_has_ended_says_so(self, run, finished):
        result = run("stop", "case-1")
        assert result.exit_code == 0
        assert result.stderr == "case-1: nothing is running (finished)\n"
