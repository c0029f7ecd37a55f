"""Iris with Torch: a module, a plain training loop, and ``Scan`` under the usual guard.

python examples/iris_torch.py
talos-orch launch examples/iris_torch.py --workers 2
"""

import talos
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

p = {
    "hidden": [8, 16, 32],
    "activation": [nn.ReLU, nn.Tanh],
    "learning_rate": [0.01, 0.03],
    "batch_size": [20],
    "epochs": [15],
}


class IrisNet(nn.Module):
    """Four measurements in, one score for each of the three species out."""

    def __init__(self, hidden, activation):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), activation(), nn.Linear(hidden, 3))

    def forward(self, x):
        return self.layers(x)


def input_model(x_train, y_train, x_val, y_val, params):
    """Train one network; the history is a plain dictionary with one value for each epoch."""
    model = IrisNet(params["hidden"], params["activation"])
    optimizer = torch.optim.Adam(model.parameters(), lr=params["learning_rate"])
    loss_of = nn.CrossEntropyLoss()

    # Talos seeds Torch before each trial. The loader shuffles from the same seed, so that a row always
    # gives the same result, wherever and in whichever order it is run.
    shuffle = torch.Generator().manual_seed(torch.initial_seed())
    data = TensorDataset(torch.tensor(x_train), torch.tensor(y_train))
    loader = DataLoader(data, batch_size=params["batch_size"], shuffle=True, generator=shuffle)
    x_val, y_val = torch.tensor(x_val), torch.tensor(y_val)

    history = {"loss": [], "val_loss": [], "val_accuracy": []}
    for _ in range(params["epochs"]):
        total = 0.0
        for features, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(features), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        with torch.no_grad():
            scores = model(x_val)
        history["loss"].append(total / len(data))
        history["val_loss"].append(loss_of(scores, y_val).item())
        history["val_accuracy"].append((scores.argmax(dim=1) == y_val).float().mean().item())
    return history, model


if __name__ == "__main__":
    x, y = load_iris(return_X_y=True)
    x = x.astype("float32")

    # The test set is put away first; the scan sees only the other two parts.
    x, x_test, y, y_test = train_test_split(x, y, test_size=30, stratify=y, random_state=17)
    x, x_val, y, y_val = train_test_split(x, y, test_size=30, stratify=y, random_state=17)

    scan = talos.Scan(x, y, p, input_model, "iris_torch", x_val=x_val, y_val=y_val, seed=17, disable_progress_bar=True)

    columns = ["val_loss", "val_accuracy", "hidden", "learning_rate"]
    print(f"{len(scan.data)} rows, the best five:")
    print(scan.data.sort_values("val_loss")[columns].head(5).to_string(index=False))

    best = scan.best_model(metric="val_loss", asc=True)
    with torch.no_grad():
        predicted = best(torch.tensor(x_test)).argmax(dim=1).numpy()
    print(f"held-out accuracy of the best row: {(predicted == y_test).mean():.3f}")
