"""Networks of images divided among ranks, and steps that decide in the graph whether they are taken."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.compile import divided
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import CLASSES, ROWS, Mlp, X, Y, graphs, seeding, train, whole  # noqa: F401  (a fixture)

IMAGES = np.random.default_rng(5).normal(size=(ROWS, 4, 8, 8)).astype(np.float32)


class Pictures(nn.Cell):
    """Convolutions with groups, batch normalization, both kinds of pools."""

    def __init__(self, first=None, second=None, norm=None):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.conv2 = nn.Conv2d(8, 8, 3, pad_mode="pad", padding=1, group=2, has_bias=True)
        self.conv3 = nn.Conv2d(8, 4, 1, has_bias=True)
        self.norm1, self.norm2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.relu, self.pool, self.mean = nn.ReLU(), nn.MaxPool2d(2, 2), nn.AvgPool2d(2, 2)
        self.head = nn.Dense(4, CLASSES)
        if first:
            self.conv1.conv2d.shard(first)
        if second:
            self.conv3.conv2d.shard(second)
        if norm:
            self.norm1.bn_train.shard(norm)

    def construct(self, x):
        x = self.pool(self.relu(self.norm1(self.conv1(x))))
        x = self.mean(self.relu(self.norm2(self.conv2(x))))
        return self.head(ops.adaptive_avg_pool2d(self.conv3(x), 1).reshape(x.shape[0], -1))


CASES = {
    "batch": (2, ((2, 1, 1, 1), (1, 1, 1, 1)), None, None),
    "batch of three": (4, ((4, 1, 1, 1), (1, 1, 1, 1)), None, None),
    "results": (2, ((1, 1, 1, 1), (2, 1, 1, 1)), None, None),
    "channels": (2, None, ((1, 2, 1, 1), (1, 2, 1, 1)), None),
    "batch and results": (4, ((2, 1, 1, 1), (2, 1, 1, 1)), None, None),
    "all": (4, ((2, 1, 1, 1), (2, 1, 1, 1)), ((2, 2, 1, 1), (1, 2, 1, 1)), ((2, 2, 1, 1), *[(2,)] * 4)),
    "normalization with places": (2, None, None, ((1, 1, 2, 1), *[(1,)] * 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_images_train_as_on_one_process(name):
    ranks, *strategies = CASES[name]
    expected, weights, _ = train(Pictures, IMAGES)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for losses, own, _ in threads.run(ranks, lambda rank: train(lambda: Pictures(*strategies), IMAGES)):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-3, atol=1e-5, err_msg=key)


@pytest.mark.parametrize(
    ("op", "strategy", "tensors", "words"),
    [
        (lambda: ops.Conv2D(4, 3), ((1, 1, 2, 1), (1, 1, 1, 1)), ((2, 4, 8, 8), (4, 4, 3, 3)),
         r"Conv2D.*cuts the axes \[2\] of tensor 0 of shape \[2, 4, 8, 8\]"),
        (lambda: ops.Conv2D(4, 2), ((1, 1, 1, 1), (1, 1, 2, 2)), ((2, 4, 8, 8), (4, 4, 2, 2)),
         r"Conv2D.*cuts the axes \[2, 3\] of tensor 1"),
        (lambda: ops.MaxPool(2, 2), ((1, 1, 1, 2),), ((2, 4, 8, 8),),
         r"MaxPool.*cuts the axes \[3\] of tensor 0"),
    ],
)  # fmt: skip
def test_cut_places_are_refused_by_operator_and_axes(op, strategy, tensors, words):
    def work(rank):
        made = op().shard(strategy)
        return ms.jit(lambda *x: made(*x))(*(Tensor(np.ones(shape, np.float32)) for shape in tensors))

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    with pytest.raises(NotImplementedError, match=words):
        threads.run(np.prod(strategy[-1]) * np.prod(strategy[0]), work)


def scaled(make, start):
    """Losses, overflows, scales and weights of steps whose loss is scaled by a number that changes."""
    with seeding:
        net = make()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        scale = nn.DynamicLossScaleUpdateCell(start, 2, 2)
        optimizer = nn.Adam(net.trainable_params(), 0.05)
        step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss), optimizer, scale)
        step.set_train()
    told = [[float(one.asnumpy()) for one in step(Tensor(X), Tensor(Y))] for _ in range(5)]
    return told, {p.name: whole(p) for p in step.get_parameters()}


@pytest.mark.parametrize("start", (2.0**10, 2.0**128), ids=("steps", "overflows"))
@pytest.mark.parametrize("ranks", (2, 4))
def test_a_scaled_loss_decides_for_all_ranks(start, ranks):
    expected, weights = scaled(lambda: Mlp(None, None, None), min(start, 3e38))
    first = ((ranks // 2, 1), (1, 2)), ((ranks // 2, 2), (2, 1)), ((ranks // 2, 2), (2,))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for told, own in threads.run(ranks, lambda rank: scaled(lambda: Mlp(*first), min(start, 3e38))):
        np.testing.assert_allclose(told, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)
    assert any(overflow for _, overflow, _ in expected) == (start > 3e38)


def test_a_layout_in_a_branch_is_that_of_its_side(monkeypatch):
    """One side computes on parts, and the other, of which nobody says anything, on the whole."""
    made, real = [], divided.divide
    monkeypatch.setattr(divided, "divide", lambda *given: made.append(real(*given)) or made[-1])

    def work(rank):
        relu = ops.ReLU().shard(((2, 1),))

        @ms.jit
        def run(x):
            if x.sum() > 0:
                return relu(x) * 2
            return x - 1

        return [run(Tensor(sign * np.ones((4, 4), np.float32))).asnumpy() for sign in (1, -1)]

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    for above, below in threads.run(2, work):
        np.testing.assert_array_equal(above, np.full((4, 4), 2))
        np.testing.assert_array_equal(below, np.full((4, 4), -2))
    for graph, _ in made:
        (branch,) = (node for node in graph.nodes if node.op.definition.name == "cond")
        shapes = {
            node.op.definition.name: node.outputs[0].type.shape
            for side in ("then", "otherwise")
            for node in branch.attrs[side].nodes
        }
        assert (shapes["relu"], shapes["sub"]) == ((2, 4), (4, 4))
