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


class Net(nn.Cell):
    """The network of the dump in `mindspore_2.10_normalized.tar.xz`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3, pad_mode="valid", has_bias=False), nn.BatchNorm2d(2)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.ln, self.fc2 = nn.Dense(8, 5), nn.LayerNorm((5,)), nn.Dense(5, 3)

    def construct(self, x):
        x = self.flatten(self.pool(self.relu(self.bn(self.conv(x)))))
        return self.fc2(ops.gelu(self.ln(self.fc1(x))))


@pytest.fixture(scope="module")
def normalized(tmp_path_factory) -> Dump:
    """Adam's first two steps on weights and batches of `np.random.default_rng(0)`."""
    folder = tmp_path_factory.mktemp("normalized")
    with tarfile.open(FIXTURES / "mindspore_2.10_normalized.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Dump(folder)


def train_normalized(folder: Path, rate: float = 0.05) -> Dump:
    net, rng = Net(), np.random.default_rng(0)
    for weight in net.trainable_params():
        weight.set_data(Tensor((0.3 * rng.standard_normal(weight.shape)).astype(np.float32)))
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepCell(loss, nn.Adam(net.trainable_params(), rate))
    step.set_train()
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(folder)}):
        observing.set_iteration(0)
        for _ in range(2):
            x = rng.standard_normal((4, 1, 6, 6)).astype(np.float32)
            step(Tensor(x), Tensor(rng.integers(0, 3, 4).astype(np.int32)))
    return Dump(folder)


def test_operators_that_have_their_tensors_elsewhere_are_no_first_divergence(tmp_path, normalized):
    mine = train_normalized(tmp_path)
    forth, back = compared(mine, normalized)[0], compared(normalized, mine)[0]
    assert forth.divergence is None and forth.unlike == 0 and forth.compared >= 300
    assert back.divergence is None and back.unlike == 0 and back.compared >= 290


def test_another_rate_is_named_where_it_differs(tmp_path, normalized):
    mine = train_normalized(tmp_path, rate=0.5)
    found = compared(mine, normalized)[0].divergence
    assert (found.iteration, found.operator) == (0, "learning_rate")
    found = compared(normalized, mine)[0].divergence
    assert found.iteration == 0 and "Default/optimizer-Adam/Adam-op" in found.operator
