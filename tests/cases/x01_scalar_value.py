"""X01: a bare number where a list of alternatives belongs."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"] + params["b"]]}, None


p = {"b": [1, 2], "a": 5}
talos.Scan(x, y, p, input_model, "x01_scalar", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
