"""A small network that is exported, converted and run."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn


class LeNet5(nn.Cell):
    """LeCun et al. 1998: x [N, 1, 32, 32] -> [N, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


def _write(net, path, *shapes) -> str:
    inputs = [ms.Tensor(shape=list(shape), dtype=ms.float32) for shape in shapes]
    ms.export(net.set_train(False), *inputs, file_name=str(path), file_format="MINDIR")
    return f"{str(path).removesuffix('.mindir')}.mindir"


@pytest.fixture(scope="session")
def write_mindir():
    """Export a net with inputs of these shapes (None: open), ``(net, path, *shapes)``; the file's path."""
    return _write


@pytest.fixture(scope="session")
def lenet(tmp_path_factory):
    """(path of a MindIR with an open batch, images, what core answers)"""
    ms.set_seed(3)
    net = LeNet5()
    path = _write(net, tmp_path_factory.mktemp("lenet") / "lenet", (None, 1, 32, 32))
    images = np.random.default_rng(5).normal(size=(6, 1, 32, 32)).astype(np.float32)
    return path, images, net(ms.Tensor(images)).asnumpy()
