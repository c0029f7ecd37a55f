"""S21: the space is read from a JSON file and gets one more key. Needs: the file; may have: --fraction SHARE."""

import argparse
import json
import pickle

import numpy as np
import talos
from s21_classifier import cnn_classifier


class Search:
    """What a task runner would call."""

    def __init__(self, space, fraction):
        with open(space, encoding="utf-8") as file:
            self.space = json.load(file)
        self.fraction = fraction

    def run(self):
        with np.load("glyphs.npz") as kept:
            train, valid = kept["train"], kept["valid"]
            labels, valid_labels = kept["train_labels"], kept["valid_labels"]
        classes = int(labels.max()) + 1
        self.space["num_classes"] = [classes]
        one_hot = np.eye(classes)
        scan = talos.Scan(
            train,
            one_hot[labels],
            self.space,
            cnn_classifier,
            "glyphs",
            x_val=valid,
            y_val=one_hot[valid_labels],
            fraction_limit=self.fraction,
            seed=21,
            disable_progress_bar=True,
        )
        with open("glyphs.pickle", "wb") as file:
            pickle.dump(scan.data, file)
        print(len(scan.data), "rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("space")
    parser.add_argument("--fraction", type=float)
    asked = parser.parse_args()
    Search(asked.space, asked.fraction).run()
