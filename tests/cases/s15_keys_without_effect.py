"""S15: 中文注释, no guard, a very wide table, and keys that the model never reads."""

import numpy as np
import pandas as pd
import talos


class Adam:
    """优化器"""


class Nadam:
    """另一个优化器"""


def relu(value):
    return max(value, 0.0)


def 正切(value):  # noqa: N802, PLC2401
    return value / (1 + abs(value))


def mse(left, right):
    return (left - right) ** 2


# 读取数据, 最后一列是标签
table = pd.read_csv("polar.csv", header=None).to_numpy()
x = table[:, :-1].reshape(len(table), 128, 128, 1)
y = np.eye(2)[table[:, -1].astype(int)]

p = {
    "activation": [relu, 正切],
    "dropout": [0.1, 0.2, 0.3],
    "epochs": [1, 2],
    "batch_size": [4, 8],
    "losses": [mse],
    # 以下的键没有用
    "lr": [0.1, 0.01, 0.001],
    "optimizer": [Adam, Nadam],
    "neurons": [8, 16, 32],
    "shape": ["砖", "漏斗"],
}


def polar_model(x_train, y_train, x_val, y_val, params):
    act = params["activation"](float(x_train.mean()) * params["batch_size"])
    loss = params["losses"](act, params["dropout"])
    return {"loss": [loss + epoch for epoch in range(params["epochs"])], "width": [x_train[0].size]}, None


scan = talos.Scan(x, y, p, polar_model, experiment_name="极地", x_val=x, y_val=y, seed=15, disable_progress_bar=True)
print(len(scan.data), "行,", scan.data["loss"].nunique(), "个不同的结果")
