"""X15: one value of each kind that a list may hold; each trial checks that it was handed the very same."""

from collections import OrderedDict

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


class Optimizer:
    """A class as a value."""


def tanh(value):
    """A function as a value."""
    return value


KINDS = [
    Optimizer,
    OrderedDict,
    tanh,
    len,
    [50, 25, 20],
    (3, 3),
    {"depth": 2, "widths": [4, 8]},
    None,
    True,
    False,
    1,
    1.0,
    np.float32(0.1),
    np.int64(7),
    "x" * 100_000,
    "größe 学习率 ✓",
    'two\nlines, a comma and a "quote"',
    b"\x00\xff",
    {1, 2, 3},
]


def input_model(x_train, y_train, x_val, y_val, params):
    value = params["value"]
    found = [at for at, kind in enumerate(KINDS) if type(kind) is type(value) and kind == value]
    return {"position": found[:1] or [-1], "found": [len(found)]}, None


scan = talos.Scan(x, y, {"value": KINDS}, input_model, "x15", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows of", len(KINDS))
print("positions:", scan.data["position"].tolist())
