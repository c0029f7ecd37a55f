"""Has all that a scan needs, in a function that nobody calls."""

import numpy as np
import talos


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [1 / params["a"]]}, None


def search():
    x, y = np.zeros((4, 1)), np.zeros(4)
    return talos.Scan(x, y, {"a": [1, 2]}, input_model, "never", x_val=x, y_val=y, disable_progress_bar=True)


print("the end")
