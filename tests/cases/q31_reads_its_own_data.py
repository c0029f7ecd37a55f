"""Q31: the arrays are a pretence; the data is read from a folder by a generator inside the model."""

import os

import numpy as np
import talos

x, y = np.zeros((2, 1)), np.zeros((2, 1))


def lines():
    for name in sorted(os.listdir("data_s05")):
        with open(os.path.join("data_s05", name), encoding="utf-8") as file:
            next(file)
            for line in file:
                yield [float(cell) for cell in line.split(",")]


def input_model(x_train, y_train, x_val, y_val, params):
    total, count = 0.0, 0
    for row in lines():
        total += row[-1] * params["a"]
        count += 1
    return {"loss": [total / count], "count": [count], "own": [len(x_train)]}, None


scan = talos.Scan(x, y, {"a": [1, 2, 3, 4]}, input_model, "q31", x_val=x, y_val=y, seed=31, disable_progress_bar=True)
print(len(scan.data), "rows")
