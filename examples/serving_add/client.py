"""Calls the additions. usage: client.py [ADDRESS]"""

import sys

import numpy as np

from mycelia_serving.client import Client


def run(address: str = "127.0.0.1:5500") -> None:
    x = np.array([[1, 1], [1, 1]], np.float32)
    client = Client(address, "add", "add_common")
    print(client.infer({"x1": x, "x2": x * 2}))

    client = Client(address, "add", "add_cast")  # integers are cast by a function on the server
    print(client.infer([{"x1": np.arange(4).reshape(2, 2), "x2": np.eye(2)}]))

    client = Client(address, "add_batch", "add_rows")  # three instances, computed two at a time
    rows = np.arange(9, dtype=np.float32).reshape(3, 3)
    future = client.infer_async([{"x1": row, "x2": row} for row in rows])
    for result in future.result():
        print(result["y"])


if __name__ == "__main__":
    run(*sys.argv[1:])
