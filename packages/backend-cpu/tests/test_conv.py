"""Native convolutions against the NumPy bodies in double precision: odd geometry, algorithms, threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.nn_ops import conv as family
from mycelia.engine.ops.nn_ops import conv_geometry
from mycelia_backend_cpu import _native

# (n, c, o, size, kernel, stride, pad, dilation, group)
CASES = {
    "lenet first layer": (32, 1, 6, (28, 28), (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "lenet second layer": (33, 6, 16, (14, 14), (5, 5), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "lenet, one image": (1, 6, 16, (14, 14), (5, 5), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "image lanes with stride and dilation": (9, 3, 5, (13, 11), (3, 2), (2, 3), (1, 0, 2, 1), (2, 1), 1),
    "image lanes in groups": (19, 4, 6, (7, 9), (3, 3), (1, 2), (1, 1, 1, 1), (1, 1), 2),
    "3x3": (2, 64, 70, (14, 15), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "3x3, deep": (3, 300, 20, (7, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "3x3 with stride": (2, 37, 41, (17, 13), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "7x7 stem": (2, 3, 64, (33, 31), (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    "1x1": (2, 67, 33, (9, 7), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 with stride": (4, 64, 32, (7, 7), (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "1x1 with padding": (1, 40, 40, (5, 5), (1, 1), (1, 1), (1, 0, 0, 2), (1, 1), 1),
    "groups": (2, 24, 36, (9, 8), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "depthwise": (2, 33, 33, (19, 21), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 33),
    "depthwise with stride": (3, 32, 32, (10, 9), (3, 3), (2, 2), (0, 1, 1, 0), (1, 1), 32),
    "depthwise, two outputs a channel": (1, 8, 16, (6, 5), (5, 3), (1, 2), (2, 1, 2, 1), (1, 1), 8),
    "rows shorter than a vector": (1, 5, 5, (4, 3), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5),
    "dilation beyond stride": (2, 20, 18, (16, 15), (3, 3), (2, 2), (3, 3, 3, 3), (3, 2), 1),
    "stride beyond kernel": (2, 17, 19, (16, 15), (2, 2), (4, 3), (0, 0, 0, 0), (1, 1), 1),
    "padding beyond kernel": (1, 18, 17, (3, 2), (2, 2), (1, 1), (3, 4, 2, 5), (1, 1), 1),
    "1 dimension": (3, 40, 35, (61,), (7,), (3,), (3, 2), (2,), 1),
    "3 dimensions": (2, 18, 20, (5, 7, 6), (3, 2, 3), (1, 2, 1), (1, 0, 1, 1, 1, 0), (1, 2, 1), 1),
    "3 dimensions, image lanes": (
        10,
        2,
        3,
        (5, 6, 7),
        (2, 3, 3),
        (2, 1, 2),
        (1, 1, 0, 0, 1, 1),
        (1, 1, 1),
        1,
    ),
    "one element": (1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "no image": (0, 3, 4, (5, 5), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "no channel": (2, 0, 3, (5, 5), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "no channel, image lanes": (8, 0, 3, (5, 5), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    n, c, o, size, kernel, stride, pad, dilation, group = request.param
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n, c, *size))
    w = rng.uniform(-1, 1, (o, c // group, *kernel))
    return x, w, rng, dict(stride=stride, pad=pad, dilation=dilation, group=group)


def assert_equal(op, inputs, attrs):
    """The kernel's result equals the body's in float64, to the rounding of sums of products in float32."""
    want = op.definition.body(*inputs, **attrs)
    got = op(*(ms.Tensor(a.astype(np.float32)) for a in inputs), **attrs).asnumpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * max(1.0, np.abs(want).max(initial=0)))


def positions(x, w, how):
    return conv_geometry.output_size(x.shape[2:], w.shape[2:], how["stride"], how["pad"], how["dilation"])


def test_forward_with_and_without_bias(case, threads):
    x, w, rng, how = case
    assert_equal(family._conv, (x, w), how)
    assert_equal(family._conv, (x, w, rng.uniform(-1, 1, w.shape[0])), how)


def test_few_channels_to_few_in_rows_of_every_length(threads):
    rng = np.random.default_rng(8)
    for width in range(7, 36):
        x = rng.uniform(-1, 1, (3, 2, 3, width))
        w = rng.uniform(-1, 1, (7, 2, 3, 5))
        x[0, :, :, -1] = np.nan  # spoils the last columns of its own image alone
        how = dict(stride=(1, 1), pad=(1, 1, 2, 2), dilation=(1, 1))
        assert_equal(family._conv, (x, w, rng.uniform(-1, 1, 7)), how)


def test_input_gradient(case, threads):
    x, w, rng, how = case
    dy = rng.uniform(-1, 1, (x.shape[0], w.shape[0], *positions(x, w, how)))
    assert_equal(family._conv_input_grad, (dy, w), dict(size=x.shape[2:], **how))


def test_weight_gradient(case, threads):
    x, w, rng, how = case
    dy = rng.uniform(-1, 1, (x.shape[0], w.shape[0], *positions(x, w, how)))
    assert_equal(family._conv_weight_grad, (x, dy), dict(kernel=w.shape[2:], **how))


def random_case(rng):
    """A geometry whose windows fit, drawn from small primes, ones and powers of two."""
    while True:
        rank = int(rng.choice([1, 2, 2, 3]))
        group = int(rng.choice([1, 1, 2, 3, 8]))
        per_group = (int(rng.choice([1, 2, 5, 17])), int(rng.choice([1, 3, 7, 16, 33])))
        size = tuple(int(v) for v in rng.integers(1, {1: 50, 2: 17, 3: 8}[rank], rank))
        kernel = tuple(int(v) for v in rng.integers(1, 5, rank))
        stride, dilation = (tuple(int(v) for v in rng.integers(1, 4, rank)) for _ in range(2))
        pad = tuple(int(v) for v in rng.integers(0, 4, 2 * rank))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        if all(n + pad[d] + pad[rank + d] >= spans[d] for d, n in enumerate(size)):
            x = rng.uniform(-1, 1, (int(rng.choice([1, 2, 9, 17])), per_group[0] * group, *size))
            w = rng.uniform(-1, 1, (per_group[1] * group, per_group[0], *kernel))
            return x, w, dict(stride=stride, pad=pad, dilation=dilation, group=group)


@pytest.mark.parametrize("seed", range(25))
def test_random_geometry_in_all_directions(seed, threads):
    rng = np.random.default_rng(seed)
    x, w, how = random_case(rng)
    dy = rng.uniform(-1, 1, (x.shape[0], w.shape[0], *positions(x, w, how)))
    assert_equal(family._conv, (x, w, rng.uniform(-1, 1, w.shape[0])), how)
    assert_equal(family._conv_input_grad, (dy, w), dict(size=x.shape[2:], **how))
    assert_equal(family._conv_weight_grad, (x, dy), dict(kernel=w.shape[2:], **how))


def test_weight_gradient_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(3)
    x, dy = (ms.Tensor(rng.uniform(-1, 1, s).astype(np.float32)) for s in ((5, 20, 17, 19), (5, 40, 17, 19)))
    results = []
    before = _native.threads()
    for count in (1, 2):
        _native.set_threads(count)
        results.append(family._conv_weight_grad(x, dy, kernel=(3, 3), pad=(1, 1, 1, 1)).asnumpy())
    _native.set_threads(before)
    assert (results[0] == results[1]).all()
    assert math.isfinite(results[0].sum())
