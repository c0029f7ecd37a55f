"""X17: arguments of an older Talos, beside the name that a Scan has today."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"] / params["b"]]}, None


p = {"a": list(range(1, 21)), "b": list(range(1, 11))}
scan = talos.Scan(
    x,
    y,
    p,
    input_model,
    "x17",
    x_val=x,
    y_val=y,
    dataset_name="x17_data",
    experiment_no="1",
    grid_downsample=0.01,
    search_method="random",
    seed=17,
    disable_progress_bar=True,
)
print(len(scan.data), "rows of 200")
