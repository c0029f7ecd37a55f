"""X09: a loss that is not a number, and one that is infinite, are results."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)
LOSSES = [0.25, float("nan"), float("inf"), float("-inf"), 0.125]


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [1.0, LOSSES[params["a"]]], "val_loss": [LOSSES[params["a"]]]}, None


p = {"a": [0, 1, 2, 3, 4]}
scan = talos.Scan(x, y, p, input_model, "x09", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(scan.data.sort_values("loss")[["a", "loss", "val_loss"]].to_string(index=False))
