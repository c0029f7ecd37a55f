"""Data drawn from the global generators before each of several seeded Scans, and numbers drawn after the last."""

import random

import numpy as np
import talos
import torch

np.random.seed(1)  # noqa: NPY002 - the generator that Talos seeds


def input_model(x_train, y_train, x_val, y_val, params):
    noise = float(np.random.rand() + random.random() + torch.rand(1).item())  # noqa: NPY002, S311 - as above
    return {"loss": [noise + x_train.sum() * params["a"]]}, None


for turn in range(3):
    x = np.random.rand(20, 2)  # noqa: NPY002 - as above
    y = np.random.randint(0, 2, 20)  # noqa: NPY002 - as above
    scan = talos.Scan(x, y, {"a": [1, 2, 3, 4]}, input_model, f"turn-{turn}", seed=5, disable_progress_bar=True)
    print(scan.data["loss"].tolist(), random.random(), np.random.rand(), np.random.normal())  # noqa: NPY002, S311
print(torch.rand(1).item())
