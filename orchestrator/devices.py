"""``parallel_gpu_jobs``, ``multi_gpu``, ``force_cpu``: the device helpers of Talos's guide, for TensorFlow and Torch.

Backends are imported when a helper is called. In a worker of a sweep the share has been applied already, before the
user's first line: ``parallel_gpu_jobs`` then leaves it in force and says so, since it may not take more than the share.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Union

from orchestrator.worker.visible import visible_gpus

_TORCH = ("torch", "pytorch")
_MIB = 1024 * 1024


def parallel_gpu_jobs(
    allow_growth: Union[bool, float] = True, fraction: float = 0.5, backend: str = "tensorflow"
) -> None:
    """Keep this process to a part of each visible GPU's memory.

    ``fraction`` is in (0, 1] and may be given as the first argument, as in ``parallel_gpu_jobs(0.5)``. Below 1 it is a
    hard limit on every device; at 1 ``allow_growth`` lets memory grow as needed. Without a GPU it does nothing.
    Raises ValueError for a fraction outside (0, 1], and the backend's RuntimeError once its devices are initialised.
    """
    if isinstance(allow_growth, (int, float)) and not isinstance(allow_growth, bool):
        fraction, allow_growth = float(allow_growth), False
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction is {fraction}: give a part of the GPU's memory, more than 0 and at most 1")
    if in_worker():
        sys.stderr.write("talos-orch: parallel_gpu_jobs: this worker's share is in force already and stays\n")
        return
    if backend in _TORCH:
        import torch

        for device in range(torch.cuda.device_count()):
            torch.cuda.set_per_process_memory_fraction(fraction, device)
        return
    _limit_tensorflow(fraction, allow_growth=bool(allow_growth))


def _limit_tensorflow(fraction: float, *, allow_growth: bool) -> None:
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    if fraction == 1:
        for device in devices:
            if allow_growth:
                tf.config.experimental.set_memory_growth(device, True)
        return
    for device, total in zip(devices, _visible_bytes(len(devices))):
        limit = tf.config.LogicalDeviceConfiguration(memory_limit=int(total * fraction / _MIB))
        tf.config.set_logical_device_configuration(device, [limit])


def _visible_bytes(count: int) -> list[int]:
    """Give the memory of each of the ``count`` devices that a backend sees, in its order; RuntimeError if not known."""
    shown = (visible_gpus() or {}) if count else {}
    asked = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    uuids = list(shown)
    for place, name in enumerate(asked):
        if name.isdigit():  # numbers count the devices in the driver's order, as CUDA_DEVICE_ORDER=PCI_BUS_ID has them
            asked[place] = uuids[int(name)] if int(name) < len(uuids) else name
    sizes = [shown.get(uuid) for uuid in (asked or uuids)[:count]]
    known = [size for size in sizes if size is not None]
    if len(known) < count:
        raise RuntimeError("the memory of the visible GPUs cannot be read from the driver: no limit can be set")
    return known


def multi_gpu(model: Any, gpus: Any = None, cpu_merge: bool = True, cpu_relocation: bool = False) -> Any:  # noqa: ARG001
    """Put one model on several GPUs: Torch's DataParallel, or a copy under TensorFlow's MirroredStrategy.

    ``gpus`` is how many, or for Torch a list of device numbers; None takes all that this process sees. With fewer than two
    the model comes back unchanged. A Keras model keeps its weights and, if it is compiled, optimizer (with its state), loss
    and metrics; else compile it afterwards. The last two arguments are Talos's and have no effect, as there.

    DataParallel and not DistributedDataParallel, since that needs a process for each device and a callback is one process.
    A callback that starts its own may wrap its model itself.
    """
    if hasattr(model, "state_dict") and "torch" in sys.modules:
        import torch

        ids = list(gpus) if isinstance(gpus, (list, tuple)) else list(range(gpus or torch.cuda.device_count()))
        ids = [each for each in ids if each < torch.cuda.device_count()]
        return torch.nn.DataParallel(model, device_ids=ids) if len(ids) > 1 else model
    import tensorflow as tf

    devices = tf.config.list_logical_devices("GPU")
    devices = devices[:gpus] if isinstance(gpus, int) else devices
    if len(devices) < 2:
        return model
    return mirrored(model, [device.name for device in devices])


def mirrored(model: Any, devices: list[str]) -> Any:
    """Give a copy of a Keras model under MirroredStrategy on ``devices``, compiled as the model is."""
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(devices=devices)
    with strategy.scope():
        copied = tf.keras.models.clone_model(model)
        copied.set_weights(model.get_weights())
        if getattr(model, "compiled", False):
            copied.compile_from_config(model.get_compile_config())
            _copy_optimizer(model.optimizer, copied)
    return copied


def _copy_optimizer(optimizer: Any, copied: Any) -> None:
    if not getattr(optimizer, "built", False):
        return
    if not copied.optimizer.built:
        copied.optimizer.build(copied.trainable_variables)
    for own, other in zip(copied.optimizer.variables, optimizer.variables):
        own.assign(other.numpy())


def force_cpu(backend: str = "tensorflow") -> Any:
    """Hide every GPU from TensorFlow; for Torch give ``'cpu'``, the device to use. Raises RuntimeError once initialised."""
    if backend in _TORCH:
        return "cpu"
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    return None


def in_worker() -> bool:
    """Say whether this process is a worker of a sweep."""
    from orchestrator.scan.serve import WorkerSession
    from orchestrator.scan.session import current_session

    return isinstance(current_session(), WorkerSession)
