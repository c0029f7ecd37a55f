"""One row of six raises an exception; the other five are good."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    if params["a"] == 3:
        raise ValueError("three is not a size that this model has")
    return {"loss": [1 / params["a"]], "val_loss": [2 / params["a"]]}, None


p = {"a": [1, 2, 3, 4, 5, 6]}
scan = talos.Scan(x, y, p, input_model, "raises", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows, the best loss is", scan.data["loss"].min())
