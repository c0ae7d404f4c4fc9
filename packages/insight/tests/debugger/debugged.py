"""A training as a user starts it: LeNet on random images, in which something goes wrong in step `--bad`, and
whose images are others in step `--apart`; with `--evaluate` each step of training is followed by one of
inference."""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops

parser = argparse.ArgumentParser()
parser.add_argument("--eager", action="store_true")
parser.add_argument("--bad", type=int, default=0)
parser.add_argument("--apart", type=int, default=0)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--evaluate", action="store_true")
given = parser.parse_args()


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x, scale):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        x = ops.flatten(x)
        x = ops.relu(self.fc1(x)) * ops.log(scale)  # the scale is 0 or less when something is wrong
        return self.fc3(ops.relu(self.fc2(x)))


class Loss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.loss = net, nn.CrossEntropyLoss()

    def construct(self, x, scale, y):
        return self.loss(self.net(x, scale), y)


ms.set_seed(1)
ms.set_context(mode=ms.PYNATIVE_MODE if given.eager else ms.GRAPH_MODE)
net = LeNet()
loss = Loss(net)
step = nn.TrainOneStepCell(loss, nn.Momentum(loss.trainable_params(), 0.01, 0.9))
rng = np.random.default_rng(0)
for number in range(1, given.steps + 1):
    images = ms.Tensor(rng.standard_normal((4, 1, 32, 32)).astype(np.float32))
    images = images * 2 if number == given.apart else images
    labels = ms.Tensor(rng.integers(0, 10, 4).astype(np.int32))
    scale = ms.Tensor(np.float32(-1.0 if number == given.bad else 2.0))
    print(f"step {number} loss {float(step(images, scale, labels)):.6f}", flush=True)
    if given.evaluate:
        net(images, scale)
print("trained", flush=True)
