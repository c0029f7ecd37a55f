"""X31: names of experiments that are no names of folders, or that lead out of this one."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


for name in ("a/b/c", "x_scan/", "é 漢 字", "C:\\x", "../up", "/talos-x31/abs", "..", ""):
    scan = talos.Scan(x, y, {"a": [1]}, input_model, name, x_val=x, y_val=y, seed=17, disable_progress_bar=True)
    print(len(scan.data), "row of", repr(name))
