"""X01: a bare string. The dictionary is put together as the script runs, so that reading the file cannot tell."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["b"]]}, None


def space():
    p = {"b": [1, 2]}
    p["activation"] = "relu"
    return p


talos.Scan(x, y, space(), input_model, "x01_string", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
