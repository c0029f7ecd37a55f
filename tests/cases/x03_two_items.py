"""X03: a tuple of two, which is no range; a list was meant."""

import numpy as np
import talos as ta

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


def search():
    p = {"b": [1, 2], "a": (25, 32)}
    return ta.Scan(
        x,
        y,
        model=input_model,
        params=p,
        experiment_name="x03_two",
        x_val=x,
        y_val=y,
        seed=17,
        disable_progress_bar=True,
    )


search()
