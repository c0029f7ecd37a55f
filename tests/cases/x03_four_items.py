"""X03: a tuple of four, which is no range; a list was meant."""

import numpy as np
from talos import Scan

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


Scan(
    x,
    y,
    {"a": (16, 32, 64, 128), "b": [1, 2]},
    input_model,
    "x03_four",
    x_val=x,
    y_val=y,
    seed=17,
    disable_progress_bar=True,
)
