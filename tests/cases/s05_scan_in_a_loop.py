"""S05: one Scan for each turn of a loop over growing data. Run it inside ``data_s05``, where its CSV files lie."""

import keras
import numpy as np
import pandas as pd
import talos
from keras.activations import linear, relu, tanh
from keras.losses import mean_squared_error
from keras.optimizers import Adam, Nadam
from talos.model import lr_normalizer

TURNS = [0, 12, 18, 24]  # rows known at the end of each week; in the first week there is nothing yet


def rating_model(x_train, y_train, x_val, y_val, params):
    """A stack of layers whose sizes are one list, which is one value of one parameter."""
    model = keras.Sequential([keras.Input(shape=(x_train.shape[1],))])
    for size in params["layers"]:
        model.add(keras.layers.Dense(size, activation=params["activation"]))
        model.add(keras.layers.Dropout(params["dropout"]))
    model.add(keras.layers.Dense(1, activation=params["last"]))
    rate = params["lr"] if params["optimizer"] is Nadam else lr_normalizer(params["lr"], params["optimizer"])
    # Eagerly: so few steps are over before a graph would be compiled.
    model.compile(optimizer=params["optimizer"](learning_rate=rate), loss=params["loss"], run_eagerly=True)
    history = model.fit(
        x_train,
        y_train,
        validation_data=[x_val, y_val],
        epochs=params["epochs"],
        batch_size=params["batch_size"],
        verbose=0,
    )
    return history, model


def main():
    known = pd.read_csv("ratings.csv").to_numpy()
    later = pd.read_csv("ratings_later.csv").to_numpy()
    for turn, size in enumerate(TURNS):
        part = known[:size]
        if not len(part):
            print(f"turn {turn}: nothing to learn from yet")
            continue
        p = {
            "lr": (0.05, 0.5, 5),
            "layers": [[9, 6, 4], [6, 4], [4]],
            "batch_size": (
                2,
                10,
                30,
            ),  # thirty steps asked for, but there are only eight whole numbers: 2 to 9
            "epochs": [1],
            "dropout": (0, 0.5, 5),
            "optimizer": [Adam, Nadam],
            "loss": [mean_squared_error],
            "activation": [relu, tanh],
            "last": [linear],
        }
        name = "week_" + str(turn) + "_rows_" + str(size)
        scan = talos.Scan(
            x=part[:, :-1],
            y=part[:, -1],
            x_val=later[:, :-1],
            y_val=later[:, -1],
            params=p,
            model=rating_model,
            experiment_name=name,
            fraction_limit=0.0025,  # of 2400
            seed=5,
            disable_progress_bar=True,
        )
        best = scan.data.sort_values("val_loss").iloc[0]
        print(f"turn {turn}: {len(scan.data)} rows, best {best['val_loss']:.6f} with layers {best['layers']}")
        with open(name + ".npy", "wb") as file:
            np.save(file, scan.data["val_loss"].to_numpy(dtype=float))


if __name__ == "__main__":
    main()
