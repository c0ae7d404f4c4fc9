"""Channels-last convolutions on packed weights against float64: geometry, epilogues, threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.lowered import channels_last as ops
from mycelia.engine.ops.lowered.channels_last_grad import conv_last_input_grad
from mycelia.engine.ops.nn_ops import conv as family
from mycelia_backend_cpu import _native

SAME = (1, 1, 1, 1)
# (n, size, channels in, out, kernel, stride, pad, dilation, group)
CASES = {
    "1x1": (2, (9, 7), 67, 33, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 on one pixel": (1, (1, 1), 24, 40, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 with stride": (2, (7, 8), 64, 32, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "1x1, deeper than a block": (1, (7, 7), 900, 48, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1, more pixels than a block": (3, (31, 37), 17, 19, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "3x3": (2, (14, 15), 64, 70, (3, 3), (1, 1), SAME, (1, 1), 1),
    "3x3, deep": (3, (7, 7), 300, 20, (3, 3), (1, 1), SAME, (1, 1), 1),
    "3x3 with stride": (2, (17, 13), 37, 41, (3, 3), (2, 2), SAME, (1, 1), 1),
    "7x7 stem": (2, (33, 31), 3, 64, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    "upsampling to an image": (3, (17, 14), 3, 19, (4, 4), (2, 2), SAME, (1, 1), 1),
    "few channels, odd stride": (2, (9, 22), 5, 8, (1, 7), (1, 3), (0, 0, 3, 3), (1, 1), 1),
    "few channels, taps that miss": (2, (7, 9), 4, 10, (2, 2), (2, 2), (0, 1, 2, 0), (1, 1), 1),
    "few channels, images in parts": (3, (330, 301), 3, 2, (3, 3), (2, 2), SAME, (1, 1), 1),
    "one channel": (2, (28, 27), 1, 6, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "as many classes as pixels": (2, (5, 5), 3, 7, (9, 9), (1, 1), (4, 4, 4, 4), (1, 1), 1),
    "groups": (2, (9, 8), 24, 36, (3, 3), (1, 1), SAME, (1, 1), 3),
    "groups with stride": (2, (9, 8), 6, 34, (3, 2), (2, 1), (1, 0, 0, 1), (1, 1), 2),
    "dilation": (1, (16, 15), 20, 18, (3, 3), (1, 1), (2, 3, 2, 3), (2, 3), 1),
    "dilation beyond stride": (2, (16, 15), 20, 18, (3, 3), (2, 2), (3, 3, 3, 3), (3, 2), 1),
    "dilation that shares a factor with stride": (1, (17, 16), 5, 9, (3, 3), (4, 6), SAME, (2, 4), 1),
    "stride beyond kernel": (2, (16, 15), 17, 19, (2, 2), (4, 3), (0, 0, 0, 0), (1, 1), 1),
    "padding beyond kernel": (1, (3, 2), 18, 17, (2, 2), (1, 1), (3, 4, 2, 5), (1, 1), 1),
    "one element": (1, (1, 1), 1, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "no image": (0, (5, 5), 3, 4, (3, 3), (1, 1), SAME, (1, 1), 1),
    "no input channel": (2, (5, 5), 0, 3, (3, 3), (1, 1), SAME, (1, 1), 1),
    "no output channel": (2, (5, 5), 3, 0, (3, 3), (1, 1), SAME, (1, 1), 1),
}
# (n, size, channels in, out, pad)
TILED = {
    "whole tiles": (1, (12, 24), 16, 32, SAME),
    "parts of tiles": (2, (13, 7), 21, 19, (1, 0, 2, 1)),
    "smaller than a tile": (3, (3, 2), 5, 7, SAME),
    "one pixel": (1, (1, 1), 9, 17, SAME),
    "no padding": (1, (11, 10), 8, 48, (0, 0, 0, 0)),
    "padding beyond kernel": (1, (4, 5), 3, 3, (4, 3, 5, 7)),
    "several sets of tiles": (2, (29, 31), 66, 33, SAME),
    "no image": (0, (5, 5), 3, 4, SAME),
}
ACTIVATIONS = {
    "none": lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
    "hardswish": lambda y: y * np.clip(y + 3, 0, 6) / 6,
    "silu": lambda y: y / (1 + np.exp(-y)),
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "gelu": lambda y: 0.5 * y * (1 + np.vectorize(math.erf, otypes=[float])(y / math.sqrt(2))),
    "gelu_tanh": lambda y: 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))),
}


def tensor(a):
    return None if a is None else ms.Tensor(np.ascontiguousarray(a, np.float32))


def last(a):
    return np.moveaxis(a, 1, -1)


def drawn(n, size, c, o, kernel, group=1, seed=7):
    """Images [N, C, H, W] and weights [O, C / group, kh, kw] whose results are of order 1."""
    rng = np.random.default_rng(seed)
    w = rng.uniform(-1, 1, (o, c // group, *kernel)) / math.sqrt(max(1, c // group * math.prod(kernel)))
    return rng, rng.uniform(-2, 2, (n, c, *size)).astype(np.float32), w.astype(np.float32)


def convolved(x, w, bias=None, **how):
    """The convolution in float64, channels last."""
    doubles = [None if a is None else a.astype(np.float64) for a in (x, w, bias)]
    return last(family._conv.definition.body(*doubles, **how))


def native(x, w, bias=None, residual=None, *, algorithm="direct", activation="none", group=1, **how):
    pack = ops.conv_pack(tensor(w), algorithm=algorithm, group=group)
    return ops.conv_last(
        tensor(x if algorithm == "planes" else last(x)), pack, tensor(bias), tensor(residual),
        channels=w.shape[0], kernel=w.shape[2:], group=group, algorithm=algorithm, activation=activation,
        **how,
    ).asnumpy()  # fmt: skip


def assert_near(got, want, share):
    """No element is off by more than this share of the largest one."""
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=share * max(1.0, np.abs(want).max(initial=0)))


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    n, size, c, o, kernel, stride, pad, dilation, group = request.param
    how = dict(stride=stride, pad=pad, dilation=dilation, group=group)
    return *drawn(n, size, c, o, kernel, group), how


@pytest.fixture(params=TILED.values(), ids=TILED)
def tiled(request):
    n, size, c, o, pad = request.param
    return *drawn(n, size, c, o, (3, 3)), dict(stride=(1, 1), pad=pad, dilation=(1, 1), group=1)


def test_direct(case, threads):
    rng, x, w, how = case
    want = convolved(x, w, **how)
    assert_near(native(x, w, **how), want, 1e-6)
    bias, residual = rng.uniform(-1, 1, want.shape[-1]), rng.uniform(-1, 1, want.shape)
    bias, residual = bias.astype(np.float32), residual.astype(np.float32)
    got = native(x, w, bias, residual, activation="relu", **how)
    assert_near(got, np.maximum(convolved(x, w, bias, **how) + residual, 0), 1e-6)


@pytest.mark.parametrize("name", [name for name, geometry in CASES.items() if geometry[-1] == 1])
def test_images_with_the_channels_first(name, threads):
    n, size, c, o, kernel, stride, pad, dilation, group = CASES[name]
    how = dict(stride=stride, pad=pad, dilation=dilation, group=group)
    rng, x, w = drawn(n, size, c, o, kernel)
    bias, residual = rng.uniform(-1, 1, o).astype(np.float32), convolved(x, w, **how).astype(np.float32)
    got = native(x, w, bias, residual, algorithm="planes", activation="relu", **how)
    assert_near(got, np.maximum(convolved(x, w, bias, **how) + residual, 0), 2e-6)


# (width, channels in, out, kernel, stride, pad): rows that tiles cover with and without overlapping.
STEMS = {
    "3x3 by steps of 2": (224, 3, 32, 3, 2, 1),
    "3x3, no padding": (99, 3, 24, 3, 2, 0),
    "3x3, one vector of results": (50, 4, 9, 3, 1, 1),
    "more results than two vectors": (41, 2, 70, 5, 2, 2),
    "padding as wide as the kernel": (17, 3, 33, 3, 2, 3),
    "one row of taps": (31, 3, 16, 1, 2, 0),
    "a row as short as a tile": (8, 3, 20, 3, 1, 1),
    "a row shorter than a tile": (13, 3, 20, 3, 2, 1),
    "more taps than are read in place": (40, 4, 20, 9, 2, 4),
    "wide steps": (60, 3, 20, 3, 3, 1),
}


@pytest.mark.parametrize("name", STEMS)
@pytest.mark.parametrize("activation", ["none", "relu6", "hardswish"])
def test_stems_of_images_with_the_channels_first(name, activation, threads):
    width, c, o, size, stride, pad = STEMS[name]
    how = dict(stride=(stride, stride), pad=(pad,) * 4, dilation=(1, 1), group=1)
    rng, x, w = drawn(2, (11, width), c, o, (size, size))
    bias = rng.uniform(-1, 1, o).astype(np.float32)
    got = native(x, w, bias, algorithm="planes", activation=activation, **how)
    assert_near(got, ACTIVATIONS[activation](convolved(x, w, bias, **how)), 2e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_in_a_stem_stays_where_it_is(special):
    how = dict(stride=(2, 2), pad=(1, 1, 1, 1), dilation=(1, 1), group=1)
    _, x, w = drawn(1, (12, 40), 3, 20, (3, 3))
    for array, places in (x, [(0, 1, 0, 5), (0, 2, 11, 39)]), (w, [(3, 1, 0, 0), (7, 2, 2, 1)]):
        planted = array.copy()
        for place in places:
            planted[place] = special
        operands = (planted, w) if array is x else (x, planted)
        got, want = native(*operands, algorithm="planes", **how), convolved(*operands, **how)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isposinf(got), np.isposinf(want))
        np.testing.assert_array_equal(np.isneginf(got), np.isneginf(want))


def test_direct_input_gradient(case, threads):
    rng, x, w, how = case
    size = x.shape[2:]
    dy = rng.uniform(-1, 1, (x.shape[0], w.shape[0], *convolved(x, w, **how).shape[1:3])).astype(np.float32)
    want = last(family._conv_input_grad.definition.body(dy.astype(float), w.astype(float), size=size, **how))
    pack = ops.conv_pack(tensor(w), algorithm="direct", group=how["group"], transposed=True)
    got = conv_last_input_grad(
        tensor(last(dy)), pack, channels=x.shape[1], size=size, kernel=w.shape[2:], algorithm="direct", **how
    )
    assert_near(got.asnumpy(), want, 2e-6)


# Largest error as a share of the largest result; what the direct form reaches is about 3e-7.
WINOGRAD = {"winograd2": 4e-6, "winograd4": 1e-5, "winograd6": 3e-5}


@pytest.mark.parametrize("algorithm", WINOGRAD)
def test_winograd(tiled, algorithm, threads):
    rng, x, w, how = tiled
    want = convolved(x, w, **how)
    assert_near(native(x, w, algorithm=algorithm, **how), want, WINOGRAD[algorithm])
    bias, residual = rng.uniform(-1, 1, want.shape[-1]), rng.uniform(-1, 1, want.shape)
    bias, residual = bias.astype(np.float32), residual.astype(np.float32)
    got = native(x, w, bias, residual, algorithm=algorithm, activation="relu", **how)
    assert_near(got, np.maximum(convolved(x, w, bias, **how) + residual, 0), WINOGRAD[algorithm])


@pytest.mark.parametrize("algorithm", WINOGRAD)
def test_winograd_input_gradient(tiled, algorithm):
    rng, x, w, how = tiled
    size = x.shape[2:]
    dy = rng.uniform(-1, 1, (x.shape[0], w.shape[0], *convolved(x, w, **how).shape[1:3])).astype(np.float32)
    want = last(family._conv_input_grad.definition.body(dy.astype(float), w.astype(float), size=size, **how))
    pack = ops.conv_pack(tensor(w), algorithm=algorithm, transposed=True)
    got = conv_last_input_grad(
        tensor(last(dy)), pack, channels=x.shape[1], size=size, kernel=(3, 3), algorithm=algorithm, **how
    )
    assert_near(got.asnumpy(), want, WINOGRAD[algorithm])


@pytest.mark.parametrize("algorithm", WINOGRAD)
def test_winograd_error_over_many_channels(algorithm):
    _, x, w = drawn(1, (14, 14), 256, 64, (3, 3))
    how = dict(stride=(1, 1), pad=SAME, dilation=(1, 1), group=1)
    assert_near(native(x, w, algorithm=algorithm, **how), convolved(x, w, **how), WINOGRAD[algorithm])


@pytest.mark.parametrize("algorithm", ["direct", *WINOGRAD])
@pytest.mark.parametrize("parts", ["plain", "bias", "residual", "both"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_epilogue(algorithm, activation, parts):
    how = dict(stride=(1, 1), pad=SAME, dilation=(1, 1), group=1)
    rng, x, w = drawn(2, (6, 5), 50, 21, (3, 3))
    bias = rng.uniform(-4, 4, 21).astype(np.float32) if parts in ("bias", "both") else None
    residual = rng.uniform(-4, 4, (2, 6, 5, 21)).astype(np.float32) if parts in ("residual", "both") else None
    want = convolved(x, w, bias, **how)
    want = ACTIVATIONS[activation](want if residual is None else want + residual)
    got = native(x, w, bias, residual, algorithm=algorithm, activation=activation, **how)
    assert_near(got, want, WINOGRAD.get(algorithm, 2e-6))


def test_nan_stays_where_its_window_reaches():
    how = dict(stride=(1, 1), pad=SAME, dilation=(1, 1), group=1)
    _, x, w = drawn(1, (6, 6), 3, 4, (3, 3))
    x[0, 1, 0, 0] = np.nan
    got = np.isnan(native(x, w, activation="relu", **how))
    assert got[0, :2, :2].all()
    assert got.sum() == 4 * 4


def _bits_with(counts, compute):
    """`compute()` with each number of threads."""
    before, results = _native.threads(), []
    try:
        for count in counts:
            _native.set_threads(count)
            results.append(compute())
    finally:
        _native.set_threads(before)
    return results


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("algorithm", ["direct", "planes", "depthwise", *WINOGRAD])
def test_bits_do_not_depend_on_the_number_of_threads(algorithm, seed):
    rng = np.random.default_rng(seed)
    side = 3 if algorithm in WINOGRAD else int(rng.choice([1, 3, 5]))
    stride = 1 if algorithm in WINOGRAD else int(rng.integers(1, 3))
    pads = tuple(int(p) for p in rng.integers(0, side // 2 + 1, 4))
    n, c, o = (
        int(rng.integers(1, 5)),
        int(rng.choice([3, 8, 16, 40, 70])),
        int(rng.choice([7, 16, 24, 48, 64, 96])),
    )
    size = tuple(int(e) for e in rng.integers(side, 40, 2))
    if algorithm == "depthwise":
        c = o
    group = c if algorithm == "depthwise" else 1
    how = dict(stride=(stride, stride), pad=pads, dilation=(1, 1), group=group)
    _, x, w = drawn(n, size, c, o, (side, side), group, seed)
    bias = rng.uniform(-1, 1, o)
    first, *others = _bits_with(
        (1, 2, 3, 4, 7), lambda: native(x, w, bias, algorithm=algorithm, activation="relu", **how)
    )
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("size", [(4, 4), (5, 6), (7, 7), (9, 8), (14, 13)])
@pytest.mark.parametrize("side, group", [(1, 1), (3, 1), (3, 320)])
def test_few_pixels_of_many_channels_have_the_same_bits_for_any_number_of_threads(size, side, group):
    how = dict(stride=(1, 1), pad=(side // 2,) * 4, dilation=(1, 1), group=group)
    algorithm = "depthwise" if group > 1 else "direct"
    rng, x, w = drawn(1, size, 320, group if group > 1 else 180, (side, side), group)
    bias = rng.uniform(-1, 1, w.shape[0]).astype(np.float32)
    first, *others = _bits_with((1, 2, 3, 4, 7), lambda: native(x, w, bias, algorithm=algorithm, **how))
    assert_near(first, convolved(x, w, bias, **how), 4e-6)  # sums of 2,880 terms
    for other in others:
        np.testing.assert_array_equal(other, first)
