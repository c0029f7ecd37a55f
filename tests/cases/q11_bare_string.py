"""Q11: a value that is a bare string and not a list."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [len(params["out_act"])]}, None


p = {"units": [2, 4], "out_act": "sigmoid"}
talos.Scan(x, y, p, input_model, "q11", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
