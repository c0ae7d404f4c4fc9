"""Parts of a result that are written where they lie in it: no step copies them together."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import convert


class Channels(nn.Cell):
    """Convolutions of every algorithm that can write into wider pixels, joined; a part is read on."""

    def __init__(self):
        super().__init__()
        self.squeeze = nn.Conv2d(8, 16, 1, has_bias=True)
        self.parts = nn.CellList([
            nn.Conv2d(16, 20, 1, has_bias=True),
            nn.Conv2d(16, 35, 3, has_bias=True),
            nn.Conv2d(16, 24, 3, dilation=2),
            nn.Conv2d(16, 32, 3, group=2, has_bias=True),
        ])  # fmt: skip
        self.end = nn.Conv2d(111, 16, 1)

    def construct(self, x):
        x = ops.relu(self.squeeze(x))
        whole = ops.concat([ops.relu(part(x)) for part in self.parts], 1)
        return self.end(whole), whole[:, :3]


class Depthwise(nn.Cell):
    """A part whose convolution cannot write into wider pixels, and one with a second reader."""

    def __init__(self):
        super().__init__()
        self.point, self.depthwise = nn.Conv2d(16, 32, 1), nn.Conv2d(16, 16, 3, group=16)

    def construct(self, x):
        y = self.point(x)
        return ops.relu(ops.concat((y, self.depthwise(x)), 1)), ops.relu(ops.concat((y, self.point(-x)), 1))


class First(nn.Cell):
    """Parts one behind the other: of any ops."""

    def construct(self, x, y):
        return ops.exp(ops.concat((ops.tanh(x), ops.sigmoid(y), ops.tanh(y) * 2), 1)), ops.concat(
            (x * y, x - y), 1
        )


def models(net, path, *shapes):
    """The converted net, its steps one after the other, and with lanes."""
    path = str(path)
    ms.export(
        net,
        *[ms.Tensor(shape=shape, dtype=ms.float32) for shape in shapes],
        file_name=path,
        file_format="MINDIR",
    )
    file = convert(mslite.FmkType.MINDIR, path + ".mindir", path).path
    for lanes in (1, 3):
        context, model = mslite.Context(), mslite.Model()
        context.cpu.thread_num = context.cpu.inter_op_parallel_num = lanes
        model.build_from_file(file, context=context)
        yield model


def check(model, net, *inputs):
    for tensor, x in zip(model.get_inputs(), inputs, strict=True):
        tensor.set_data_from_numpy(x)
    wanted = [y.asnumpy() for y in net(*map(ms.Tensor, inputs))]
    for _ in range(3):
        for made, want in zip(model.predict(model.get_inputs()), wanted, strict=True):
            np.testing.assert_allclose(made.get_data_to_numpy(), want, rtol=1e-4, atol=1e-5)
    seen = []  # node by node the parts have memory of their own
    model.predict(model.get_inputs(), after=lambda inputs, outputs, name, kind: seen.append(kind) or True)
    assert "Concat" in seen
    for made, want in zip(model.get_outputs(), wanted, strict=True):
        np.testing.assert_allclose(made.get_data_to_numpy(), want, rtol=1e-4, atol=1e-5)


def copies(model):
    plan = model.get_model_info("memory_plan").splitlines()
    return sum(line.startswith("step\tconcat\t") for line in plan)


@pytest.mark.parametrize("side", [14, 23])
def test_convolutions_write_channels_of_a_wider_image(tmp_path, side):
    ms.set_seed(4)
    net, x = Channels(), np.random.default_rng(1).normal(size=(2, 8, side, side)).astype(np.float32)
    for model in models(net, tmp_path / "net", x.shape):
        assert copies(model) == 0
        check(model, net, x)


def test_what_cannot_be_written_in_place_is_copied(tmp_path):
    ms.set_seed(5)
    net, x = Depthwise(), np.random.default_rng(2).normal(size=(1, 16, 12, 12)).astype(np.float32)
    for model in models(net, tmp_path / "net", x.shape):
        assert copies(model) == 2
        check(model, net, x)


# Parts of 5 numbers would lie where no kernel expects them.
@pytest.mark.parametrize(("length", "left"), [(16, 0), (5, 2)])
def test_parts_one_behind_the_other_are_written_by_any_kernel(tmp_path, length, left):
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=(1, 3, length)).astype(np.float32) for _ in range(2))
    for model in models(First(), tmp_path / "net", x.shape, y.shape):
        assert copies(model) == left
        check(model, First(), x, y)
