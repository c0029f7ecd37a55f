"""The script and the folder around it."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from orchestrator import project
from orchestrator.errors import EnvironmentNotReadyError, InputError, ScriptError, SettingsError
from orchestrator.project import (
    check_name,
    check_runs,
    find_project,
    find_script,
    find_workdir,
    local_modules,
    read_source,
)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def place(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class TestFindScript:
    def test_gives_the_real_path(self, tmp_path):
        script = place(tmp_path / "real" / "scan.py")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert find_script("link/scan.py", "experiment.py", tmp_path) == script
        assert find_script(str(script), "experiment.py", Path("/")) == script

    def test_takes_the_default_where_none_is_named(self, tmp_path):
        script = place(tmp_path / "experiment.py")
        assert find_script(None, "experiment.py", tmp_path) == script

    def test_says_what_to_name_where_there_is_no_default(self, tmp_path):
        with pytest.raises(ScriptError, match=r"^experiment\.py: no such file in .*talos-orch launch my_scan\.py"):
            find_script(None, "experiment.py", tmp_path)

    def test_names_a_missing_script_and_where_it_looked(self, tmp_path):
        with pytest.raises(ScriptError) as caught:
            find_script("scan.py", "experiment.py", tmp_path)
        assert str(caught.value) == f"scan.py: no such file in {tmp_path}"

    @pytest.mark.parametrize("name", ["scan.txt", "scan", "scan.pyc", "folder.py"])
    def test_refuses_what_is_no_python_script(self, tmp_path, name):
        (tmp_path / "folder.py").mkdir()
        if name != "folder.py":
            place(tmp_path / name)
        with pytest.raises(ScriptError, match="not a script"):
            find_script(name, "experiment.py", tmp_path)


class TestReadSource:
    def test_takes_a_byte_order_mark_away(self, tmp_path):
        script = tmp_path / "scan.py"
        script.write_bytes("\ufeffx = 'ö'".encode())
        assert read_source(script) == "x = 'ö'"

    def test_a_coding_line_is_heeded(self, tmp_path):
        script = tmp_path / "scan.py"
        script.write_bytes(b"# -*- coding: latin-1 -*-\r\nx = '\xe9'\r\n")
        assert read_source(script) == "# -*- coding: latin-1 -*-\nx = 'é'\n"
        script.write_bytes(b"# coding: nonsense\n")
        with pytest.raises(ScriptError, match=r"^scan\.py: unknown encoding: nonsense"):
            read_source(script)

    def test_names_the_byte_that_is_no_utf8(self, tmp_path):
        script = tmp_path / "scan.py"
        script.write_bytes(b"x = '\xe9'")
        with pytest.raises(ScriptError, match=r"^scan\.py: not UTF-8 text \(.* at byte 5\)"):
            read_source(script)

    def test_says_when_it_may_not_be_read(self, tmp_path):
        with pytest.raises(ScriptError, match="cannot be read"):
            read_source(tmp_path)


def test_modules_beside_the_script_are_known(tmp_path):
    script = place(tmp_path / "scan.py")
    place(tmp_path / "helpers.py")
    place(tmp_path / "package" / "__init__.py")
    place(tmp_path / "notes.txt")
    assert local_modules(script) == {"helpers", "package"}


class TestFindProject:
    @pytest.mark.parametrize("mark", ["talos-orch.toml", "pyproject.toml", "setup.py", "setup.cfg", ".git"])
    def test_takes_the_nearest_folder_with_a_mark(self, tmp_path, home, mark):
        script = place(tmp_path / "outer" / "inner" / "scan.py")
        place(tmp_path / "outer" / mark)
        assert find_project(script, None, tmp_path, home) == tmp_path / "outer"
        place(tmp_path / "outer" / "inner" / mark)
        assert find_project(script, None, tmp_path, home) == tmp_path / "outer" / "inner"

    def test_without_a_mark_takes_the_scripts_folder(self, tmp_path, home):
        script = place(tmp_path / "a" / "b" / "scan.py")
        assert find_project(script, None, tmp_path, home) == tmp_path / "a" / "b"

    def test_never_takes_a_home_directory_or_what_is_above_it(self, tmp_path, home):
        place(home / ".git")
        place(tmp_path / "pyproject.toml")
        script = place(home / "work" / "scan.py")
        assert find_project(script, None, tmp_path, home) == home / "work"

    def test_knows_a_home_directory_behind_a_link(self, tmp_path, home):
        (tmp_path / "link").symlink_to(home)
        place(home / ".git")
        script = place(home / "work" / "scan.py")
        assert find_project(script, None, tmp_path, tmp_path / "link") == home / "work"

    def test_a_script_in_the_home_directory_itself_has_it(self, home):
        script = place(home / "scan.py")
        assert find_project(script, None, home, home) == home

    def test_takes_the_one_asked_for(self, tmp_path, home):
        script = place(tmp_path / "a" / "b" / "scan.py")
        assert find_project(script, "a", tmp_path, home) == tmp_path / "a"

    def test_refuses_one_without_the_script(self, tmp_path, home):
        script = place(tmp_path / "a" / "scan.py")
        with pytest.raises(SettingsError, match=r"^--project ab: the script .* does not lie in it"):
            find_project(script, "ab", tmp_path, home)


class TestFindWorkdir:
    def test_is_the_scripts_folder_unless_asked(self, tmp_path):
        script = place(tmp_path / "a" / "scan.py")
        assert find_workdir(script, None, tmp_path, tmp_path) == tmp_path / "a"
        assert find_workdir(script, ".", tmp_path, tmp_path) == tmp_path

    @pytest.mark.parametrize("asked", ["..", "none", "scan.py", "/"])
    def test_lies_within_the_project(self, tmp_path, asked):
        script = place(tmp_path / "scan.py")
        with pytest.raises(SettingsError, match="give a folder within the project"):
            find_workdir(script, asked, tmp_path, tmp_path)


class TestCheckRuns:
    def test_passes_a_folder_that_can_be_made(self, tmp_path):
        check_runs(tmp_path / "new" / "runs", None)
        assert not (tmp_path / "new").exists()

    def test_refuses_a_name_in_use(self, tmp_path):
        (tmp_path / "case").mkdir()
        with pytest.raises(InputError, match=r"^--name case: .* exists already; give another name, or go on with it"):
            check_name(tmp_path, "case")

    def test_refuses_a_file_in_the_way(self, tmp_path):
        place(tmp_path / "runs")
        with pytest.raises(EnvironmentNotReadyError, match="is not a folder; give another one with --runs"):
            check_runs(tmp_path / "runs" / "inner", None)

    def test_refuses_a_folder_that_may_not_be_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(EnvironmentNotReadyError, match="not writable for you"):
            check_runs(tmp_path / "runs", None)

    @pytest.mark.parametrize(("data_root", "what"), [(None, "the run folder"), ("/", "Docker's own data")])
    def test_refuses_a_full_disk_with_the_numbers(self, tmp_path, monkeypatch, data_root, what):
        usage = namedtuple("usage", "total used free")  # noqa: PYI024 - as shutil's own

        def disk_usage(path):
            full = data_root is None or str(path) == data_root
            return usage(10**9, 0, 5 * 1024**2 if full else 10**12)

        monkeypatch.setattr(shutil, "disk_usage", disk_usage)
        with pytest.raises(EnvironmentNotReadyError, match=f"only 5 MiB free for {what}; a sweep needs 256 MiB"):
            check_runs(tmp_path, data_root)

    def test_looks_at_no_disk_of_another_machine(self, tmp_path):
        check_runs(tmp_path, str(tmp_path / "not" / "here"))
        assert project.LEAST_FREE > 0
