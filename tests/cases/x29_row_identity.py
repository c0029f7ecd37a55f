"""X29: who runs a row must not change what it is called. Some rows of a larger space, one value of it twice."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"] * params["b"]]}, None


p = {"a": [1, 1, 2, 3, 4, 5], "b": (0.5, 2.5, 4)}
scan = talos.Scan(x, y, p, input_model, "x29", x_val=x, y_val=y, round_limit=12, seed=29, disable_progress_bar=True)
print(len(scan.data), "rows", scan.data["_trial_id"].nunique(), "ids")
