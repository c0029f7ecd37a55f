"""S03 and S17: a matplotlib backend that needs a display is asked for at import; a window is shown at the end."""

import matplotlib

matplotlib.use("TkAgg")

import matplotlib.pyplot as plt
import numpy as np
import talos

x, y = np.zeros((4, 1)), np.zeros(4)


def input_model(x_train, y_train, x_val, y_val, params):
    plt.plot([1, 2], [params["a"], 0])
    plt.savefig("losses.png")
    plt.close()
    return {"loss": [1 / params["a"]]}, None


scan = talos.Scan(x, y, {"a": [1, 2, 3]}, input_model, "gui", x_val=x, y_val=y, seed=17, disable_progress_bar=True)
plt.plot(scan.data["a"], scan.data["loss"])
plt.show()
print(len(scan.data), "rows shown")
