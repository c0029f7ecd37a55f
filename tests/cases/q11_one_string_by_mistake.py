"""Q11: one string where two were meant; Keras knows no optimizer of that name."""

import keras
import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer=params["optimizer"], loss="mse", run_eagerly=True)
    return model.fit(x_train, y_train, epochs=1, verbose=0), model


p = {"optimizer": ["Adam, Nadam"]}
scan = talos.Scan(x, y, p, input_model, "q11", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
print(len(scan.data), "rows")
