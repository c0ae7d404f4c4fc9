"""Stacks of random layers whose sizes are all equal, batch, channels, height and width alike, give compiled
what they give eagerly: results in evaluation, losses and Parameters of two training steps.

The same in every run; tools/fuzz.py tries others.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, nn, ops


class Of(nn.Cell):
    """A function as a layer."""

    def __init__(self, function, *layers):
        super().__init__()
        self.layers = nn.CellList(layers)
        self.function = function

    def construct(self, x):
        return self.function(x, *self.layers)


class First(nn.Cell):
    """The first result of a layer, of `x` as often as the layer wants it."""

    def __init__(self, layer, times=1):
        super().__init__()
        self.layer, self.times = layer, times

    def construct(self, x):
        return self.layer(*[x] * self.times)[0]


# Each keeps the shape of (n, ..., n).
ANY = [
    lambda n, r: nn.Dense(n, n, activation=r.choice((None, "relu", "tanh", "gelu"))),
    lambda n, r: nn.LayerNorm((n,)),
    lambda n, r: nn.ReLU(),
    lambda n, r: nn.GELU(),
    lambda n, r: nn.PReLU(),
    lambda n, r: nn.Softmax(r.choice((0, 1, -1))),
    lambda n, r: Of(lambda x: x.swapaxes(0, -1)),
    lambda n, r: Of(lambda x: x - x.mean(-1)),
    lambda n, r: Of(lambda x: x / (ops.abs(x).sum(0) + 1.0)),
    lambda n, r: Of(lambda x: ops.exp((x - ops.amax(x, 1)) * 0.1)),
    lambda n, r: Of(lambda x: ops.matmul(x, x.swapaxes(-1, -2)) * 0.1),
    lambda n, r: Of(lambda x: ops.expand_dims(ops.mean(x, 0), 0) * x),
    lambda n, r: Of(lambda x: ops.expand_dims(ops.mean(x, 0), -1) * x),
    lambda n, r: Of(lambda x, layer: x + layer(x), nn.Dense(n, n)),
    lambda n, r: Of(lambda x, layer: x * ops.sigmoid(layer(x).sum(-1, keepdims=True)), nn.Dense(n, n)),
    lambda n, r: Of(lambda x, a, b: a(x) * ops.tanh(b(x)), nn.Dense(n, n), nn.Dense(n, n)),
]
LAYERS = {
    2: [lambda n, r: nn.BatchNorm1d(n), lambda n, r: Of(lambda x, layer: layer(x, x), nn.BiDense(n, n, n))],
    3: [
        lambda n, r: nn.Conv1d(n, n, r.choice((1, 3)), has_bias=True),
        lambda n, r: nn.LayerNorm((n, n), begin_norm_axis=1, begin_params_axis=1),
        lambda n, r: First(nn.GRU(n, n, batch_first=r.random() < 0.5)),
        lambda n, r: First(nn.LSTM(n, n, batch_first=r.random() < 0.5)),
        lambda n, r: First(nn.MultiheadAttention(n, 2, batch_first=r.random() < 0.5), 3),
        lambda n, r: nn.TransformerEncoderLayer(n, 2, n, dropout=0.0, norm_first=r.random() < 0.5),
    ],
    4: [
        lambda n, r: nn.Conv2d(n, n, r.choice((1, 3, 5)), has_bias=r.random() < 0.5),
        lambda n, r: nn.Conv2d(n, n, 3, group=n),
        lambda n, r: nn.Conv2d(n, n, 3, group=2, has_bias=True),
        lambda n, r: nn.Conv2dTranspose(n, n, 3),
        lambda n, r: nn.BatchNorm2d(n),
        lambda n, r: nn.GroupNorm(2, n),
        lambda n, r: nn.InstanceNorm2d(n),
        lambda n, r: nn.MaxPool2d(3, 1, "same"),
        lambda n, r: nn.AvgPool2d(3, 1, "same"),
        lambda n, r: nn.LayerNorm((n, n), begin_norm_axis=2, begin_params_axis=2),
        lambda n, r: Of(lambda x, conv: ops.relu(conv(x) + x), nn.Conv2d(n, n, 3)),
        lambda n, r: Of(lambda x: x * x.mean((2, 3), keep_dims=True)),
        lambda n, r: Of(lambda x: x - x.mean((2, 3))),
        lambda n, r: Of(lambda x: x.transpose(0, 2, 3, 1)),
    ],
}  # fmt: skip


def network(seed):
    r = random.Random(seed)
    ms.set_seed(seed % 2**31)
    rank, n = r.choice((2, 3, 4, 4)), r.choice((2, 4, 8))
    choices = ANY + 2 * LAYERS[rank]
    net = nn.SequentialCell(*[r.choice(choices)(n, r) for _ in range(r.randint(2, 7))], nn.Dense(n, n))
    x, y = (
        ms.Tensor(np.random.default_rng((seed, k)).normal(size=(n,) * rank).astype(np.float32))
        for k in (0, 1)
    )
    return net, x, y


def states(net, optimizer, first):
    for parameter in (*net.get_parameters(), *optimizer.get_parameters()):
        parameter.set_data(ms.Tensor(first.setdefault(parameter.name, parameter.asnumpy().copy())))


def distance(found, expected):
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1.0))


@pytest.mark.fuzz(24)
def test_compiled_equals_eager(seed):
    net, x, y = network(seed)
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    first: dict[str, np.ndarray] = {}
    gradient = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    def trained(run, x):
        states(net, optimizer, first)
        net.set_train(True)
        losses = [float(run(x, y)) for _ in range(2)]
        moved = [(p.asnumpy() - first[p.name]).ravel() for p in net.get_parameters()]
        return np.array(losses), np.concatenate(moved)

    expected = trained(step, x)
    if not max(np.abs(v).max() for v in expected) < 1e4:
        return  # it diverges: float32 does not hold such values well
    # What the inputs' last digits do to an eager run is what rounding may do to a compiled one.
    moved = x * ms.Tensor(
        1 + 2**-21 * np.random.default_rng(seed).choice([-1, 1], x.shape).astype(np.float32)
    )
    noise = [distance(a, b) for a, b in zip(trained(step, moved), expected)]
    with config.context(runtime_num_threads=1 + seed % 3):
        found = trained(ms.jit(lambda x, y: step(x, y)), x)
        for a, b, n in zip(found, expected, noise, strict=True):
            assert distance(a, b) <= 1e-4 + 60 * n, net
        states(net, optimizer, first)
        net.set_train(False)
        a, b = ms.jit(net)(x).asnumpy(), net(x).asnumpy()
        assert a.shape == b.shape and distance(a, b) <= 1e-4 + 60 * distance(net(moved).asnumpy(), b), net
