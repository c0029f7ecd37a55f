"""Q25: every trial leaves 60 MB behind, until the kernel ends the process."""

import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)

kept = []


def input_model(x_train, y_train, x_val, y_val, params):
    kept.append(b"x" * 60_000_000)
    return {"loss": [params["a"]], "kept": [len(kept)]}, None


p = {"a": list(range(14))}
scan = talos.Scan(x, y, p, input_model, "q25", x_val=x, y_val=y, seed=25, disable_progress_bar=True)
print(len(scan.data), "rows completed,", len(scan.failures), "lost")
