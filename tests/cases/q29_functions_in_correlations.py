"""Q29: functions as values while a reducer looks at correlations, and correlations of the result."""

import time

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def tanh(value):
    return value / (1 + abs(value))


def relu(value):
    return max(value, 0)


class Adam:
    """An optimizer."""


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(0.15)  # so that there are rows left to take away
    value = params["activation"](params["units"]) + params["c"] / 1000
    return {"loss": [1 / (1 + value)], "val_acc": [value]}, None


p = {"c": list(range(8)), "activation": [tanh, relu], "optimizer": [Adam], "units": [0, 9]}
scan = talos.Scan(
    x,
    y,
    p,
    input_model,
    "q29",
    x_val=x,
    y_val=y,
    reduction_method="spearman",
    reduction_interval=8,
    reduction_window=8,
    reduction_metric="val_acc",
    seed=29,
    disable_progress_bar=True,
)
found = talos.Analyze(scan).correlate("val_acc", ["loss"])
print(len(scan.data), "rows; correlations of", sorted(map(str, found.index)))
