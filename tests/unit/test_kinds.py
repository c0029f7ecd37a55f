"""An engine's own words, and what they mean for a sweep."""

from __future__ import annotations

import pytest

from orchestrator.engine.kinds import describe, gpu_trouble, ignored_limits, notes

DOCKER = {"Version": "24.0.7", "Components": [{"Name": "Engine", "Version": "24.0.7"}]}


def podman(version):
    return {"Version": version, "Components": [{"Name": "Podman Engine", "Version": version}]}


def test_an_engine_is_named_with_its_version():
    assert describe(DOCKER, "1.43") == "24.0.7 (API 1.43)"
    assert describe(podman("4.3.1"), "1.41") == "Podman 4.3.1 (API 1.41)"
    assert describe({"Version": "1"}, "1.24") == "1 (API 1.24)"


@pytest.mark.parametrize(
    ("about", "version", "hook", "words"),
    [
        ({}, DOCKER, False, "nvidia-container-toolkit"),
        ({"Runtimes": {"runc": {}}}, DOCKER, False, "nvidia-container-toolkit"),
        ({"Runtimes": {"nvidia": {}}}, DOCKER, False, None),
        ({"DiscoveredDevices": [{"ID": "nvidia.com/gpu=0"}]}, DOCKER, False, None),
        ({}, DOCKER, True, None),
        ({"Runtimes": {"nvidia": {}}}, podman("4.3.1"), True, "Podman 4.3.1 ignores requests for GPUs"),
        ({}, podman("5.3.2"), False, "Podman 5.3.2 ignores requests for GPUs"),
        ({}, podman("5.4.0-rc1"), False, None),
        ({}, podman("6.0.0"), False, None),
    ],
)
def test_an_engine_that_cannot_give_gpus_says_why(about, version, hook, words):
    trouble = gpu_trouble(about, version, hook=hook)
    assert trouble is None if words is None else words in trouble


def test_limits_that_are_not_held_are_named():
    about = {"MemoryLimit": False, "CpuCfsQuota": False, "PidsLimit": True, "SecurityOptions": ["name=rootless"]}
    assert ignored_limits(about) == ("memory", "cpus")
    said = notes(about)
    assert "rootless" in said[0]
    assert "does not hold limits of memory, cpus" in said[1]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=default", "name=userns"]}, "userns-remap"),
        ({"SecurityOptions": ["name=selinux"]}, "SELinux"),
        ({"OperatingSystem": "Docker Desktop"}, "only folders that it shares"),
        ({"KernelVersion": "5.15.167.4-microsoft-standard-WSL2"}, "every GPU to every container"),
    ],
)
def test_traps_are_named(about, words):
    (said,) = notes(about)
    assert words in said


def test_a_plain_engine_needs_no_words():
    assert notes({"SecurityOptions": ["name=seccomp,profile=default"], "MemoryLimit": True}) == ()
