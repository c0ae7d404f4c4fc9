"""Depthwise convolutions join the 1x1 convolutions around them: where, and that the numbers stay."""

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.backends import registry
from mycelia.backends.base import Backend
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend

FORMS = ("conv_pack", "conv_last", "conv_last_separable")


class Rows(Backend):
    """Channels-last kernels made of the op bodies; all else falls back."""

    name = "rows"
    channels_last = True

    def kernels(self):
        return {(name, "f32"): find(name).definition.body for name in FORMS + ("conv_last_input_grad",
                "conv_last_weight_grad", "linear_pack", "linear", "batch_norm_fold")}  # fmt: skip


@pytest.fixture(params=["rows", *(["cpu"] if "cpu" in registry.available() else [])])
def joined(request, monkeypatch, tmp_path):
    """Runs a function; returns its result and the convolutions of the lowered program."""
    monkeypatch.setitem(registry.available(), "rows", Rows())

    def run(function, x, passes="-fuse"):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        with ms.config.context(save_graphs=2, save_graphs_path=str(path), passes=passes, check=True):
            result = function(x)
        lowered = path.glob("hwopt_*_after_lower_graph_*")
        found = [op for file in lowered for op in re.findall(r"= (\w+)\(", file.read_text())]
        return result, [op for op in found if op in FORMS and op != "conv_pack"]

    with on_backend(request.param):
        yield run
    registry.load.cache_clear()


class Inverted(nn.Cell):
    """A block of MobileNetV2 or V3."""

    def __init__(self, inputs, hidden, outputs, kernel=3, stride=1, act=nn.ReLU6, shown=False):
        super().__init__()
        self.expand, self.norm1 = nn.Conv2d(inputs, hidden, 1), nn.BatchNorm2d(hidden)
        self.deep = nn.Conv2d(hidden, hidden, kernel, stride, "pad", kernel // 2, group=hidden)
        self.norm2, self.act = nn.BatchNorm2d(hidden), act()
        self.project, self.norm3 = nn.Conv2d(hidden, outputs, 1), nn.BatchNorm2d(outputs)
        self.residual, self.shown = stride == 1 and inputs == outputs, shown

    def construct(self, x):
        middle = self.act(self.norm2(self.deep(self.act(self.norm1(self.expand(x))))))
        y = self.norm3(self.project(middle))
        y = x + y if self.residual else y
        return (y, middle) if self.shown else y


def rand(*shape):
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def settled(net):
    rng = np.random.default_rng(1)
    for p in net.get_parameters():
        if "moving_variance" in p.name or "gamma" in p.name:
            p.set_data(Tensor(rng.uniform(0.5, 1.5, p.shape).astype(np.float32)))
        elif "moving_mean" in p.name or "beta" in p.name:
            p.set_data(Tensor(rng.normal(size=p.shape).astype(np.float32) * 0.3))
    return net.set_train(False)


def assert_close(got, expected):
    a, b = got.asnumpy(), expected.asnumpy()
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * np.abs(b).max())


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("act", [nn.ReLU6, nn.HSwish])
def test_block_becomes_one_op(joined, kernel, stride, act):
    net, x = settled(Inverted(16, 64, 16, kernel, stride, act)), rand(1, 16, 57, 59)
    got, found = joined(ms.jit(net), x)
    assert_close(got, net(x))
    assert found == ["conv_last_separable"]
    same, found = joined(ms.jit(lambda x: net(x)), x, passes="-fuse,-separable")
    assert_close(same, got)
    assert found == ["conv_last"] * 3


def test_pair_without_expansion_becomes_one_op(joined):
    net = settled(
        nn.SequentialCell(
            nn.Conv2d(3, 48, 3, 1, "pad", 1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.Conv2d(48, 48, 3, 1, "pad", 1, group=48), nn.BatchNorm2d(48), nn.ReLU(),
            nn.Conv2d(48, 64, 1), nn.BatchNorm2d(64), nn.ReLU(),
        )
    )  # fmt: skip
    x = rand(2, 3, 56, 57)
    got, found = joined(ms.jit(net), x)
    assert_close(got, net(x))
    assert found == ["conv_last", "conv_last_separable"]


def test_what_others_read_stays(joined):
    net, x = settled(Inverted(16, 64, 16, shown=True)), rand(1, 16, 57, 59)
    got, found = joined(ms.jit(net), x)
    for a, b in zip(got, net(x), strict=True):
        assert_close(a, b)
    assert found == ["conv_last"] * 3


def test_small_tensors_stay_apart(joined):
    net, x = settled(Inverted(16, 64, 16)), rand(1, 16, 28, 28)
    got, found = joined(ms.jit(net), x)
    assert_close(got, net(x))
    assert found == ["conv_last"] * 3
