"""X11: the model function returns a score and a dictionary."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return 1 / params["a"], {"loss": 1 / params["a"]}


p = {"a": [1, 2, 3, 4]}
talos.Scan(x, y, p, input_model, "x11_a_score", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
