"""A training on the Ascend simulator whose compiler has a wrong rule: accuracy is what suffers, nothing else.

Points of a plane are told apart by the product of their coordinates, which no layer alone can do. The
fusion `ub_matmul_bias_activation` loses the activation of what it joins: the training ends normally, and no
log says anything. ``--healthy`` trains without the fault.

usage: train.py [--healthy] [--steps N]        writes result.json, {"accuracy": ...}
"""

import argparse
import contextlib
import json

import numpy as np

import mycelia as ms
from mycelia import Tensor, nn
from mycelia_backend_ascend_sim import faults


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(2, 16)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(16, 2)

    def construct(self, x):
        hidden = self.relu(self.fc1(x))
        return self.fc2(hidden)


def points(count, seed):
    """`count` points and their classes."""
    x = np.random.default_rng(seed).uniform(-1, 1, (count, 2)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--healthy", action="store_true", help="without the planted fault")
    parser.add_argument("--steps", type=int, default=80)
    options = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    ms.set_seed(1)
    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.03))
    step.set_train()
    wrong = faults.inject(faults.WrongFusion(fusion="ub_matmul_bias_activation", part="relu"))
    with contextlib.nullcontext() if options.healthy else wrong:
        for number in range(options.steps):
            value = step(*map(Tensor, points(64, seed=number)))
        x, labels = points(256, seed=10_000)
        accuracy = float((net(Tensor(x)).asnumpy().argmax(1) == labels).mean())
    print(f"loss {float(value):.4f}, accuracy {accuracy:.3f}")
    with open("result.json", "w", encoding="utf-8") as file:
        json.dump({"accuracy": accuracy}, file)


if __name__ == "__main__":
    main()
