"""Native pooling against the NumPy bodies: odd geometry, ties, NaN and infinities, 1 and 2 threads."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.nn_ops import adaptive_pool as adaptive_family
from mycelia.engine.ops.nn_ops import average_pool
from mycelia.engine.ops.nn_ops import pool as family


def assert_equal(op, inputs, attrs):
    want = op.definition.body(*inputs, **attrs)
    got = op(*(ms.Tensor(a) for a in inputs), **attrs).asnumpy()
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def random_case(rng):
    """x with ties or special values, and windows that fit it."""
    while True:
        rank = int(rng.choice([1, 2, 2, 3]))
        size = tuple(int(v) for v in rng.integers(1, {1: 60, 2: 22, 3: 9}[rank], rank))
        kernel, stride = (tuple(int(v) for v in rng.integers(1, 5, rank)) for _ in range(2))
        dilation = tuple(int(v) for v in rng.choice([1, 1, 2, 3], rank))
        if rng.random() < 0.3:
            kernel = stride = (2,) * rank
            dilation = (1,) * rank
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pad = (
            tuple(int(rng.integers(0, s)) for s in spans + spans) if rng.random() < 0.6 else (0,) * (2 * rank)
        )
        if all(n + pad[d] + pad[rank + d] >= spans[d] for d, n in enumerate(size)):
            break
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 5)), *size)
    x = rng.integers(-4, 5, shape).astype(np.float32)
    if rng.random() < 0.3:
        x.reshape(-1)[rng.integers(0, x.size, x.size // 5 + 1)] = rng.choice([np.nan, -np.inf, np.inf])
    return x, dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, ceil=bool(rng.random() < 0.4))


@pytest.mark.parametrize("seed", range(40))
def test_maximum_of_random_windows(seed, threads):
    rng = np.random.default_rng(seed)
    x, how = random_case(rng)
    y = family._max_pool.definition.body(x, **how)
    assert_equal(family._max_pool, (x,), how)
    assert_equal(family._max_pool_index, (x,), how)
    assert_equal(family._max_pool_grad, (x, rng.uniform(-1, 1, y.shape).astype(np.float32)), how)


def test_two_by_two_of_every_width(threads):
    rng = np.random.default_rng(2)
    for width in range(2, 71):
        x = rng.integers(-9, 9, (2, 3, 6, width)).astype(np.float32)
        x[rng.random(x.shape) < 0.1] = np.nan
        assert_equal(family._max_pool, (x,), dict(kernel=(2, 2), stride=(2, 2)))


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("seed", range(40))
def test_maximum_with_the_channels_last(seed, threads):
    rng = np.random.default_rng(seed)
    x, how = random_case(rng)
    x = np.repeat(x, int(rng.choice([1, 5, 20])), 1)
    dy = rng.uniform(-1, 1, family._max_pool.definition.body(x, **how).shape).astype(np.float32)
    how["data_format"] = "NHWC"
    assert_equal(family._max_pool, (last(x),), how)
    assert_equal(family._max_pool_grad, (last(x), last(dy)), how)


@pytest.mark.parametrize("seed", range(40))
def test_mean_of_random_windows(seed, threads):
    rng = np.random.default_rng(seed)
    x, how = random_case(rng)
    x = rng.uniform(-1, 1, x.shape).astype(np.float32)
    rank = x.ndim - 2
    kernel = tuple((k - 1) * d + 1 for k, d in zip(how["kernel"], how["dilation"], strict=True))
    how = dict(kernel=kernel, stride=how["stride"], pad=how["pad"], ceil=how["ceil"])
    how |= dict(count_include_pad=bool(rng.random() < 0.5), divisor=int(rng.choice([0, 0, 3])))
    y = average_pool._avg_pool.definition.body(x, **how)
    assert_equal(average_pool._avg_pool, (x,), how)
    dy = rng.uniform(-1, 1, y.shape).astype(np.float32)
    assert_equal(average_pool._avg_pool_grad, (dy,), dict(size=x.shape[2:], **how))
    turned = dict(data_format="NHWC", **how)
    assert_equal(average_pool._avg_pool, (last(x),), turned)
    assert_equal(average_pool._avg_pool_grad, (last(dy),), dict(size=x.shape[2:], **turned))

    size = tuple(int(v) for v in rng.integers(1, 8, rank)) if rng.random() < 0.7 else (1,) * rank
    assert_equal(adaptive_family._adaptive_avg_pool, (x,), dict(size=size))
    dy = rng.uniform(-1, 1, (*x.shape[:2], *size)).astype(np.float32)
    assert_equal(adaptive_family._adaptive_avg_pool_grad, (dy,), dict(size=x.shape[2:]))
    assert_equal(adaptive_family._adaptive_max_pool, (x,), dict(size=size))
    assert_equal(adaptive_family._adaptive_max_pool_index, (x,), dict(size=size))


@pytest.mark.parametrize(
    "shape", [(3, 4, 28, 28), (2, 16, 10, 10), (1, 3, 2, 2), (2, 2, 9, 5), (1, 1, 33, 35)]
)
def test_two_by_two_gradient_with_ties(shape, threads):
    rng = np.random.default_rng(1)
    x = np.maximum(rng.integers(-3, 3, shape), 0).astype(np.float32)  # what relu leaves: many equal zeros
    dy = rng.uniform(-1, 1, (*shape[:2], shape[2] // 2, shape[3] // 2)).astype(np.float32)
    assert_equal(family._max_pool_grad, (x, dy), dict(kernel=(2, 2), stride=(2, 2)))


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_large_planes_go_in_bands(data_format, stride, threads):
    rng = np.random.default_rng(stride)
    x = rng.integers(-9, 9, (1, 3, 131, 67)).astype(np.float32)
    how = dict(kernel=(3, 3), stride=(stride, stride), pad=(1, 1, 1, 1))
    dy = rng.uniform(-1, 1, family._max_pool.definition.body(x, **how).shape).astype(np.float32)
    x, dy = (x, dy) if data_format == "NCHW" else (last(x), last(dy))
    assert_equal(family._max_pool, (x,), dict(data_format=data_format, **how))
    assert_equal(family._max_pool_grad, (x, dy), dict(data_format=data_format, **how))


def test_index_outside_the_plane_is_an_error():
    x, index = ms.Tensor(np.ones((1, 1, 2, 2), np.float32)), ms.Tensor(np.full((1, 1, 1, 1), 4, np.int64))
    with pytest.raises(Exception, match="index 4 is outside the plane of 4 elements"):
        family._pool_take(x, index)
