"""Iris with Keras: a dozen small networks, the whole script at top level.

python examples/iris_keras.py                            # one after another, with Talos
talos-orch launch examples/iris_keras.py --workers 2     # the same rows, spread over two containers
"""

import keras
import talos
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

# 150 flowers. The test set is put away first and is not looked at again until the scan is over.
x, y = load_iris(return_X_y=True)
x, x_test, y, y_test = train_test_split(x, y, test_size=30, stratify=y, random_state=17)
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=30, stratify=y, random_state=17)

# The scaler, too, learns from the training rows alone.
scaler = StandardScaler().fit(x_train)
x_train, x_val, x_test = (scaler.transform(part) for part in (x_train, x_val, x_test))

p = {
    "activation": ["relu", "tanh"],
    "neurons": (8, 32, 3),  # a range, the end left out: 8, 16, 24
    "learning_rate": [0.02, 0.05],
    "dropout": [0.1],
    "optimizer": [keras.optimizers.Adam],  # a class: each trial makes its own optimizer of it
    "batch_size": [8],
    "epochs": [6],
}


def input_model(x_train, y_train, x_val, y_val, params):
    """Train one network as ``params`` says; Talos records the last value of every history column."""
    model = keras.Sequential(
        [
            keras.Input(shape=(x_train.shape[1],)),
            keras.layers.Dense(params["neurons"], activation=params["activation"]),
            keras.layers.Dropout(params["dropout"]),
            keras.layers.Dense(3, activation="softmax"),
        ],
    )
    model.compile(
        optimizer=params["optimizer"](learning_rate=params["learning_rate"]),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    history = model.fit(
        x_train,
        y_train,
        validation_data=(x_val, y_val),
        batch_size=params["batch_size"],
        epochs=params["epochs"],
        verbose=0,
    )
    return history, model


scan = talos.Scan(
    x_train,
    y_train,
    p,
    input_model,
    "iris_keras",
    x_val=x_val,
    y_val=y_val,
    seed=17,
    disable_progress_bar=True,
)

columns = ["val_loss", "val_accuracy", "activation", "neurons", "learning_rate"]
print(f"{len(scan.data)} rows, the best five:")
print(scan.data.sort_values("val_loss")[columns].head(5).to_string(index=False))

best = scan.best_model(metric="val_loss", asc=True)
predicted = best.predict(x_test, verbose=0).argmax(axis=1)
print(f"held-out accuracy of the best row: {(predicted == y_test).mean():.3f}")
