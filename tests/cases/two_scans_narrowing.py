"""Two Scans: the second looks closer around the best row of the first, so it needs the whole first result."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    distance = (params["a"] - 33) ** 2 + (params["b"] - 0.62) ** 2
    return {"loss": [2 * distance, distance]}, None


wide = talos.Scan(
    x,
    y,
    {"a": [10, 20, 30, 40], "b": (0.0, 1.0, 4)},
    input_model,
    "wide",
    x_val=x,
    y_val=y,
    seed=17,
    disable_progress_bar=True,
)
best = wide.data.sort_values("loss").iloc[0]
print(f"wide: {len(wide.data)} rows, a = {best['a']}, b = {best['b']:.2f}")

a, b = int(best["a"]), float(best["b"])
p = {"a": [a - 3, a, a + 3], "b": (b - 0.2, b + 0.2, 5)}
near = talos.Scan(x, y, p, input_model, "near", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
best = near.data.sort_values("loss").iloc[0]
print(f"near: {len(near.data)} rows, a = {best['a']}, b = {best['b']:.2f}")
