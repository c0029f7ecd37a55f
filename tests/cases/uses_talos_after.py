"""What Talos scripts do with a result: analyse, predict, evaluate, deploy, restore, and read Talos's own files."""

import os

import keras
import numpy as np
import talos
from talos.experiment.runner import RunResult

rng = np.random.default_rng(5)
x = rng.normal(size=(60, 4)).astype("float32")
y = (x.sum(axis=1) > 0).astype("float32")


def net(x_train, y_train, x_val, y_val, params):
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(params["units"], activation=params["activation"]),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(params["lr"]), "binary_crossentropy", metrics=["acc"])
    out = model.fit(x_train, y_train, validation_data=(x_val, y_val), batch_size=20, epochs=2, verbose=0)
    return out, model


p = {"units": [2, 4], "activation": ["relu", "tanh"], "lr": [0.01, 0.1]}
scan = talos.Scan(x, y, p, net, "after", seed=3, disable_progress_bar=True)

print("rows", talos.Analyze(scan).rounds(), talos.Reporting(scan).high("val_acc"))
print("table", list(talos.Analyze(scan).table("val_acc", sort_by="val_acc").columns)[:3])
best = talos.Predict(scan).predict(x, metric="val_loss", asc=True)
print("predicted", best.shape, round(float(best.sum()), 4))
print("evaluated", np.round(talos.Evaluate(scan).evaluate(x, y, "binary", "val_loss", folds=3, asc=True), 4))
print("entropy", list(scan.learning_entropy.columns), scan.learning_entropy.shape)

run = max(os.listdir("after"))
print(
    "files",
    sorted(os.listdir(os.path.join("after", run)))[:2],
    os.path.exists(os.path.join("after", run, "results.csv")),
)
loaded = RunResult.load(os.path.join("after", run))
print("loaded", loaded.data.shape, list(loaded.data.columns) == list(scan.data.columns), loaded.status)
again = loaded.best_model("val_loss", True).predict(x, verbose=0)
print("same prediction", bool(np.array_equal(again, best)))

talos.Deploy(scan, "deployed", "val_loss", asc=True)
restored = talos.Restore("deployed.zip")
print("restored", bool(np.allclose(restored.model.predict(x, verbose=0), best)))
