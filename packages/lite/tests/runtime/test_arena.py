"""The arena of activations is hardly larger than what must be there at once."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import convert
from mycelia_lite.picture import plan_of


def conv(inputs, outputs, kernel=1, stride=1, group=1):
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, group=group, has_bias=True)


class Residual(nn.Cell):
    """Two convolutions beside nothing, or beside one where the size changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3)
        self.short = None if (inputs, stride) == (outputs, 1) else conv(inputs, outputs, 1, stride)

    def construct(self, x):
        y = self.second(ops.relu(self.first(x)))
        return ops.relu(y + (x if self.short is None else self.short(x)))


class Inverted(nn.Cell):
    """Wide, depthwise, narrow; with what came where shapes allow it."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.whole = nn.SequentialCell(
            conv(inputs, 6 * inputs), nn.ReLU6(), conv(6 * inputs, 6 * inputs, 3, stride, 6 * inputs),
            nn.ReLU6(), conv(6 * inputs, outputs),
        )  # fmt: skip
        self.adds = (inputs, stride) == (outputs, 1)

    def construct(self, x):
        return x + self.whole(x) if self.adds else self.whole(x)


class Branches(nn.Cell):
    """Three ways side by side, put together along the channels."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        half = outputs // 2
        self.narrow = conv(inputs, half, 1, stride)
        self.wide = nn.SequentialCell(conv(inputs, half), nn.ReLU(), conv(half, outputs - half, 3, stride))

    def construct(self, x):
        return ops.cat((ops.sigmoid(self.narrow(x)), self.wide(x)), axis=1)


class Stack(nn.Cell):
    def __init__(self, seed):
        super().__init__()
        rng, width, blocks = np.random.default_rng(seed), 16, [conv(3, 16, 3, 2), nn.ReLU()]
        for _ in range(int(rng.integers(4, 9))):
            kind, stride = rng.choice([Residual, Inverted, Branches]), int(rng.choice([1, 1, 2]))
            outputs = int(width if rng.random() < 0.5 else rng.integers(1, 9) * 8)
            blocks.append(kind(width, outputs, stride))
            width = outputs
        self.blocks, self.head = nn.SequentialCell(blocks), nn.Dense(width, 10)

    def construct(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


class Pooled(nn.Cell):
    """A convolution with so few channels that its activation is a step of its own; `again`: who reads what
    the activation reads."""

    def __init__(self, again):
        super().__init__()
        self.conv, self.pool, self.again = nn.Conv2d(1, 6, 5, has_bias=True), nn.MaxPool2d(2, 2), again

    def construct(self, x):
        y = self.conv(x)
        z = self.pool(ops.relu(y))
        return z + self.pool(y) if self.again else z


@pytest.mark.parametrize("again", [False, True])
def test_an_activation_writes_over_what_nobody_else_reads(tmp_path, again):
    ms.set_seed(1)
    net, x = Pooled(again), ms.Tensor(np.random.default_rng(2).normal(size=(1, 1, 28, 28)).astype(np.float32))
    ms.export(net, x, file_name=str(tmp_path / "n.mindir"), file_format="MINDIR")
    model = mslite.Model()
    model.build_from_file(
        convert(mslite.FmkType.MINDIR, str(tmp_path / "n.mindir"), str(tmp_path / "n")).path
    )
    image, halves = 4 * 6 * 28 * 28, 4 * 6 * 14 * 14
    arena = plan_of(model).arena_bytes
    assert 2 * image <= arena if again else arena < image + 2 * halves
    model.get_inputs()[0].set_data_from_numpy(x.asnumpy())
    for _ in range(2):  # the second run finds what the first one left
        y = model.predict(model.get_inputs())[0].get_data_to_numpy()
        np.testing.assert_allclose(y, net(x).asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_arena_is_what_lives_at_once(tmp_path, seed):
    ms.set_seed(seed)
    x = ms.Tensor(np.zeros((1, 3, 96, 96), np.float32))
    ms.export(Stack(seed), x, file_name=str(tmp_path / "n.mindir"), file_format="MINDIR")
    model = mslite.Model()
    model.build_from_file(
        convert(mslite.FmkType.MINDIR, str(tmp_path / "n.mindir"), str(tmp_path / "n")).path
    )
    plan = plan_of(model)
    assert max(plan.live_bytes) <= plan.arena_bytes <= 1.05 * max(plan.live_bytes)
