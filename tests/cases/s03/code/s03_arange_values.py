"""S03: numpy ranges as values, a table beside the parent folder, asserts and prints at import, a star import."""

import numpy as np
import pandas as pd
import talos
from models import *  # noqa: F403

data = pd.read_csv("../data/safe/x.csv").to_numpy()
assert data.ndim == 2
print("read", data.shape)
train, validation = data[:9], data[9:]

p = {
    "activation": ["relu"],
    "encoder_units": np.arange(16, 1024, 32),
    "decoder_units": np.arange(16, 1024, 32),
    "epochs": np.arange(10, 500, 100),
}
assert len(p["encoder_units"]) == 32

scan = talos.Scan(
    x=train,
    y=train,
    x_val=validation,
    y_val=validation,
    params=p,
    model=vae_model,  # noqa: F405
    experiment_name="vae",
    grid_downsample=0.1,
    seed=3,
    disable_progress_bar=True,
)
print(len(scan.data), "rows")
