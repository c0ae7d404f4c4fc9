"""Batch normalization in training joins its residual and activation, forward and backward."""

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.backends import registry
from mycelia.backends.base import Backend
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend

JOINED = ("batch_norm_act_train", "batch_norm_act_grad")


class Norms(Backend):
    """The joined forms made of the op bodies; all else falls back."""

    name = "norms"

    def kernels(self):
        return {(name, "f32"): find(name).definition.body for name in JOINED}


@pytest.fixture(params=["norms", *(["cpu"] if "cpu" in registry.available() else [])])
def target(request, monkeypatch):
    monkeypatch.setitem(registry.available(), "norms", Norms())
    with on_backend(request.param):
        yield request.param
    registry.load.cache_clear()


class Block(nn.Cell):
    """Two normalized convolutions, with a residual that may be projected, as in ResNet and MobileNetV2."""

    def __init__(self, activation="relu", residual="input", last=True):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.act = nn.ReLU() if activation == "relu" else nn.ReLU6()
        self.residual, self.last = residual, last
        if residual == "projected":
            self.conv3, self.norm3 = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

    def construct(self, x):
        y = self.norm2(self.conv2(self.act(self.norm1(self.conv1(x)))))
        if self.residual == "projected":
            y = y + self.norm3(self.conv3(x))
        elif self.residual == "input":
            y = y + x
        return self.act(y) if self.last else y


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def train(net, x, tmp_path=None):
    """Loss, gradients of the input and of the weights, running statistics; with a path, also the ops."""
    net.set_train()
    weights = net.trainable_params()
    for i, p in enumerate(net.get_parameters()):
        if p.requires_grad:
            p.set_data(rand(*p.shape, seed=i) + (1.0 if "gamma" in p.name else 0.0))
    moving = [p for p in net.get_parameters() if not p.requires_grad]
    for p in moving:
        p.set_data(ops.ones(p.shape, ms.float32))

    def loss(x):
        y = net(x)
        return (y * y * ops.cos(y)).sum()

    step, found = ms.value_and_grad(loss, 0, weights), []
    if tmp_path is not None:
        settings = dict(save_graphs=2, save_graphs_path=str(tmp_path), check=True, passes="-fuse")
        with ms.config.context(**settings):
            results = ms.jit(step)(x)
        last = max(tmp_path.glob("hwopt_*_after_lower_graph_*"), key=lambda p: int(p.stem.rpartition("_")[2]))
        found = re.findall(r"= (\w+)\(", last.read_text())
    else:
        results = step(x)
    value, (d_x, d_weights) = results
    return [t.asnumpy().copy() for t in (value, d_x, *d_weights, *moving)], found


@pytest.mark.parametrize("activation", ["relu", "relu6"])
@pytest.mark.parametrize("residual", ["none", "input", "projected"])
@pytest.mark.parametrize("last", [True, False])
def test_blocks(target, tmp_path, activation, residual, last):
    net, x = Block(activation, residual, last), rand(2, 4, 6, 6)
    want, _ = train(net, x)
    got, found = train(net, x, tmp_path)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(w).max()))
    assert not {"relu", "relu6"} & set(found), "activations are part of the normalizations"
    assert found.count("batch_norm_act_train") == 1 + (last or residual != "none")
    assert "batch_norm_act_grad" in found
    left = found.count("relu_grad") + found.count("hardtanh_grad")
    assert left == (last and residual != "none"), "the residual reads that gradient, too"


def test_what_others_read_stays(target, tmp_path):
    """The normalized tensor and its sum with a residual are read again: nothing may swallow them."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(4)

        def construct(self, x):
            y = self.norm(x)
            return ops.relu(y) + y * 0.5

    net, x = Net(), rand(2, 4, 5, 5)
    want, _ = train(net, x)
    got, found = train(net, x, tmp_path)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
    assert "batch_norm_train" in found
    assert "batch_norm_act_train" not in found


def test_shared_normalization(target, tmp_path):
    """One layer used twice: its running statistics move twice, in order."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm, self.act = nn.BatchNorm2d(4), nn.ReLU()

        def construct(self, x):
            return self.act(self.norm(self.act(self.norm(x)) + x) + x)

    net, x = Net(), rand(3, 4, 5, 5)
    want, _ = train(net, x)
    got, found = train(net, x, tmp_path)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
    assert found.count("batch_norm_act_train") == 2
