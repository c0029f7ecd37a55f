"""Q17: a DataFrame and a Series whose index is not in order."""

import pandas as pd
import talos

order = [7, 2, 9, 0, 4, 1, 8, 3, 6, 5]
x = pd.DataFrame({"n": range(10), "half": [n / 2 for n in range(10)]}, index=order)
y = pd.Series([n * n for n in range(10)], index=order)


def input_model(x_train, y_train, x_val, y_val, params):
    assert list(x_train.index) == list(y_train.index)
    assert list(x_val.index) == list(y_val.index)
    wrong = sum(abs(y_train - x_train["n"] ** 2)) + sum(abs(y_val - x_val["n"] ** 2))
    order = sum(value * 10.0**-at for at, value in enumerate(x_train["n"]))
    return {"loss": [float(wrong)], "train": [len(x_train)], "val": [len(x_val)], "order": [order]}, None


scan = talos.Scan(x, y, {"a": [1, 2, 3]}, input_model, "q17", seed=4, disable_progress_bar=True)
print(scan.data[["loss", "train", "val"]].to_numpy().tolist(), scan.data["order"].nunique(), "order")
