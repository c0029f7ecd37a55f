"""S19: the table lies on a Windows drive."""

import pandas as pd
import talos

TABLE = "C:\\Users\\someone\\games.csv"


def input_model(x_train, y_train, x_val, y_val, params):
    return {"loss": [params["a"]]}, None


def main():
    table = pd.read_csv(TABLE).to_numpy()
    x, y = table[:, :-1], table[:, -1]
    talos.Scan(x, y, {"a": [1, 2]}, input_model, "windows", x_val=x, y_val=y, seed=19, disable_progress_bar=True)


if __name__ == "__main__":
    main()
