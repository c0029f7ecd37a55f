"""S03: the folder of the data is put together as the script runs, so that it has to be asked for with --mount."""

import os
import sys

import numpy as np
import talos

folder = os.path.join(os.pardir, "da" + "ta", sys.argv[1])
table = np.loadtxt(os.path.join(folder, "x.csv"), delimiter=",", skiprows=1)


def input_model(x_train, y_train, x_val, y_val, params):
    try:
        with open(os.path.join(folder, "left.txt"), "a", encoding="utf-8") as left:
            left.write(f"{params['a']}\n")
        wrote = 1
    except OSError:
        wrote = 0
    return {"loss": [params["a"] * float(table.sum())], "wrote": [wrote]}, None


scan = talos.Scan(
    table, table, {"a": [1, 2]}, input_model, "asked", x_val=table, y_val=table, seed=3, disable_progress_bar=True
)
print(len(scan.data), "rows")
