"""S09: dummy data, images read inside the model, two GPUs written into the file, and a key that is not in the dictionary."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"

import glob

import numpy as np
import talos

IMAGES = "../data/image"
CHECKPOINTS = "checkpoints"
x = y = np.array([0, 1])
p = {"preprocess": ["scale", "centre"], "deep_layers": [2, 3, 4], "freeze_layers": [10, 20, 30]}


def images():
    paths = sorted(glob.glob(os.path.join(IMAGES, "*", "*.pgm")))
    if not paths:
        raise FileNotFoundError(f"no images in {IMAGES}")
    for path in paths:
        with open(path, encoding="ascii") as stream:
            yield np.array(stream.read().split()[4:], dtype=int).reshape(3, 3)


def transfer_model(x_train, y_train, x_val, y_val, params):
    brightness = [float(each.mean()) for each in images()]
    os.makedirs(CHECKPOINTS, exist_ok=True)
    with open(os.path.join(CHECKPOINTS, "best.txt"), "w", encoding="utf-8") as checkpoint:
        checkpoint.write(str(params["deep_layers"]))
    frozen = params["freeze"]
    return {"loss": [sum(brightness) / frozen]}, None


if __name__ == "__main__":
    scan = talos.Scan(
        x, y, p, transfer_model, "transfer", x_val=x, y_val=y, val_split=0.1, seed=9, disable_progress_bar=True
    )
    print(len(scan.data), "rows")
