"""Q23: a share of eight rows. The argument is the share: .1 is less than one row, 1 is one row and not all."""

import sys

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)

share = float(sys.argv[1]) if "." in sys.argv[1] else int(sys.argv[1])


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


p = {"a": [1, 2, 3, 4], "b": [0, 1]}
scan = talos.Scan(
    x, y, p, input_model, "q23", x_val=x, y_val=y, fraction_limit=share, seed=23, disable_progress_bar=True
)
print(len(scan.data), "rows")
