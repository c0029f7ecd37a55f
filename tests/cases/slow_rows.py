"""Eight rows, each of which takes as many seconds as the first argument says."""

import sys
import time

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)
seconds = float(sys.argv[1])


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(seconds)
    return {"loss": [1 / params["a"]]}, None


p = {"a": [1, 2, 3, 4, 5, 6, 7, 8]}
scan = talos.Scan(x, y, p, input_model, "slow", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows, the best loss is", scan.data["loss"].min())
