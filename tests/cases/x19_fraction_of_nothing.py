"""X19: a hundredth of ten rows is less than one."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


p = {"a": list(range(10))}
talos.Scan(x, y, p, input_model, "x19", x_val=x, y_val=y, fraction_limit=0.01, seed=17, disable_progress_bar=True)
