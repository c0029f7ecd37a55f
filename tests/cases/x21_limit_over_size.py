"""X21: more rows asked for than there are."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


p = {"a": [1, 2]}
scan = talos.Scan(x, y, p, input_model, "x21", x_val=x, y_val=y, round_limit=50, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows")
