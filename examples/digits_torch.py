"""Handwritten digits with a small Torch convolution, everything started from one function.

python examples/digits_torch.py
talos-orch launch examples/digits_torch.py --workers 4
"""

import talos
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# A net this small is quickest on one thread, and one thread always adds numbers up in the same order:
# two machines with different cores then agree to the last digit.
torch.set_num_threads(1)


class DigitNet(nn.Module):
    """8 x 8 grey pictures in, ten scores out."""

    def __init__(self, channels, kernel, dropout):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, kernel, padding="same"),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(channels * 16, 10),
        )

    def forward(self, x):
        return self.layers(x)


def input_model(x_train, y_train, x_val, y_val, params):
    """Train one network; a row's result follows from the seed that Talos gives its trial."""
    model = DigitNet(params["channels"], params["kernel"], params["dropout"]).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=params["learning_rate"])
    shuffle = torch.Generator().manual_seed(torch.initial_seed())
    data = TensorDataset(torch.tensor(x_train), torch.tensor(y_train))
    loader = DataLoader(data, batch_size=64, shuffle=True, generator=shuffle)
    x_val, y_val = torch.tensor(x_val, device=DEVICE), torch.tensor(y_val, device=DEVICE)

    history = {"loss": [], "val_loss": [], "val_accuracy": []}
    for _ in range(params["epochs"]):
        model.train()
        total = 0.0
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(pictures.to(DEVICE)), labels.to(DEVICE))
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
        history["loss"].append(total / len(data))
        history["val_loss"].append(cross_entropy(scores, y_val).item())
        history["val_accuracy"].append((scores.argmax(dim=1) == y_val).float().mean().item())
    return history, model


def main():
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype("float32").reshape(-1, 1, 8, 8)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.2, stratify=y, random_state=17)

    p = {
        "channels": [8, 16],
        "kernel": [3, 5],
        "dropout": (0.0, 0.5, 2),  # 0.0 and 0.25
        "learning_rate": [0.003, 0.01],
        "epochs": [6],
    }

    # Without x_val and y_val, a part of x is set aside for validation: the same part for every row.
    scan = talos.Scan(x, y, p, input_model, "digits_torch", val_split=0.25, seed=17, disable_progress_bar=True)

    columns = ["val_accuracy", "val_loss", "channels", "kernel", "dropout", "learning_rate"]
    print(f"{len(scan.data)} rows, the best five:")
    print(scan.data.sort_values("val_loss")[columns].head(5).to_string(index=False))

    best = scan.best_model(metric="val_loss", asc=True).to(DEVICE).eval()
    with torch.no_grad():
        predicted = best(torch.tensor(x_test, device=DEVICE)).argmax(dim=1).cpu().numpy()
    print(f"held-out accuracy of the best row: {(predicted == y_test).mean():.3f}")


main()
