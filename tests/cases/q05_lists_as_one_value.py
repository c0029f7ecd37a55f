"""Q05: parameters with a single value each, which is itself a list, or a list of lists, or a path in a list."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    (black, red), mean, (path,) = params["colours"], params["mean"], params["path"]
    history = {"loss": [len(black) + red[0], sum(mean)], "val_loss": [len(path), params["lr"]]}
    return ({key: values[:1] for key, values in history.items()} if params["stops"] else history), None


p = {
    "colours": [[[0, 0, 0], [255, 0, 0]]],
    "mean": [[0.125, 0.25, 0.5]],
    "weights": [[0.1 * n for n in range(40)]],
    "path": [["./w/"]],
    "lr": [0.5, 0.25],
    "stops": [True, False],  # early, after one epoch
}
scan = talos.Scan(x, y, p, input_model, "q05", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(scan.data.shape[0], "rows", len(scan.data["colours"][0]), "colours", scan.data["path"].tolist()[0])
