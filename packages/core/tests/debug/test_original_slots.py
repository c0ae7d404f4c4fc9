"""A training of ours compared with a dump of MindSpore's, some of whose operators have their tensors at other
slots, and whose optimizer updates weights in another order.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.reading.folders import Dump
from mycelia.engine import observing

sys.path.insert(0, str(Path(__file__).parent))
from test_original_comparison import FIXTURES, compared

OPTIMIZERS = {"normalized": (nn.Adam, 0.05, 2), "sgd": (nn.SGD, 0.1, 1)}  # dump -> with its rate and steps


class Net(nn.Cell):
    """The network of the dumps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3, pad_mode="valid", has_bias=False), nn.BatchNorm2d(2)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.ln, self.fc2 = nn.Dense(8, 5), nn.LayerNorm((5,)), nn.Dense(5, 3)

    def construct(self, x):
        x = self.flatten(self.pool(self.relu(self.bn(self.conv(x)))))
        return self.fc2(ops.gelu(self.ln(self.fc1(x))))


def mindspore(folder: Path, name: str) -> Dump:
    """An optimizer's first steps on weights and batches of `np.random.default_rng(0)`."""
    with tarfile.open(FIXTURES / f"mindspore_2.10_{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Dump(folder)


def train(folder: Path, name: str, faster: float = 1.0) -> Dump:
    optimizer, rate, steps = OPTIMIZERS[name]
    net, rng = Net(), np.random.default_rng(0)
    for weight in net.trainable_params():
        weight.set_data(Tensor((0.3 * rng.standard_normal(weight.shape)).astype(np.float32)))
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepCell(loss, optimizer(net.trainable_params(), faster * rate))
    step.set_train()
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(folder)}):
        observing.set_iteration(0)
        for _ in range(steps):
            x = rng.standard_normal((4, 1, 6, 6)).astype(np.float32)
            step(Tensor(x), Tensor(rng.integers(0, 3, 4).astype(np.int32)))
    return Dump(folder)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_operators_that_have_their_tensors_elsewhere_are_no_first_divergence(tmp_path, name):
    theirs, mine = mindspore(tmp_path / "theirs", name), train(tmp_path / "mine", name)
    steps = OPTIMIZERS[name][2]
    for left, right in ((mine, theirs), (theirs, mine)):
        comparison, _ = compared(left, right)
        assert comparison.divergence is None and comparison.unlike == 0
        assert comparison.compared >= 80 * steps


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_another_rate_is_named_where_it_differs(tmp_path, name):
    theirs, mine = mindspore(tmp_path / "theirs", name), train(tmp_path / "mine", name, faster=10.0)
    found = compared(mine, theirs)[0].divergence
    assert (found.iteration, found.operator) == (0, "learning_rate")
    found = compared(theirs, mine)[0].divergence
    assert found.iteration == 0 and f"Default/optimizer-{OPTIMIZERS[name][0].__name__}/" in found.operator
