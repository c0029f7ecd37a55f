"""X25: the model changes a parameter and adds one."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    loss = 1 / params["a"]
    params["a"] = 99
    params["steps"] = 7
    return {"loss": [loss]}, None


scan = talos.Scan(
    x, y, {"a": [1, 2, 4], "b": [0]}, input_model, "x25", x_val=x, y_val=y, seed=17, disable_progress_bar=True
)
print("a:", scan.data["a"].tolist(), "steps:", scan.data["steps"].tolist(), "losses:", scan.data["loss"].tolist())
