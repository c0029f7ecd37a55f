"""Q27: a seed, and a dropout that draws from three generators, two of which it takes as they are."""

import random

import numpy as np
import talos

x, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)


def input_model(x_train, y_train, x_val, y_val, params):
    kept = [value for value in x_train[:, 0] if random.random() > params["dropout"]]  # noqa: S311
    noise = np.random.random()  # noqa: NPY002 - which Talos seeds for each trial
    return {"loss": [sum(kept) * params["lr"]], "noise": [float(noise)], "val_loss": [float(y_val.sum())]}, None


p = {"dropout": [0.5], "lr": (0.01, 1.0, 100), "units": [2, 4, 8, 16]}
scan = talos.Scan(x, y, p, input_model, "q27", round_limit=9, seed=7, disable_progress_bar=True)
print(len(scan.data), "rows,", scan.data["noise"].nunique(), "noises")
