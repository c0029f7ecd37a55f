"""S13: a name on the command line, read without a check, and None among the values. Needs one argument: houses."""

import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import pandas as pd
import talos
from talos.model import early_stopper

table = sys.argv[1]


def main():
    frame = pd.read_csv("input/" + table + ".csv")
    train_x = frame.iloc[:24, :-1].to_numpy()
    train_y = frame.iloc[:24, -1].to_numpy()
    val_x = frame.iloc[24:, :-1].to_numpy()
    val_y = frame.iloc[24:, -1].to_numpy()

    p = {
        "act-1": ["relu", "tanh", "elu", "selu"],
        "act-2": ["relu", "tanh", "elu", "selu"],
        "act-3": ["relu", "tanh", "elu", "selu"],
        "optimizer": ["adam", "sgd", "rmsprop", "nadam"],
        "loss-functions": ["mse"],
        "neurons-1": [2, 4, 6, 8],
        "neurons-2": [2, 3, 4, 5],
        "neurons-3": [2, 3, 4, 5, None],
        "dropout-1": [0.0, 0.1, 0.2],
        "dropout-2": [0.0, 0.1, 0.2, 0.3],
        "batch": [8, 12, 24],
        "epochs": [2],
    }

    def price_model(x, y, x_val, y_val, params):
        layers = [
            keras.Input(shape=(train_x.shape[1],)),  # from main, not from the arguments
            keras.layers.Dense(params["neurons-1"], activation=params["act-1"]),
            keras.layers.Dropout(params["dropout-1"]),
            keras.layers.Dense(params["neurons-2"], activation=params["act-2"]),
            keras.layers.Dropout(params["dropout-2"]),
        ]
        if params["neurons-3"]:  # None leaves the third layer out; an empty cell read back as NaN would not
            layers.append(keras.layers.Dense(params["neurons-3"], activation=params["act-3"]))
        model = keras.Sequential([*layers, keras.layers.Dense(1)])
        # Eagerly: so few steps are over before a graph would be compiled.
        model.compile(optimizer=params["optimizer"], loss=params["loss-functions"], run_eagerly=True)
        history = model.fit(
            x,
            y,
            validation_data=[x_val, y_val],
            batch_size=params["batch"],
            epochs=params["epochs"],
            callbacks=[early_stopper(params["epochs"], mode=[0, 1])],
            verbose=0,
        )
        return history, model

    scan = talos.Scan(
        x=train_x,
        y=train_y,
        x_val=val_x,
        y_val=val_y,
        params=p,
        model=price_model,
        experiment_name=table,
        round_limit=10,
        seed=13,
        disable_progress_bar=True,
    )
    scan.data["table"] = table
    print(f"{table}: {len(scan.data)} rows, {scan.data['neurons-3'].isna().sum()} without a third layer")
    print(scan.data.sort_values("val_loss")[["val_loss", "loss-functions", "table"]].head(3).to_string(index=False))


if __name__ == "__main__":
    main()
