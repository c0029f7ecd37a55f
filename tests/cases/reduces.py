"""A reducer of Talos's own, named by the argument, on rows whose results depend on their seeds."""

import sys

import numpy as np
import talos

x, y = np.zeros((20, 2)), np.zeros(20)


def input_model(x_train, y_train, x_val, y_val, params):
    noise = np.random.rand()  # noqa: NPY002 - which Talos seeds for each trial
    acc = params["a"] * 0.03 + (params["b"] == "good") * 0.3 + noise * 0.05 - params["c"] * 0.02
    return {"loss": [1 - acc], "acc": [acc], "val_acc": [acc - 0.01]}, None


p = {"a": list(range(8)), "b": ["good", "bad"], "c": [1, 2, 5]}
scan = talos.Scan(
    x, y, p, input_model, "reduces", x_val=x, y_val=y, seed=3, reduction_method=sys.argv[1], reduction_interval=6,
    reduction_window=6, reduction_threshold=0.1, disable_progress_bar=True,
)  # fmt: skip
print(len(scan.data), scan.data[["a", "b", "c", "val_acc", "_trial_id"]].to_numpy().tolist())
