"""X05: thirty steps between two whole numbers that are eight apart."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [1 / params["batch_size"]]}, None


p = {"batch_size": (2, 10, 30)}
scan = talos.Scan(x, y, p, input_model, "x05", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows:", scan.data["batch_size"].tolist())
