"""Stands in for the driver's library on this machine: the devices that ``STANDIN_GPUS`` names, 24 GiB each."""

import os
from types import SimpleNamespace

NVML_DEVICE_MIG_ENABLE, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 1, 3


class NVMLError(Exception):
    """The driver's refusal."""


def _uuids():
    return os.environ["STANDIN_GPUS"].split(",")


def nvmlInit():  # noqa: N802 - the driver's names, here and below
    if "STANDIN_GPUS" not in os.environ:
        raise NVMLError("Driver Not Loaded")


def nvmlShutdown():  # noqa: N802
    pass


def nvmlDeviceGetCount():  # noqa: N802
    return len(_uuids())


def nvmlDeviceGetHandleByIndex(index):  # noqa: N802
    return index


def nvmlDeviceGetName(_handle):  # noqa: N802
    return "Stand-in"


def nvmlDeviceGetUUID(handle):  # noqa: N802
    return _uuids()[handle]


def nvmlDeviceGetMemoryInfo(_handle):  # noqa: N802
    return SimpleNamespace(total=24 * 1024**3, used=0)


def nvmlDeviceGetMigMode(_handle):  # noqa: N802
    raise NVMLError("Not Supported")


def nvmlDeviceGetComputeMode(_handle):  # noqa: N802
    return 0


def nvmlDeviceGetHandleByUUID(uuid):  # noqa: N802
    return _uuids().index(uuid)


def nvmlDeviceGetComputeRunningProcesses(_handle):  # noqa: N802
    return []
