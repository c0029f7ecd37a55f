import os
import stat
from pathlib import Path

import pytest

from orchestrator.writeback import write_back


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
    return write_back(str(changes), str(project))


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
