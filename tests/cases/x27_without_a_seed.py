"""X27: no seed anywhere: one space whose rows are drawn, one that is dealt out to three machines."""

import numpy as np
import talos
from talos.parameters.DistributeParamSpace import DistributeParamSpace

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


options = {"x_val": x, "y_val": y, "disable_progress_bar": True}
drawn = talos.Scan(x, y, {"a": list(range(1000))}, input_model, "drawn", round_limit=12, **options)
print("drawn:", sorted(drawn.data["a"].tolist()))


shards = DistributeParamSpace({"a": list(range(6))}, machines=3).param_spaces
found = []
for machine in range(3):
    scan = talos.Scan(x, y, shards[machine], input_model, f"shard_{machine}", **options)
    found += scan.data["a"].tolist()
print("dealt:", sorted(found))
