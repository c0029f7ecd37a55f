"""Which GPUs the NVIDIA driver shows to this process, whatever was asked for; standard library only."""

from __future__ import annotations

import ctypes
import re
import subprocess
from typing import Any, Optional

_LIBRARY = "libnvidia-ml.so.1"
_UUID = re.compile(r"UUID: ((?:GPU|MIG)-[^)\s]+)")
_LONGEST = 96


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def visible_gpus() -> Optional[dict[str, Optional[int]]]:
    """Give every device, MIG instances too, by UUID with its memory in bytes (None: not known).

    None where no driver can be asked, neither through its library nor through ``nvidia-smi``.
    """
    library = _load()
    return _listed() if library is None else _through(library)


def _load() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def _through(library: Any) -> dict[str, Optional[int]]:
    found: dict[str, Optional[int]] = {}
    try:
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return found
        for index in range(count.value):
            handle = ctypes.c_void_p()
            if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
                _note(library, handle, found)
                for instance in _instances(library, handle):
                    _note(library, instance, found)
    finally:
        library.nvmlShutdown()
    return found


def _note(library: Any, handle: ctypes.c_void_p, found: dict[str, Optional[int]]) -> None:
    text, memory = ctypes.create_string_buffer(_LONGEST), _Memory()
    if library.nvmlDeviceGetUUID(handle, text, _LONGEST) != 0:
        return
    known = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    found[text.value.decode("ascii", "replace")] = int(memory.total) if known else None


def _instances(library: Any, handle: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    most = ctypes.c_uint()
    if library.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(most)) != 0:
        return []
    found = []
    for number in range(most.value):
        instance = ctypes.c_void_p()
        if library.nvmlDeviceGetMigDeviceHandleByIndex(handle, number, ctypes.byref(instance)) == 0:
            found.append(instance)
    return found


def _listed() -> Optional[dict[str, Optional[int]]]:
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return dict.fromkeys(_UUID.findall(done.stdout)) if done.returncode == 0 else None
