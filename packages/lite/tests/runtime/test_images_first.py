"""Images of few channels that come with the channels first: the first convolutions read them as they are."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import convert


class Stem(nn.Cell):
    """One convolution reads the image, or two; what else reads it is `more`."""

    def __init__(self, channels, kernel, more=None):
        super().__init__()
        self.first = nn.Conv2d(channels, 24, kernel, stride=2, has_bias=True)
        self.second = nn.Conv2d(channels, 24, kernel, stride=2, has_bias=True)
        self.more = more

    def construct(self, x):
        y = ops.relu6(self.first(x)) + self.second(x)
        return y if self.more is None else (y, self.more(x))


def built(net, path, shape, threads=1, **options):
    ms.export(net, ms.Tensor(shape=shape, dtype=ms.float32), file_name=str(path), file_format="MINDIR")
    context, model = mslite.Context(), mslite.Model()
    context.cpu.thread_num = threads
    file = convert(mslite.FmkType.MINDIR, f"{path}.mindir", str(path), **options).path
    model.build_from_file(file, context=context)
    return model


def turns(model):
    return sum(
        line.startswith("step\ttranspose\t") for line in model.get_model_info("memory_plan").splitlines()
    )


def answers(model, x, **callbacks):
    model.get_inputs()[0].set_data_from_numpy(x)
    return [t.get_data_to_numpy() for t in model.predict(model.get_inputs(), **callbacks)]


def check(model, net, x):
    wanted = net(ms.Tensor(x))
    wanted = [t.asnumpy() for t in (wanted if isinstance(wanted, tuple) else (wanted,))]
    for made, want in zip(answers(model, x), wanted, strict=True):
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)
    node_by_node = answers(model, x, after=lambda inputs, outputs, name, kind: True)
    for made, want in zip(node_by_node, wanted, strict=True):
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5)


def drawn(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


# Of more channels, or with narrow windows where rows cannot be read in place, turning the image takes less
# time than reading it as it comes.
@pytest.mark.parametrize(
    "channels, kernel, left", [(2, 5, 1), (3, 7, 1), (4, 5, 1), (5, 5, 2), (3, 3, 2), (3, (3, 5), 1)]
)
def test_convolutions_of_few_channels_read_the_image_as_it_comes(tmp_path, channels, kernel, left):
    ms.set_seed(7)
    net, x = Stem(channels, kernel), drawn(2, channels, 29, 34)
    model = built(net, tmp_path / "net", x.shape)
    if kernel == 3 and model.get_model_info("isa") == "avx512":
        left = 1
    assert turns(model) == left  # the result is turned in any case
    check(model, net, x)


def test_other_readers_have_it_turned(tmp_path):
    ms.set_seed(8)
    net, x = Stem(3, 5, nn.Conv2d(3, 9, 3, group=3)), drawn(1, 3, 20, 20)
    check(built(net, tmp_path / "net", x.shape), net, x)


def test_weights_in_panels_are_packed_for_planes(tmp_path):
    ms.set_seed(9)
    net, x = Stem(3, 5), drawn(1, 3, 32, 32)
    plain = answers(built(net, tmp_path / "plain", x.shape), x)
    model = built(net, tmp_path / "net", x.shape, pack_weights=True)
    np.testing.assert_array_equal(answers(model, x)[0], plain[0])


def test_threads_have_the_same_bits(tmp_path):
    ms.set_seed(10)
    net, x = Stem(3, 7), drawn(1, 3, 96, 90)
    first, *others = [answers(built(net, tmp_path / "net", x.shape, n), x)[0] for n in (1, 2, 3, 5)]
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_reaches_the_windows_that_hold_it(tmp_path, special):
    ms.set_seed(11)
    net, x = Stem(3, 5), drawn(1, 3, 16, 16)
    x[0, 1, 0, 5] = x[0, 2, 9, 15] = special
    np.testing.assert_array_equal(
        np.isfinite(answers(built(net, tmp_path / "net", x.shape), x)[0]),
        np.isfinite(net(ms.Tensor(x)).asnumpy()),
    )
