"""Blocks that are computed again in the backward pass: same results, less memory."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.compile.executable import live_programs

X = Tensor(np.random.default_rng(0).standard_normal((4, 2, 8, 8)).astype(np.float32))


class Net(nn.Cell):
    """Blocks of convolution, normalization and dropout; `how` says which are computed twice."""

    def __init__(self, how, drop=0.0, blocks=3):
        super().__init__()
        self.how = how
        self.blocks = nn.CellList([self.block(2 if i == 0 else 6, drop) for i in range(blocks)])
        self.head = nn.Dense(6 * 64, 3)
        if how == "cell":
            for b in self.blocks:
                b.recompute()

    def block(self, inputs, drop):
        layers = [nn.Conv2d(inputs, 6, 3), nn.BatchNorm2d(6), nn.Sigmoid(), nn.Conv2d(6, 6, 3), nn.Tanh()]
        return nn.SequentialCell(*layers, *([nn.Dropout(p=drop)] if drop else []))

    def construct(self, x):
        for b in self.blocks:
            x = ms.recompute(b, x) if self.how == "function" else b(x)
        return self.head(x.reshape(x.shape[0], -1))


def run(how, compiled, weights=None, drop=0.0):
    """Loss, gradients and all Parameters after two calls."""
    ms.set_seed(3)
    net = Net(how, drop)
    net.set_train()
    for p, w in zip(net.get_parameters(), weights or []):
        p.set_data(Tensor(w))
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), 0, net.trainable_params())
    call = ms.jit(gradient) if compiled else gradient
    call(X)
    loss, (dx, gradients) = call(X)
    found = [loss, dx, *gradients, *net.get_parameters()]
    return [t.asnumpy().copy() for t in found]


WEIGHTS = [p.asnumpy().copy() for p in Net("").get_parameters()]


@pytest.mark.parametrize("drop", [0.0, 0.5])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("how", ["cell", "function"])
def test_same_gradients_statistics_and_masks(how, compiled, drop):
    for got, expected in zip(run(how, compiled, WEIGHTS, drop), run("", compiled, WEIGHTS, drop)):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


def arena(how):
    net = Net(how, blocks=8)
    net.set_train()
    gradient = ms.jit(ms.grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params()))
    before = {id(p) for p in live_programs()}
    gradient(Tensor(np.ones((16, 2, 8, 8), np.float32)))
    return max(p.arena_bytes for p in live_programs() if id(p) not in before)


def test_compiled_training_needs_less_memory():
    assert arena("cell") < 0.5 * arena("")


def test_second_order():
    class Cube(nn.Cell):
        def construct(self, x):
            return ops.sin(x) * x

    cube = Cube()
    x = Tensor(np.linspace(-1, 1, 5).astype(np.float32))

    def second(f):
        return ms.grad(lambda x: ms.grad(lambda x: f(x).sum())(x).sum())(x).asnumpy()

    np.testing.assert_allclose(second(lambda x: ms.recompute(cube, x)), second(cube), rtol=1e-5)


def test_only_cells():
    with pytest.raises(TypeError, match="block must be a Cell, but got function"):
        ms.recompute(lambda x: x, X)
