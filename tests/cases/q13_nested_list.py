"""Q13: a list is a list of alternatives; a list in it is one value, and a list."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    neurons = params["neurons"]
    return {"loss": [sum(neurons) if isinstance(neurons, list) else neurons / 2]}, None


for name, values in (("plain", [16]), ("nested", [[16]]), ("both", [16, [16], [8, 4]])):
    scan = talos.Scan(
        x, y, {"neurons": values}, input_model, name, x_val=x, y_val=y, seed=17, disable_progress_bar=True
    )
    print(name, scan.data["neurons"].tolist(), scan.data["loss"].tolist())
