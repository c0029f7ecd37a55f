"""Q21: a call as old tutorials have it: four positions, the names of an older Talos, no experiment_name."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


p = {"a": list(range(300))}
scan = talos.Scan(x, y, p, input_model, dataset_name="a", experiment_no="1", grid_downsample=0.01, seed=21)
print(len(scan.data), "rows")
