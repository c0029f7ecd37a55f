"""Three Scans at the same time, each in a thread of its own, that come in any order."""

import threading
import time

import talos

found = {}


def input_model(x_train, y_train, x_val, y_val, params):
    time.sleep(0.1)
    return {"loss": [float(params["a"])]}, None


def sweep(name, values):
    scan = talos.Scan([1], [1], {"a": values}, input_model, name, x_val=[1], y_val=[1], multi_input=True)
    found[name] = scan.data["a"].tolist()


threads = [threading.Thread(target=sweep, args=(f"part-{n}", list(range(n, n + 4)))) for n in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(found.items()))
