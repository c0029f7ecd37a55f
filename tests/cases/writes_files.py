"""Every trial writes to the same file names, in the folder that the script runs in."""

import os

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    with open("log.csv", "a", encoding="utf-8") as log:
        log.write(f"{params['a']},{1 / params['a']}\n")
    os.makedirs("plots/last", exist_ok=True)
    with open("plots/last/size.txt", "w", encoding="utf-8") as plot:
        plot.write(str(params["a"]))
    return {"loss": [1 / params["a"]]}, None


p = {"a": [1, 2, 3, 4, 5, 6]}
scan = talos.Scan(x, y, p, input_model, "writes", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows")
