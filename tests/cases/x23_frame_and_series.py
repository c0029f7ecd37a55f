"""X23: a DataFrame and a Series without validation data, beside the same as arrays."""

import pandas as pd
import talos

frame = pd.DataFrame({"n": range(10), "twice": range(0, 20, 2)})
series = pd.Series(range(0, 30, 3), name="y")


def input_model(x_train, y_train, x_val, y_val, params):
    n, target = (x_train["n"].tolist(), y_train.tolist()) if params["as"] == "frame" else (x_train[:, 0], y_train)
    seen = x_val["n"].tolist() if params["as"] == "frame" else x_val[:, 0].tolist()
    return {
        "loss": [float(sum(abs(3 * left - right) for left, right in zip(n, target, strict=True)))],
        "train": [float(sum(value * 2.0**at for at, value in enumerate(n)))],  # tells the order too
        "val": [float(sum(value * 2.0**at for at, value in enumerate(seen)))],
        "rows": [len(y_train) * 100 + len(y_val)],
    }, None


for name, x, y in (("frame", frame, series), ("array", frame.to_numpy(), series.to_numpy())):
    scan = talos.Scan(x, y, {"as": [name]}, input_model, "x23_" + name, seed=23, disable_progress_bar=True)
    print(name, scan.data[["loss", "train", "val", "rows"]].to_numpy().tolist())
