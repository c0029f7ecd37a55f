"""Q19: two inputs and two outputs, validation data for all of them, and no name, as once in the documentation."""

import numpy as np
import talos

a, b = np.zeros((6, 3)), np.ones((6, 2, 2))
c, d = np.zeros((6, 1)), np.ones(6)


def input_model(x_train, y_train, x_val, y_val, params):
    parts = [*x_train, *y_train, *x_val, *y_val]
    shapes = {f"size_{at}": [part.size * 10 + part.ndim] for at, part in enumerate(parts)}
    return {"loss": [params["a"]], **shapes}, None


scan = talos.Scan(
    x=[a, b],
    y=[c, d],
    x_val=[a[:2], b[:2]],
    y_val=[c[:2], d[:2]],
    params={"a": [1, 2, 3]},
    model=input_model,
    multi_input=True,
    seed=19,
    disable_progress_bar=True,
)
print(len(scan.data), "rows")
