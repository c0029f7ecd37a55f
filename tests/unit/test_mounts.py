import pytest

from orchestrator.errors import SettingsError
from orchestrator.plan.mounts import named_mounts, parse_mount
from orchestrator.plan.preflight import check_script

HERE = ("/home/ada/project/run", "/home/ada/project", "/home/ada")


def named(*paths, there=()):
    return named_mounts(paths, *HERE, lambda path: path if path in there else None)


def sources(mounts):
    return [bind.source for bind in mounts.binds]


def test_a_named_path_outside_the_project_that_is_there_is_mounted_read_only_and_said():
    mounts = named("/data/x.csv", there={"/data/x.csv"})
    assert sources(mounts) == ["/data/x.csv"]
    assert mounts.binds[0].read_only
    assert "/data/x.csv is mounted read-only" in mounts.notes[0]


def test_a_parent_path_counts_from_the_working_directory():
    assert sources(named("../../elsewhere", there={"/home/ada/elsewhere"})) == ["/home/ada/elsewhere"]
    assert sources(named("../data", there={"/home/ada/project/data"})) == [], "it lies in the project"


def test_of_a_file_that_is_not_there_yet_its_folder_is_taken():
    assert sources(named("/data/out/new.csv", there={"/data/out"})) == ["/data/out"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc/passwd",
        "/usr/share/x",
        "/proc/1",
        "/tmp",
        "~/",
        "/home/ada",
        "../../..",
        "/var/run/docker.sock",
        "/var/lib/x",
    ],
)
def test_the_image_s_own_folders_and_the_home_are_left_alone(path):
    assert sources(named_mounts((path,), *HERE, lambda path: path)) == []


def test_a_folder_is_mounted_once_with_what_lies_below_it():
    there = {"/data", "/data/a", "/data/b"}
    assert sources(named("/data", "/data/a", "/data", there=there)) == ["/data"]


def test_a_windows_path_gives_one_clear_line():
    mounts = named("C:\\\\data\\\\x.csv")
    assert mounts.binds == ()
    assert "a Windows path" in mounts.notes[0]


def test_the_script_s_string_constants_are_where_names_come_from():
    source = """'/not/a/docstring'
import talos
a = open('/data/x.csv'); b = "../up"; c = 'plain.csv'; d = "a / b"; e = '//'
talos.Scan(1, 2, a, b, 'x')
"""
    assert check_script(source, "x.py").paths == ("/data/x.csv", "../up")


@pytest.mark.parametrize(("text", "target", "read_only"), [
    ("/data", "/data", True), ("/data:rw", "/data", False), ("/data:ro", "/data", True), ("/a:b", "/a:b", True),
    ("x", "/home/ada/x", True), ("../up:rw", "/home/up", False),
])  # fmt: skip
def test_a_mount_is_a_path_and_a_mode(text, target, read_only):
    bind = parse_mount(text, "/home/ada", lambda path: path)
    assert (bind.source, bind.target, bind.read_only) == (target, target, read_only)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/nowhere", "is no file or folder"),
        ("/var/run/docker.sock", "never mounted"),
        ("/run/x:rw", "never mounted"),
        ("/etc", "its own /etc"),
        ("/", "its own /"),
    ],
)
def test_a_mount_that_cannot_be_is_refused(text, said):
    with pytest.raises(SettingsError, match=said):
        parse_mount(text, "/home/ada", lambda path: None if path == "/nowhere" else path)


def test_a_link_into_a_system_folder_is_not_followed_there():
    assert sources(named_mounts(("/data/x",), *HERE, lambda _: "/run/docker.sock")) == []
    with pytest.raises(SettingsError, match="never mounted"):
        parse_mount("/data/x", "/home/ada", lambda _: "/run/docker.sock")


def test_a_name_that_leads_nowhere_does_not_mount_what_is_around_the_project():
    assert sources(named("../../nothing", there={"/home/ada", "/home"})) == []
    assert (
        sources(named_mounts(("../nothing",), "/srv/project", "/srv/project", "/home/ada", {"/srv": "/srv"}.get)) == []
    )
    assert sources(named_mounts(("..",), "/srv/project", "/srv/project", "/home/ada", {"/srv": "/srv"}.get)) == ["/srv"]
