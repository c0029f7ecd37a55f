"""X07: some trials report an accuracy, some a learning rate, in another order each time."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    a = params["a"]
    history = {"loss": [1.0, 1 / a]}
    if a % 2 == 0:
        history["acc"] = [0.5, 1 - 1 / a]
    if a >= 3:
        history = {"lr": [0.1, 0.1 / a], **history}
    return history, None


p = {"a": [1, 2, 3, 4, 5, 6]}
scan = talos.Scan(x, y, p, input_model, "x07", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(scan.data[["a", "loss", "acc", "lr"]].to_string(index=False))
