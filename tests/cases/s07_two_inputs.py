"""S07: two inputs, a dictionary that is edited after it was written, a loss function and an optimizer class in it."""

import keras
import numpy as np
import talos
from keras.losses import mean_absolute_percentage_error
from keras.optimizers import Adam

WITH_IMAGES = True
rng = np.random.default_rng(8)
table, image = rng.random((20, 13)), rng.random((20, 8, 8, 2))
target = table.sum(axis=1) + image.mean(axis=(1, 2, 3))

p = {
    "lr": [0.1, 0.01],
    "units": [4, 8, 16, 32],
    "layers": [1, 2, 3],
    "activation": ["relu", "elu"],
    "batch": [10, 20],
    "epochs": [1, 2, 5],
    "optimizer": ["adam", "sgd"],
    "loss": ["mse", "mae"],
}
if WITH_IMAGES:
    p["filters"] = [1, 2, 3]
    p["kernel"] = [2, 3]
p["lr"] = [0.1, 0.01, 0.001]
p["units"] = [3, 4, 5]
p["layers"] = [1]
p["activation"] = ["relu"]
p["batch"] = [5, 10, 20]
p["epochs"] = [1]
p["optimizer"] = [Adam]
p["loss"] = [mean_absolute_percentage_error]


def size_model(x_train, y_train, x_val, y_val, params):
    numbers = keras.Input(x_train[0].shape[1:])
    picture = keras.Input(x_train[1].shape[1:])
    left = keras.layers.Dense(params["units"], activation=params["activation"])(numbers)
    right = keras.layers.Conv2D(params["filters"], params["kernel"], activation=params["activation"])(picture)
    joined = keras.layers.concatenate([left, keras.layers.Flatten()(right)])
    model = keras.Model([numbers, picture], keras.layers.Dense(1)(joined))
    # Eagerly: so few steps are over before a graph would be compiled.
    model.compile(
        loss=params["loss"],
        optimizer=params["optimizer"](learning_rate=params["lr"]),
        metrics=[keras.metrics.mean_absolute_error],
        run_eagerly=True,
    )
    history = model.fit(
        x_train,
        y_train,
        validation_data=(x_val, y_val),
        epochs=params["epochs"],
        batch_size=params["batch"],
        callbacks=[keras.callbacks.EarlyStopping(patience=3)],
        verbose=0,
    )
    return history, model


scan = talos.Scan(
    x=[table[:15], image[:15]],
    y=target[:15],
    x_val=[table[15:], image[15:]],
    y_val=target[15:],
    params=p,
    model=size_model,
    experiment_name="two_inputs",
    multi_input=True,
    fraction_limit=0.1,
    seed=7,
    disable_progress_bar=True,
)
best = scan.data.nsmallest(3, "val_mean_absolute_error")
print(len(scan.data), "rows,", len(best), "of them best")
model = scan.best_model("val_mean_absolute_error", asc=True)
print("predicted", model.predict([table[15:], image[15:]], verbose=0).shape)
