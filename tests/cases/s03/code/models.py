"""The model of s03_arange_values.py, which imports everything from here."""

import numpy as np


def vae_model(x_train, y_train, x_val, y_val, params):
    kinds = [isinstance(params[key], np.integer) for key in ("encoder_units", "decoder_units", "epochs")]
    error = abs(params["encoder_units"] - params["decoder_units"]) / params["epochs"]
    history = {
        "loss": [error + float(abs(x_train - y_train).sum())],
        "numpy_ints": [sum(kinds)],
        "rows": [len(x_train)],
        "total": [float(x_val.sum())],
    }
    return history, None
