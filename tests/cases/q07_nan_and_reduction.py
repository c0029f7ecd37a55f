"""Q07: some trials give a made-up history of one NaN, while a reducer looks at correlations."""

import time

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(0.15)  # so that there are rows left to take away
    if params["c"] == 2:
        return {"loss": [float("nan")]}, None  # ran out of memory
    return {"loss": [1 - params["a"] / 10], "val_acc": [params["a"] / 10 + params["c"] / 1000]}, None


p = {"c": list(range(12)), "a": [0, 9]}
scan = talos.Scan(
    x,
    y,
    p,
    input_model,
    "q07",
    x_val=x,
    y_val=y,
    reduction_method="correlation",
    reduction_interval=8,
    reduction_window=8,
    reduction_metric="val_acc",
    seed=17,
    disable_progress_bar=True,
)
print(len(scan.data), "rows,", int(scan.data["loss"].isna().sum()), "without a loss")
