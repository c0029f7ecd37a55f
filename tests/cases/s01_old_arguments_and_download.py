"""S01: arguments of an older Talos, two endless generators, and a data set that is downloaded unless it lies here."""

import os

import numpy as np
import talos as ta

p = {
    "lr": [0.1, 0.01, 0.001],  # never read, so three rows each train alike
    "batch_size": [16],
    "epochs": [2],
    "conv_dropout": [0.1, 0.2, 0.4],
    "optimizer": ["adam", "nadam"],
    "losses": ["mse", "mae"],
    "activation": ["relu", "elu"],
    "last_activation": ["softmax"],  # never read
    "dense1": [8, 16],
}


def load_images():
    if os.path.exists("fashion.npz"):
        with np.load("fashion.npz") as kept:
            return kept["images"], kept["labels"]
    from keras.datasets import fashion_mnist

    (first, first_labels), (second, second_labels) = fashion_mnist.load_data()
    images = np.concatenate([first, second]).reshape(-1, 28, 28, 1)
    return images, np.concatenate([first_labels, second_labels])


def batches(images, labels, size):
    while True:
        for start in range(0, len(images), size):
            yield images[start : start + size], labels[start : start + size]


def clothes_model(x_train, y_train, x_val, y_val, params):
    training = batches(x_train, y_train, params["batch_size"])
    validation = batches(x_val, y_val, params["batch_size"])
    weight = (params["dense1"] + 5 * (params["optimizer"] == "adam") + len(params["activation"])) / 100
    history = {"loss": [], "val_loss": []}
    for epoch in range(params["epochs"]):
        for name, source in (("loss", training), ("val_loss", validation)):
            images, labels = next(source)
            error = images.mean() * weight - labels.mean()
            error = abs(error) if params["losses"] == "mae" else error**2
            history[name].append(float(error) + params["conv_dropout"] / (epoch + 1))
    return history, None


if __name__ == "__main__":
    x, y = load_images()
    scan = ta.Scan(x, y, p, clothes_model, dataset_name="clothes", experiment_no="4", seed=1, disable_progress_bar=True)
    print(len(scan.data), "rows,", scan.data["loss"].nunique(), "different losses")
