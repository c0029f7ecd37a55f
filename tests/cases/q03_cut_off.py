"""Q03: a sweep that is cut off in the middle and started again; every training leaves a line in a file of its own."""

import pathlib
import sys
import time

import numpy as np
import talos

ran = pathlib.Path(sys.argv[1])  # mounted, so that the test can count what ran
seconds = float(sys.argv[2])
x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(seconds)
    with ran.open("a") as lines:
        lines.write(f"{params['a']}\n")
    return {"loss": [params["a"] + np.random.rand()]}, None  # noqa: NPY002 - what Talos seeds


p = {"a": list(range(10))}
scan = talos.Scan(x, y, p, input_model, "q03", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows, best", scan.data["loss"].min())
