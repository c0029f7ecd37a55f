"""S11: models that write into a global configuration. Arguments: past, grouped or plain."""

import sys
from types import SimpleNamespace

import numpy as np
import talos

cfg = SimpleNamespace(weight=1.0, noise=False, skip=False, losses=(1.0, 1.0), trained=0)
spectra = np.linspace(0, 1, 4 * 3 * 2).reshape(4, 3, 2, 1)
kind = sys.argv[1]


def train(data):
    """Know only the configuration, as the function of an imported module would."""
    cfg.trained += 1
    first, second = cfg.losses
    loss = first * cfg.weight + second * float(data.mean()) + 0.1 * cfg.noise + 0.01 * cfg.skip
    return {"loss": [loss, loss / 2], "val_loss": [loss / 4]}


def main():
    def vae_model(x_train, y_train, x_val, y_val, params):
        cfg.weight = params["weight"]
        cfg.losses = params["losses"]
        if kind == "grouped":  # is set and never taken back: the trials after it have it too
            cfg.noise = cfg.noise or params["noise"]
            cfg.skip = cfg.skip or params["skip"]
        else:
            cfg.noise, cfg.skip = params["noise"], params["skip"]
        return train(x_train), None

    p = {
        "weight": [0.5, 1.0, 2.0],
        "noise": [False, True],
        "skip": [False, True],
        "losses": [(5.0, 1.0), (2.0, 1.0), (1.0, 1.0)],
    }
    scan = talos.Scan(
        x=spectra,
        y=spectra,
        x_val=spectra,
        y_val=spectra,
        params=p,
        model=vae_model,
        experiment_name="vae",
        fraction_limit=0.999,
        time_limit="2022-06-23 23:30" if kind == "past" else None,
        print_params=True,
        seed=11,
        disable_progress_bar=True,
    )
    print(len(scan.data), "rows")


if __name__ == "__main__":
    main()
