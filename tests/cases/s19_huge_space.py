"""S19: 2,250,000,000 combinations, and a database file that every trial writes into."""

import sqlite3

import numpy as np
import talos

p = {
    "first_neuron": (50, 3000, 50),
    "last_neuron": (50, 3000, 50),
    "hidden_layers": (0, 10, 10),
    "dropout": (0.01, 0.99, 100),
    "batch_size": (300, 20000, 100),
    "shapes": ["brick", "triangle", "funnel"],
    "kernel_initializer": ["normal", "uniform", "he_normal"],
}


def read(path):
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE IF NOT EXISTS games (a REAL, b REAL, won REAL)")
        if not base.execute("SELECT count(*) FROM games").fetchone()[0]:
            base.executemany("INSERT INTO games VALUES (?, ?, ?)", [(n, n / 2, n % 2) for n in range(8)])
        return np.array(base.execute("SELECT a, b, won FROM games").fetchall())


def main():
    games = read("games.sqlite")

    def games_model(x_train, y_train, x_val, y_val, params):
        loss = params["first_neuron"] / params["last_neuron"] + params["dropout"]
        with sqlite3.connect("games.sqlite", timeout=0.1) as base:
            base.execute("PRAGMA synchronous = OFF")
            base.execute("UPDATE games SET won = ? WHERE a = 0", (loss,))
        return {"loss": [loss]}, None

    x, y = games[:, :2], games[:, 2]
    scan = talos.Scan(
        x, y, p, games_model, "games", x_val=x, y_val=y, round_limit=700, seed=19, disable_progress_bar=True
    )
    print(len(scan.data), "rows of", scan.data["shapes"].nunique(), "shapes")


if __name__ == "__main__":
    main()
