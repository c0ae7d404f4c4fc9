"""Deeper networks trained by several ranks take the steps of one process that has the whole batch."""

from __future__ import annotations

import functools
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.engine.compile import executable
from mycelia.testing.networks import Block

sys.path.insert(0, str(Path(__file__).parent))
from connected_ranks import over_sockets

BATCH, STEPS = 12, 3
RNG = np.random.default_rng(5)
IMAGES = RNG.normal(size=(BATCH, 3, 16, 16)).astype(np.float32)
TOKENS = RNG.integers(0, 50, (BATCH, 8)).astype(np.int32)
CLASSES = RNG.integers(0, 5, BATCH).astype(np.int32)
LOSS = nn.CrossEntropyLoss()
_seeding = threading.Lock()  # random numbers are the process's


class Residual(nn.Cell):
    """ResNet-18's block."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.convs = nn.SequentialCell(
            nn.Conv2d(inputs, outputs, 3, stride), nn.SyncBatchNorm(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3), nn.SyncBatchNorm(outputs),
        )  # fmt: skip
        self.short = nn.SequentialCell()
        if stride > 1:
            self.short = nn.SequentialCell(nn.Conv2d(inputs, outputs, 1, stride), nn.SyncBatchNorm(outputs))

    def construct(self, x):
        return ms.ops.relu(self.convs(x) + self.short(x))


class ResNet18(nn.Cell):
    """Its eight blocks in four stages, with few channels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.SyncBatchNorm(4), nn.ReLU())
        sizes = [(4, 4, 1), (4, 4, 1), (4, 6, 2), (6, 6, 1), (6, 8, 2), (8, 8, 1), (8, 8, 2), (8, 8, 1)]
        self.blocks = nn.SequentialCell(*(Residual(*size) for size in sizes))
        self.head = nn.Dense(8, 5)

    def construct(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Transformer(nn.Cell):
    """Two layers over embedded tokens."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.blocks = nn.SequentialCell(Block(16, 2, 8), Block(16, 2, 8))
        self.head = nn.Dense(16, 5)

    def construct(self, ids):
        return self.head(self.blocks(self.table(ids)).mean(1))


CASES = {"ResNet-18": (ResNet18, IMAGES), "transformer": (Transformer, TOKENS)}


def train(name, rows):
    """Losses of the steps, and the weights after them."""
    make, data = CASES[name]
    with _seeding:
        ms.set_seed(2)
        network = make()
    optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, LOSS), optimizer).set_train()
    x, y = ms.Tensor(data[rows]), ms.Tensor(CLASSES[rows])
    losses = [step(x, y).item() for _ in range(STEPS)]
    return losses, {p.name: p.asnumpy().copy() for p in network.get_parameters()}


@functools.cache
def alone(name, mode):
    return train(name, slice(None))


@pytest.fixture
def together():
    yield lambda: ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.reset_auto_parallel_context()


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_ranks_take_the_steps_of_one_process(name, ranks, mode, together, monkeypatch):
    """Losses agree to 1e-6, as docs/parallel.md says, and all ranks have the same bits.

    Weights are of the order of 1, and only sums are made in another order: a few steps of float32 (1e-7).
    """
    losses, weights = alone(name, ms.get_context("mode"))
    together()
    compiled = set()
    note = lambda program: compiled.update(node.op.name for node in program.nodes)
    monkeypatch.setattr(executable, "built_listeners", [*executable.built_listeners, note])
    found = over_sockets(ranks, lambda rank: train(name, slice(rank, None, ranks)))
    assert ("start_sums" in compiled) is (ms.get_context("mode") == ms.GRAPH_MODE)
    np.testing.assert_allclose(np.mean([own for own, _ in found], 0), losses, rtol=1e-6)
    for key, expected in weights.items():
        first, *others = (own[key] for _, own in found)
        assert all(np.array_equal(first, other) for other in others), key
        np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-6)
