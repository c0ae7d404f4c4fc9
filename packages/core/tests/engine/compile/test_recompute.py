"""Values that programs compute twice instead of keeping them: the same bits in less memory."""

from collections import Counter

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine.compile import executable
from mycelia.engine.compile.passes import recompute

WIDTH = 8


@pytest.fixture
def eager(monkeypatch):
    """Small networks are worth it, too, whatever it costs."""
    for name, value in dict(_LEAST_PEAK=0, _LEAST_SIZE=0, _LEAST_FALL=0.0, _BUDGET=10.0).items():
        monkeypatch.setattr(recompute, name, value)


@pytest.fixture
def programs():
    """The programs built during the test."""
    made = []
    executable.built_listeners.append(made.append)
    yield made
    executable.built_listeners.remove(made.append)


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


class Block(nn.Cell):
    """Three normalized convolutions with a residual, and what stands between."""

    def __init__(self, activation=nn.ReLU, between=None):
        super().__init__()
        self.convs = nn.CellList([nn.Conv2d(WIDTH, WIDTH, 3) for _ in range(3)])
        self.norms = nn.CellList([nn.BatchNorm2d(WIDTH) for _ in range(3)])
        self.act, self.between = activation(), between

    def construct(self, x):
        y = x
        for conv, norm in zip(self.convs, self.norms):
            y = norm(conv(y if y is x else self.act(y)))
        if self.between is not None:
            y = self.between(y)
        return self.act(y + x)


class Elementwise(nn.Cell):
    """Products with a chain between them, which their gradients read."""

    def __init__(self):
        super().__init__()
        self.dense = nn.CellList([nn.Dense(WIDTH, WIDTH) for _ in range(4)])
        self.scale = Parameter(rand(WIDTH, seed=3), name="scale")

    def construct(self, x):
        x = x.reshape(-1, WIDTH)
        for dense in self.dense:
            x = dense(x * self.scale + 1)
        return x


def dropping():
    return nn.Dropout(p=0.3)


NETWORKS = {
    "residual": lambda: nn.SequentialCell(*[Block() for _ in range(3)]),
    "relu6": lambda: nn.SequentialCell(*[Block(nn.ReLU6) for _ in range(2)]),
    "tanh": lambda: nn.SequentialCell(*[Block(nn.Tanh) for _ in range(2)]),
    "dropout": lambda: nn.SequentialCell(*[Block(between=dropping()) for _ in range(3)]),
    "elementwise": Elementwise,
}


def run(make, passes="", steps=3, recomputed_block=False):
    """What some training steps leave: losses, Parameters, running statistics; and the memory report."""
    ms.set_seed(1)
    net = make()
    net.set_train()
    if recomputed_block:
        net[1].recompute()
    for i, p in enumerate(net.get_parameters()):
        if p.ndim > 1:
            p.set_data(rand(*p.shape, seed=i) * 0.3)
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        value, gradients = gradient(x)
        optimizer(gradients)
        return value

    with ms.config.context(passes=passes, check=True):
        found = [step(rand(4, WIDTH, 8, 8, seed=k)).asnumpy() for k in range(steps)]
    found += [p.asnumpy() for p in net.get_parameters()]
    return found, step.memory_report()


@pytest.mark.parametrize("name", NETWORKS)
def test_training_leaves_the_same_bits(name, eager):
    without, kept = run(NETWORKS[name], "-recompute")
    found, report = run(NETWORKS[name])
    for a, b in zip(found, without, strict=True):
        np.testing.assert_array_equal(a, b)
    assert kept.recomputed == 0
    if name != "tanh":  # too heavy to be computed twice, and what it reads nobody keeps
        assert report.recomputed > 0
        assert report.lower_bound < kept.lower_bound
        assert f"{report.recomputed} computed twice" in str(report)


def test_beside_a_cell_that_is_recomputed_on_request(eager):
    without, _ = run(NETWORKS["residual"], "-recompute", recomputed_block=True)
    found, _ = run(NETWORKS["residual"], recomputed_block=True)
    for a, b in zip(found, without, strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_what_is_light_runs_twice(eager, programs):
    run(NETWORKS["dropout"], "-recompute", steps=1)
    before = Counter(node.op.name for node in max(programs, key=lambda p: len(p.nodes)).nodes)
    programs.clear()
    run(NETWORKS["dropout"], steps=1)
    after = Counter(node.op.name for node in max(programs, key=lambda p: len(p.nodes)).nodes)
    more = after - before
    assert more
    assert all(n in recompute._LIGHT or n in recompute._STAND_INS or n == "fused_map" for n in more)
    assert not before - after


def test_running_statistics_move_once(eager):
    net = nn.SequentialCell(*[Block() for _ in range(3)])
    net.set_train()
    norm = net[0].norms[0]
    gradient = ms.jit(ms.grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params()))
    x = rand(4, WIDTH, 8, 8)
    gradient(x)
    assert gradient.memory_report().recomputed > 0
    mean = net[0].convs[0](x).asnumpy().mean((0, 2, 3))
    np.testing.assert_allclose(norm.moving_mean.asnumpy(), 0.1 * mean, rtol=1e-4, atol=1e-6)


def test_gradients_of_gradients(eager):
    block = Block(nn.ReLU)
    block.set_train()

    def penalty(x):
        return (ms.grad(lambda x: (block(x) ** 3).sum())(x) ** 2).sum()

    x = rand(2, WIDTH, 6, 6)
    found = []
    for passes in ("-recompute", ""):
        with ms.config.context(passes=passes):
            found.append([g.asnumpy() for g in ms.jit(ms.grad(penalty, None, block.trainable_params()))(x)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_value_that_is_returned_is_kept(eager):
    net = nn.SequentialCell(*[Block() for _ in range(2)])
    net.set_train()

    def step(x):
        seen = []

        def loss(x):
            y = net[0](x)
            seen.append(ops.stop_gradient(y))
            return (net[1](y) ** 2).sum()

        return ms.grad(loss)(x), seen[0]

    x = rand(4, WIDTH, 8, 8)
    found = []
    for passes in ("-recompute", ""):
        with ms.config.context(passes=passes):
            found.append([t.asnumpy() for t in ms.jit(step)(x)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_large_steps_need_less_memory_by_default():
    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norms = nn.CellList([nn.BatchNorm1d(256) for _ in range(8)])
            self.dense = nn.CellList([nn.Dense(256, 256, has_bias=False) for _ in range(8)])

        def construct(self, x):
            for dense, norm in zip(self.dense, self.norms):
                x = ops.relu(norm(dense(x)))
            return (x * x).sum()

    net = Step()
    net.set_train()
    x = rand(5_000, 256)
    peaks = []
    for passes in ("-recompute", ""):
        gradient = ms.jit(ms.grad(net, None, net.trainable_params()))
        with ms.config.context(passes=passes):
            gradient(x)
        peaks.append(gradient.memory_report().peak)
    assert peaks[1] < 0.9 * peaks[0]


def test_small_steps_are_left_alone():
    _, report = run(NETWORKS["residual"], steps=1)
    assert report.recomputed == 0
