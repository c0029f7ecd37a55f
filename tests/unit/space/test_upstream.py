"""Talos's own tests on our spaces, from its source distribution, which is fetched when this runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

# Those of its tests that speak of behaviour. The others reach for `.strategy`, the search queue or checkpoints,
# which are Talos's inside: our rows are dealt by number and its run loop is not used.
BEHAVIOUR = [
    "tests/test_search_core.py::test_seeded_sharding_is_disjoint_and_complete",
    "tests/test_search_core.py::test_categorical_correlation_honors_loss_direction",
    "tests/test_search_core.py::test_legacy_tree_reducers_preserve_categorical_objective_direction",
    "tests/test_search_core.py::test_legacy_reducers_keep_parameter_loss_distinct_from_objective_loss",
    "tests/test_search_core.py::test_sampler_candidates_are_legal_and_unique",
    "tests/test_search_core.py::test_native_domain_normalization_does_not_materialize_grid",
    "tests/test_search_core.py::test_reducer_cadence_means_completed_rounds",
    "tests/test_search_core.py::test_gamify_annotations_do_not_prune",
]

PLUGIN = """from orchestrator.scan.hooks import install_hooks
from orchestrator.scan.redirect import talos_hooks

install_hooks(talos_hooks())
"""


@pytest.mark.backend
def test_talos_own_tests_of_behaviour_pass_with_our_spaces(tmp_path: Path) -> None:
    fetch = [
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--dest",
        str(tmp_path),
        "talos==2.0.10",
    ]
    fetched = subprocess.run([sys.executable, "-m", *fetch], capture_output=True, text=True, check=False)
    assert fetched.returncode == 0, fetched.stderr[-2000:]
    (archive,) = tmp_path.glob("talos-*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    (tmp_path / "redirect_plugin.py").write_text(PLUGIN)
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "redirect_plugin", "-p", "no:cacheprovider", *BEHAVIOUR],
        cwd=tmp_path / "talos-2.0.10", capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(root)))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
