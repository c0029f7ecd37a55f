"""Where things lie in a sweep's folder, and what is found there again."""

from __future__ import annotations

from orchestrator.records.layout import RunDir, SweepDir, sweeps


def test_names_are_those_that_the_docs_draw(tmp_path):
    sweep = SweepDir(str(tmp_path / "case"))
    paths = [
        sweep.sweep, sweep.state, sweep.results, sweep.driver.job, sweep.driver.log, sweep.driver.stage(1).plan,
        sweep.driver.stage(1).result, sweep.worker(0).share, sweep.worker(0).limits, sweep.worker(0).stage(1).queue,
        sweep.worker(0).stage(12).active, sweep.worker(0).stage(1).trials, sweep.worker(11).stage(1).models,
        sweep.worker(0).files, sweep.worker(123).log,
    ]  # fmt: skip
    assert [path.removeprefix(str(tmp_path / "case") + "/") for path in paths] == [
        "sweep.json", "state.json", "results.csv", "driver/job.json", "driver/log.txt", "driver/scan-01/plan.json",
        "driver/scan-01/result.json", "workers/00/worker.json", "workers/00/limits.json", "workers/00/scan-01/queue",
        "workers/00/scan-12/active", "workers/00/scan-01/trials.jsonl", "workers/11/scan-01/models", "workers/00/files",
        "workers/123/log.txt",
    ]  # fmt: skip
    assert sweep.name == "case"


def test_no_two_names_are_one(tmp_path):
    sweep = SweepDir(str(tmp_path))
    for place in (sweep, sweep.driver, sweep.driver.stage(1)):
        names = [name for name, kind in vars(type(place)).items() if isinstance(kind, property) and name != "name"]
        paths = [getattr(place, name) for name in names]
        paths = [path if isinstance(path, str) else path.path for path in paths]
        assert len(set(paths)) == len(paths)


def test_workers_come_in_number_order(tmp_path):
    sweep = SweepDir(str(tmp_path))
    for name in ("10", "02", "00", "101", "notes", "1", ".work"):
        (tmp_path / "workers" / name).mkdir(parents=True)
    assert sweep.workers() == [0, 2, 10, 101]
    assert SweepDir(str(tmp_path / "none")).workers() == []


def test_stages_come_in_number_order(tmp_path):
    for name in ("scan-10", "scan-02", "scan-1", "scan-", "scan-01.bak", "files"):
        (tmp_path / name).mkdir()
    assert RunDir(str(tmp_path)).stages() == [2, 10]
    assert RunDir(str(tmp_path / "none")).stages() == []


def test_only_a_folder_with_a_sweep_file_is_a_sweep(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / name).mkdir()
    for name in ("b", "a"):
        (tmp_path / name / "sweep.json").write_text("{}")
    (tmp_path / "file").write_text("")
    assert [folder.name for folder in sweeps(str(tmp_path))] == ["a", "b"]
    assert list(sweeps(str(tmp_path / "none"))) == []
    assert list(sweeps(str(tmp_path / "file"))) == []
