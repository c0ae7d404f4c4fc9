"""Fusions: what joins, that their bits are those of R9, and that each is switched off by its name."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import faults, fusion, testing
from mycelia_backend_ascend_sim.backend import device

NAMES = [f.name for f in fusion.FUSIONS]
OFF = ",".join(f"-{name}" for name in NAMES)


@pytest.fixture(autouse=True)
def tasks():
    """What the device ran: (fusion, parts) of each task, since this list was last cleared."""
    ran = []

    def listen(task):
        ran.append((task.fusion or task.op, task.parts))

    with on_backend("Ascend"):
        device().listeners.append(listen)
        yield ran
        device().listeners.remove(listen)


def half(*shape, seed=0) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float16))


class ConvBnRelu(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.norm.moving_mean.set_data(ms.Tensor(np.linspace(-1, 1, 8).astype(np.float32)))
        self.to_float(ms.float16)
        self.set_train(False)

    def construct(self, x):
        return ops.relu(self.norm(self.conv(x)))


def test_convolution_normalization_and_activation_are_one_task(tasks):
    net, x = ConvBnRelu(), half(2, 3, 5, 5)
    tasks.clear()
    ms.jit(lambda x: net(x))(x)
    assert [t for t in tasks if t[0] != "cast"] == [("ub_conv_bn_relu", ("conv", "batch_norm_infer", "relu"))]


def test_a_product_and_what_follows_have_one_rounding(tasks):
    x, w, b = half(8, 20), half(20, 16, seed=1), half(16, seed=2)

    def layer(x):
        return ops.relu(x @ w + b)

    total = testing.product(*(t.asnumpy().astype(np.float32) for t in (x, w)))
    once = np.maximum(total + b.asnumpy(), 0).astype(np.float16)
    twice = np.maximum(total.astype(np.float16) + b.asnumpy(), np.float16(0))
    assert (once != twice).any()
    np.testing.assert_array_equal(ms.jit(layer)(x).asnumpy(), once)
    assert tasks[-1] == ("ub_matmul_bias_activation", ("mat_mul", "add", "relu"))
    np.testing.assert_array_equal(layer(x).asnumpy(), twice)
    with ms.config.context(passes="-ub_matmul_bias_activation"):
        np.testing.assert_array_equal(ms.jit(layer)(x).asnumpy(), twice)


def test_elementwise_chains_have_one_rounding(tasks):
    x = half(100)

    def chain(x):
        return ops.tanh(x * x + x) * 3

    v = x.asnumpy().astype(np.float32)
    inner = (v * v + v).astype(np.float64)
    want = (np.tanh(inner).astype(np.float32) * np.float32(3)).astype(np.float16)
    np.testing.assert_array_equal(ms.jit(chain)(x).asnumpy(), want)
    assert tasks[-1] == ("ub_elementwise", ("mul", "add", "tanh", "mul"))
    with ms.config.context(passes="-ub_elementwise"):
        alone = ms.jit(chain)(x).asnumpy()
    np.testing.assert_array_equal(alone, chain(x).asnumpy())
    assert (alone != want).any()


@pytest.mark.parametrize("name", NAMES)
def test_each_pass_is_switched_off_by_its_name(name, tasks):
    net, x, w = ConvBnRelu(), half(1, 3, 4, 4), half(32, 2, seed=3)

    def all_of_them(x):
        y = ops.reshape(net(x), (4, 32))
        return ops.tanh(ops.exp(ops.reshape(ops.relu(y @ w), (8,))) * 2)

    tasks.clear()
    ms.jit(all_of_them)(x)
    assert {t[0] for t in tasks if t[1]} == set(NAMES)
    with ms.config.context(passes=f"-{name}"):
        tasks.clear()
        ms.jit(lambda x: all_of_them(x))(x)
    assert name not in {t[0] for t in tasks}


def test_what_others_read_is_not_fused_away(tasks):
    def both(x):
        y = ops.exp(x)
        return y, ops.tanh(y) + y

    x = half(9)
    kept, result = ms.jit(both)(x)
    np.testing.assert_array_equal(kept.asnumpy(), ops.exp(x).asnumpy())
    want = np.tanh(kept.asnumpy().astype(np.float64)).astype(np.float32) + kept.asnumpy()
    np.testing.assert_array_equal(result.asnumpy(), want.astype(np.float16))


def test_what_two_read_is_computed_once_and_rounded():
    def twice(x):
        y = ops.exp(x)
        return ops.tanh(y) * ops.sin(y)

    x = half(50)
    y = ops.exp(x).asnumpy().astype(np.float64)
    want = np.tanh(y).astype(np.float32) * np.sin(y).astype(np.float32)
    np.testing.assert_array_equal(ms.jit(twice)(x).asnumpy(), want.astype(np.float16))


def test_overflow_in_between_is_none():
    x = ms.Tensor(np.array([60000], np.float16))
    device().overflow.read_and_clear()
    assert ms.jit(lambda x: x * 2 * 0.5)(x).asnumpy().tolist() == [60000]
    assert device().overflow.read_and_clear()[0] == 0
    assert (x * 2 * 0.5).asnumpy().tolist() == [np.inf] and device().overflow.read_and_clear()[0]


def test_gradients_and_training_are_the_same_with_float32():
    def train():
        net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 1))
        for seed, p in enumerate(net.trainable_params()):
            p.set_data(ms.Tensor(np.random.default_rng(seed).standard_normal(p.shape).astype(np.float32)))
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

        @ms.jit
        def step(x):
            loss, gradients = gradient(x)
            optimizer(gradients)
            return loss

        x = half(4, 6).astype(ms.float32)
        return [float(step(x)) for _ in range(3)]

    fused = train()
    with ms.config.context(passes=OFF):
        assert train() == fused  # float32 is rounded alike within a fusion and without


def test_a_wrong_fusion_rule_shows_only_while_the_pass_is_on():
    x, w, b = half(2, 8), half(8, 3, seed=1), half(3, seed=2)
    layer = ms.jit(lambda x: ops.relu(x @ w + b))
    right = layer(x).asnumpy()
    with faults.inject(faults.WrongFusion(fusion="ub_matmul_bias_activation", part="add")) as planted:
        wrong = layer(x).asnumpy()
        assert planted.hits
        with ms.config.context(passes="-ub_matmul_bias_activation"):
            off = ms.jit(lambda x: ops.relu(x @ w + b))(x).asnumpy()
    np.testing.assert_allclose(off, right, rtol=2e-3, atol=1e-3)
    np.testing.assert_array_equal(wrong, ops.relu(x @ w).asnumpy())
    assert np.abs(wrong.astype(np.float32) - right.astype(np.float32)).max() > 0.1


def test_the_op_is_none_of_a_users():
    from mycelia.ops.define import find

    with pytest.raises(NotImplementedError, match="compiled for ascend-sim"), on_backend("CPU"):
        find("ub_fusion")([half(2)], fusion="x", parts=(("relu", (0,), (), ""),))
