"""X13: a value that is listed twice is tried twice."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [float(np.random.random())]}, None  # noqa: NPY002 - which Talos seeds for each trial


p = {"a": [1, 1, 2]}
scan = talos.Scan(x, y, p, input_model, "x13", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(scan.data["a"].tolist(), "from", scan.data["_param_hash"].nunique(), "combinations,")
print(scan.data["loss"].nunique(), "losses")
