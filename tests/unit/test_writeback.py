import os
import stat
from pathlib import Path

import pytest

from orchestrator import writeback
from orchestrator.errors import RecordError
from orchestrator.writeback import JOURNAL, WriteBack, take_out


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project/old").mkdir(parents=True)
    (tmp_path / "project/old/a.txt").write_text("old a")
    (tmp_path / "project/kept.txt").write_text("kept")
    (tmp_path / "changes").mkdir()
    return tmp_path / "project"


@pytest.fixture
def changes(tmp_path, project):
    return tmp_path / "changes"


def apply(changes, project):
    return WriteBack(str(project), str(changes.parent / "kept")).move_in(str(changes))


def test_new_and_changed_files_go_to_where_they_belong(changes, project):
    (changes / "new/deep").mkdir(parents=True)
    (changes / "new/deep/x.txt").write_text("x")
    (changes / "old").mkdir()
    (changes / "old/a.txt").write_text("new a")
    assert apply(changes, project) == []
    assert (project / "new/deep/x.txt").read_text() == "x"
    assert (project / "old/a.txt").read_text() == "new a"
    assert (project / "kept.txt").read_text() == "kept"
    assert list(changes.iterdir()) == []


def test_the_mode_of_a_file_is_kept(changes, project):
    (changes / "run.sh").write_text("#!")
    (changes / "run.sh").chmod(0o755)
    apply(changes, project)
    assert stat.S_IMODE((project / "run.sh").stat().st_mode) == 0o755


def test_a_link_is_written_as_a_link_and_never_followed(changes, project, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, changes / "link")
    (project / "there").symlink_to(outside)
    (changes / "there").mkdir()
    (changes / "there/x.txt").write_text("x")
    assert apply(changes, project) == []
    assert os.readlink(project / "link") == str(outside)
    assert (project / "there/x.txt").read_text() == "x"
    assert not (project / "there").is_symlink(), "the script had replaced it by a folder"
    assert list(outside.iterdir()) == []


def test_a_file_takes_the_place_of_a_folder_and_the_other_way_round(changes, project):
    (changes / "old").write_text("now a file")
    (changes / "kept.txt").mkdir()
    assert apply(changes, project) == []
    assert (project / "old").read_text() == "now a file"
    assert (project / "kept.txt").is_dir()


def test_what_is_no_file_is_left_behind(changes, project):
    os.mkfifo(changes / "pipe")
    assert apply(changes, project) == []
    assert not (project / "pipe").exists()


def test_what_cannot_be_written_is_named_and_stays(changes, project):
    if os.getuid() == 0:
        target = Path("/proc/self")  # where not even root may write
    else:
        target = project
        target.chmod(0o555)
    (changes / "x.txt").write_text("x")
    assert apply(changes, target) == [str(target / "x.txt")]
    assert (changes / "x.txt").read_text() == "x"
    if target == project:
        target.chmod(0o755)


def test_deletions_and_replaced_folders_are_carried_out(changes, project):
    if os.getuid() != 0:
        pytest.skip("only root can make the device file with which an overlay marks a deletion")
    os.mknod(changes / "kept.txt", stat.S_IFCHR | 0o600, os.makedev(0, 0))
    (changes / "old").mkdir()
    (changes / "old/b.txt").write_text("b")
    try:
        os.setxattr(changes / "old", "user.overlay.opaque", b"y")
    except OSError:
        pytest.skip("this file system keeps no user attributes")
    assert apply(changes, project) == []
    assert not (project / "kept.txt").exists()
    assert [path.name for path in (project / "old").iterdir()] == ["b.txt"]


def tree(folder):
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.is_dir() or path.read_text()
        for path in sorted(folder.rglob("*"))
    }


class TestTakeOut:
    def undo(self, project):
        return take_out(str(project), str(project.parent / "kept"), str(project.parent / "aside"))

    def test_everything_is_as_it_was(self, changes, project):
        (project / "gone.txt").write_text("gone")
        (project / "link").symlink_to("kept.txt")
        (project / "folder").mkdir()
        (project / "folder/in").write_text("in")
        before = tree(project)
        (changes / "new/deep").mkdir(parents=True)
        (changes / "new/deep/x.txt").write_text("x")
        (changes / "old").mkdir()
        (changes / "old/a.txt").write_text("new a")
        (changes / "link").mkdir()
        (changes / "folder").write_text("a file now")
        (changes / "kept.txt").symlink_to("elsewhere")
        os.mknod(changes / "gone.txt", stat.S_IFCHR, os.makedev(0, 0)) if os.getuid() == 0 else None
        apply(changes, project)
        after = tree(project)
        assert after != before
        assert self.undo(project) == []
        assert tree(project) == before
        assert not (project.parent / "kept").exists()
        assert (project.parent / "aside/new/deep/x.txt").read_text() == "x"

    def test_what_somebody_has_changed_since_stays(self, changes, project):
        (changes / "old").mkdir()
        (changes / "old/a.txt").write_text("new a")
        (changes / "new").mkdir()
        (changes / "new/x.txt").write_text("x")
        apply(changes, project)
        (project / "old/a.txt").write_text("by hand")
        (project / "new/mine.txt").write_text("mine")
        assert self.undo(project) == [str(project / "old/a.txt")]
        assert (project / "old/a.txt").read_text() == "by hand"
        assert tree(project / "new") == {"mine.txt": "mine"}

    def test_a_step_that_fails_leaves_the_original(self, changes, project, monkeypatch):
        (changes / "kept.txt").write_text("new")
        move = writeback._move

        def fail(source, target):
            if source.startswith(str(changes)):
                raise OSError(28, "No space left on device")
            move(source, target)

        monkeypatch.setattr(writeback, "_move", fail)
        assert apply(changes, project) == [str(project / "kept.txt")]
        assert (project / "kept.txt").read_text() == "kept"
        assert (changes / "kept.txt").read_text() == "new"

    def test_a_process_that_dies_between_two_steps_loses_nothing(self, changes, project, monkeypatch):
        (changes / "kept.txt").write_text("new")
        move = writeback._move

        def die(source, target):
            if source.startswith(str(changes)):
                raise KeyboardInterrupt
            move(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(writeback, "_move", die)
            with pytest.raises(KeyboardInterrupt):
                apply(changes, project)
        assert not (project / "kept.txt").exists()
        assert self.undo(project) == []
        assert (project / "kept.txt").read_text() == "kept"

    def test_nothing_written_is_nothing_to_take_out(self, project):
        before = tree(project)
        assert self.undo(project) == []
        assert tree(project) == before

    def test_a_list_that_leads_outside_is_not_followed(self, project):
        kept = project.parent / "kept"
        kept.mkdir()
        (project.parent / "secret").write_text("s")
        (kept / JOURNAL).write_text('{"path": "../secret", "what": "file", "identity": [1, 2, 3]}\n')
        with pytest.raises(RecordError, match="leads out of the project"):
            self.undo(project)
        assert (project.parent / "secret").exists()
