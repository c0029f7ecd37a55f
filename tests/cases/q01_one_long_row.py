"""Q01: six rows, one of which takes far longer. The argument says which one: first or last."""

import sys
import time

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)

times = [0.2, 0.2, 0.2, 0.2, 0.2]
times.insert(0 if sys.argv[1] == "first" else 5, 8)


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(times[params["a"]])
    return {"loss": [times[params["a"]]]}, None


p = {"a": [0, 1, 2, 3, 4, 5]}
scan = talos.Scan(x, y, p, input_model, "q01", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows")
