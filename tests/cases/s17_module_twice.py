"""S17: a Torch module with a history of its own, returned with its parameters; the folder is changed before Scan."""

import os

import talos
import torch
from sklearn.datasets import load_breast_cancer
from talos.utils.torch_history import TorchHistory
from torch import nn

x, y = load_breast_cancer(return_X_y=True)
x, y = (x[:100] / x.max(axis=0)).astype("float32"), y[:100].astype("float32")

p = {
    "first": [4, 8],
    "second": [2, 4],
    "dropout": [0.1, 0.3],
    "optimizer_name": ["Adam", "SGD"],
    "loss_name": ["binary_cross_entropy"],
    "learning_rate": [0.01, 0.1],
    "batch_size": [20, 50, 5],  # meant as a range
    "epochs": [2],
}


def cancer_model(x_train, y_train, x_val, y_val, params):
    class Net(nn.Module, TorchHistory):
        def __init__(self):
            super().__init__()
            self.stack = nn.Sequential(
                nn.Linear(x_train.shape[1], params["first"]),
                nn.ReLU(),
                nn.Dropout(params["dropout"]),
                nn.Linear(params["first"], params["second"]),
                nn.ReLU(),
                nn.Linear(params["second"], 1),
                nn.Sigmoid(),
            )

        def forward(self, values):
            return self.stack(values).squeeze(-1)

    net = Net()
    net.init_history()
    rate = params["learning_rate"]
    optimizer = getattr(torch.optim, params["optimizer_name"])(net.parameters(), lr=rate)
    measure = getattr(nn.functional, params["loss_name"])
    values, labels = torch.from_numpy(x_train), torch.from_numpy(y_train)
    for _ in range(params["epochs"]):
        net.train()
        for start in range(0, len(values), params["batch_size"]):
            part = slice(start, start + params["batch_size"])
            optimizer.zero_grad()
            loss = measure(net(values[part]), labels[part])
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            unseen = measure(net(torch.from_numpy(x_val)), torch.from_numpy(y_val))
        net.append_loss(loss.item())
        net.append_val_loss(unseen.item())
    return net, net.parameters()


os.chdir("/tmp")
scan = talos.Scan(
    x=x, y=y, params=p, model=cancer_model, experiment_name="cancer", round_limit=10, seed=17, disable_progress_bar=True
)
print(len(scan.data), "rows, the module is", type(scan.best_model("val_loss", asc=True)).__name__)
