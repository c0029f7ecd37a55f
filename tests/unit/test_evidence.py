"""Why a trial process ended, and the process itself as its supervisor handles it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from orchestrator.records.atomic import write_json
from orchestrator.records.layout import RunDir
from orchestrator.schema import CAUSES, Job
from orchestrator.worker import child, evidence
from orchestrator.worker.child import Child, LogFile, Tee
from orchestrator.worker.environment import prepare
from orchestrator.worker.evidence import explain, has_ended

MIB = 1024**2
KILL, BUS = -signal.SIGKILL, -signal.SIGBUS


class TestExplain:
    @pytest.mark.parametrize(
        ("status", "before", "after", "cause", "said"),
        [
            (KILL, 0, 1, "host-oom", "killed at its memory limit of 512 MiB: give more with --memory"),
            (KILL, 3, 3, "signal", "was ended by SIGKILL"),
            (KILL, None, 1, "signal", "was ended by SIGKILL"),
            (KILL, 0, None, "signal", "was ended by SIGKILL"),
            (-signal.SIGSEGV, 0, 1, "signal", "was ended by SIGSEGV"),
            (-signal.SIGTERM, 0, 0, "signal", "was ended by SIGTERM"),
            (-64, 0, 0, "signal", "was ended by SIGRTMAX"),
            (-99, 0, 0, "signal", "was ended by signal 99"),
            (0, 0, 0, "unknown", "ended by itself with exit status 0, in the middle of a trial"),
            (7, 0, 1, "unknown", "ended by itself with exit status 7"),
        ],
    )
    def test_names_the_cause(self, status, before, after, cause, said):
        death = explain(status, before, after, 512 * MIB)
        assert death.cause == cause
        assert said in death.text
        assert death.cause in CAUSES

    @pytest.mark.parametrize(("full", "cause"), [(True, "shm"), (False, "signal")])
    def test_a_bus_error_is_shared_memorys_where_that_is_full(self, monkeypatch, full, cause):
        monkeypatch.setattr(evidence, "shm_is_full", lambda: full)
        death = explain(BUS, 0, 0, None)
        assert death.cause == cause
        assert ("--shm-size" in death.text) is full

    def test_a_limit_that_is_not_known_is_not_named(self):
        assert "limit: give" in explain(KILL, 0, 1, None).text

    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("low 0\nhigh 0\nmax 5\noom 2\noom_kill 3\noom_group_kill 0", 3), ("oom_kill_disable 0\nunder_oom 0\noom_kill 4", 4),
            ("", None), (None, None),
        ],
    )  # fmt: skip
    def test_the_kernels_count_is_read_in_both_its_forms(self, tmp_path, monkeypatch, text, count):
        path = tmp_path / "memory.events"
        if text is not None:
            path.write_text(text)
        monkeypatch.setattr(evidence, "_OOM_FILES", (str(tmp_path / "none"), str(path)))
        assert evidence.oom_kills() == count

    @pytest.mark.parametrize(("text", "peak"), [("1048576", 1.0), ("max", None), ("", None)])
    def test_a_containers_peak_is_in_mib(self, tmp_path, monkeypatch, text, peak):
        (tmp_path / "memory.peak").write_text(text)
        monkeypatch.setattr(evidence, "_PEAK_FILES", (str(tmp_path / "memory.peak"),))
        assert evidence.peak_container_mib() == peak


class TestLogFile:
    def test_appends_to_what_is_there(self, tmp_path):
        for text in (b"one\n", b"two\n"):
            LogFile(str(tmp_path / "log.txt")).write(text)
        assert (tmp_path / "log.txt").read_bytes() == b"one\ntwo\n"

    def test_stops_at_its_limit_and_says_so_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr(child, "LOG_LIMIT", 10)
        log = LogFile(str(tmp_path / "log.txt"))
        for _ in range(5):
            log.write(b"123456")
        assert (tmp_path / "log.txt").read_text() == "123456123456\n[talos-orch: the log is full and stops here]\n"

    def test_a_full_disk_stops_the_log_alone(self, tmp_path, monkeypatch):
        log = LogFile(str(tmp_path / "log.txt"))

        def full(descriptor, data):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            log.write(b"lost")
        log.write(b"lost too")
        assert (tmp_path / "log.txt").read_bytes() == b""

    def test_follows_no_link(self, tmp_path):
        (tmp_path / "log.txt").symlink_to(tmp_path / "victim")
        with pytest.raises(OSError, match="symbolic"):
            LogFile(str(tmp_path / "log.txt"))


def test_a_tee_copies_everything_to_every_log_and_on(tmp_path):
    read, write = os.pipe()
    echo_read, echo_write = os.pipe()
    logs = [LogFile(str(tmp_path / name)) for name in ("log.txt", "out.txt")]
    tee = Tee(read, logs, echo_write)
    tee.start()
    os.write(write, b"hello\n")
    os.close(write)
    tee.join(5)
    os.close(echo_write)
    assert os.read(echo_read, 100) == b"hello\n"
    assert (tmp_path / "log.txt").read_bytes() == (tmp_path / "out.txt").read_bytes() == b"hello\n"
    for descriptor in (read, echo_read):
        os.close(descriptor)


SCRIPT = """
import sys
print("to stdout", flush=True)
sys.stderr.write("to stderr\\n")
"""
WAITING = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Runs a script as a driver's trial process."""
    monkeypatch.setattr(child, "_GRACE", 0.2)
    began = []

    def run(text):
        (tmp_path / "scan.py").write_text(text)
        run_dir = RunDir(str(tmp_path))
        job = Job(
            "driver", "case", str(tmp_path / "scan.py"), [], str(tmp_path), str(tmp_path), str(tmp_path), 0, "all"
        )
        write_json(run_dir.job, job.to_json())
        log = LogFile(run_dir.log)
        began.append(Child(run_dir.job, 1, [log, LogFile(run_dir.out)], [log, LogFile(run_dir.err)], talk=False))
        return began[-1]

    yield run
    for each in began:
        each.end()
        for stream in (each._process.stdout, each._process.stderr):
            stream.close()


class TestChild:
    def test_ends_with_the_scripts_status_and_all_of_its_output(self, start, tmp_path):
        assert start(SCRIPT + "sys.exit(3)").wait() == 3
        assert (tmp_path / "out.txt").read_text() == "to stdout\n"
        assert (tmp_path / "err.txt").read_text() == "to stderr\n"
        assert set((tmp_path / "log.txt").read_text().split("\n")) == {"to stdout", "to stderr", ""}

    def test_that_does_not_heed_sigterm_is_killed(self, start, tmp_path):
        running = start(WAITING)
        done = threading.Event()
        for _ in range(500):
            if (tmp_path / "out.txt").read_text() == "ready\n":
                break
            done.wait(0.01)
        assert not running.ended()
        assert running.end() == -signal.SIGKILL
        assert running.ended()


def test_the_world_around_the_script_is_made_ready(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "home" / ".keras"))
    monkeypatch.chdir(tmp_path)
    job = Job("worker", "case", "/p/scan.py", [], str(tmp_path), "/run", "/driver", 0, "all")
    prepare(job)
    assert (tmp_path / "home" / ".keras").is_dir()
    assert os.getcwd() == str(tmp_path)


def test_a_process_has_ended_also_while_nobody_has_waited_for_it():
    assert not has_ended(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL) as child:
        while not has_ended(child.pid):
            time.sleep(0.01)
        assert child.wait() == 0
        assert has_ended(child.pid)
