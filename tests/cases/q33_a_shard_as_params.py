"""Q33: a Scan that is given one machine's share of a space."""

import numpy as np
import talos
from talos.parameters.DistributeParamSpace import DistributeParamSpace

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"] * 10 + params["b"]]}, None


p = {"a": [1, 2, 3], "b": [0, 1, 2]}
space = DistributeParamSpace(p, machines=2, seed=33).param_spaces[0]
scan = talos.Scan(x, y, space, input_model, "q33", x_val=x, y_val=y, seed=33, disable_progress_bar=True)
print(len(scan.data), "of", len(space), "rows")
