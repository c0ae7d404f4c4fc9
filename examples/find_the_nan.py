"""The loss is NaN: which operator made it, and on which line?

A network whose normalization divides by a spread that may be zero trains well until a batch with a constant
row comes. All that shows then is a loss of nan. This program trains it with a dump of the last steps, then
asks the dump, as `mycelia-debug FOLDER` does.

usage: find_the_nan.py [--output DIRECTORY]
"""

import argparse
import sys
import tempfile

import numpy as np

import mycelia as ms
from mycelia import Tensor, debug, nn, ops


class Standardize(nn.Cell):
    """Each row with mean 0 and spread 1."""

    def construct(self, x):
        centered = x - x.mean(-1, keep_dims=True)
        spread = ops.sqrt((centered * centered).mean(-1, keep_dims=True))
        return centered / spread  # 0 / 0 for a row of equal numbers


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.standardize = Standardize()
        self.fc1 = nn.Dense(8, 16)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(16, 1)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(self.standardize(x))))


def batches(count, bad):
    """Random rows; in batch `bad` the third row is constant."""
    rng = np.random.default_rng(0)
    for number in range(count):
        x = rng.standard_normal((4, 8)).astype(np.float32)
        if number == bad:
            x[2] = 1.0
        yield Tensor(x), Tensor(x.sum(1, keepdims=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="", help="where the dump is written; default: a temporary folder")
    folder = parser.parse_args().output or tempfile.mkdtemp()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)
    net = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01))
    step.set_train()
    with debug.dump({"path": folder, "net_name": "Net", "last_steps": 2}):
        for number, batch in enumerate(batches(8, bad=5)):
            loss = float(step(*batch))
            print(f"step {number}: loss {loss:.4f}")
            if np.isnan(loss):
                break
    first = debug.DumpAnalyzer(folder).trace_nonfinite()[0]
    print(f"\nborn in {first['op_full_name']}, iteration {first['iteration']}:")
    print(f"{first['count']} of {first['size']} elements are {first['kind']}")
    print("\n".join(first["source"]))
    print(f"\nthe same from a shell: mycelia-debug {folder}")
    found = first["op_type"] == "RealDiv" and "centered / spread" in first["source"][0]
    return 0 if found and first["iteration"] == 5 else 1


if __name__ == "__main__":
    sys.exit(main())
