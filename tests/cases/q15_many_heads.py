"""Q15: eight inputs, and 42 parameters of ten values each. The argument is the limit: 3 or a share."""

import sys

import numpy as np
import talos

heads = [np.full((4, 2 + number), number, dtype=float) for number in range(8)]
y = np.zeros(4)
limit = sys.argv[1]


def input_model(x_train, y_train, x_val, y_val, params):
    widths = [part.shape[1] for part in x_train]
    assert widths == [part.shape[1] for part in x_val] == list(range(2, 10))
    return {"loss": [sum(params.values())], "heads": [len(x_train)]}, None


p = {f"k{number:02d}": list(range(10)) for number in range(42)}
scan = talos.Scan(
    heads,
    y,
    p,
    input_model,
    "q15",
    x_val=heads,
    y_val=y,
    multi_input=True,
    round_limit=int(limit) if "." not in limit else None,
    fraction_limit=float(limit) if "." in limit else None,
    seed=15,
    disable_progress_bar=True,
)
print(len(scan.data), "rows")
