"""Native matrix products against NumPy in double precision: odd and empty sizes, transpositions, threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.linalg import products as linalg
from mycelia_backend_cpu import _native

SIZES = [
    (1, 1, 1), (1, 7, 5), (7, 1, 5), (5, 7, 1), (2, 3, 4), (6, 16, 8), (13, 17, 11), (31, 33, 37),
    (4, 257, 67), (12, 50, 300), (97, 64, 127), (201, 5, 130), (6, 2100, 3), (211, 300, 600), (17, 19, 1500),
]  # fmt: skip


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def assert_product(got, want, k):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.asnumpy(), want, rtol=0, atol=3e-6 * max(k, 4) ** 0.5)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_mat_mul_with_every_transposition(size, threads):
    m, n, k = size
    for ta, tb in itertools.product((False, True), repeat=2):
        x, y = random(*((k, m) if ta else (m, k))), random(*((n, k) if tb else (k, n)))
        want = (x.T if ta else x).astype(np.float64) @ (y.T if tb else y)
        assert_product(linalg.mat_mul(ms.Tensor(x), ms.Tensor(y), ta, tb), want, k)


@pytest.mark.parametrize("size", [(64, 70, 3200), (130, 500, 784), (600, 590, 300), (2050, 49, 50)])
def test_weight_gradients_do_not_depend_on_threads(size):
    m, n, k = size
    x, y = random(k, m), random(k, n)
    before, results = _native.threads(), []
    for count in (1, 2, 3):
        _native.set_threads(count)
        results.append(linalg.mat_mul(ms.Tensor(x), ms.Tensor(y), True, False))
    _native.set_threads(before)
    assert_product(results[0], x.T.astype(np.float64) @ y, k)
    for other in results[1:]:
        np.testing.assert_array_equal(other.asnumpy(), results[0].asnumpy())


@pytest.mark.parametrize("size", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_mat_mul(size, threads):
    m, n, k = size
    product = linalg.mat_mul(ms.Tensor(np.zeros((m, k), np.float32)), ms.Tensor(np.zeros((k, n), np.float32)))
    assert product.shape == (m, n)
    assert not product.asnumpy().any()


@pytest.mark.parametrize(
    "left, right",
    [
        ((5, 3, 4), (5, 4, 2)),
        ((2, 1, 3, 4), (3, 4, 2)),
        ((8, 40, 33), (33, 20)),
        ((70, 31), (6, 31, 17)),
        ((2, 3, 150, 200), (2, 3, 200, 150)),
        ((4, 1, 1, 64), (4, 1, 64, 1)),
    ],  # fmt: skip
    ids=str,
)
def test_batch_matmul_broadcasts_and_transposes(left, right, threads):
    x, y = random(*left), random(*right)
    want = x.astype(np.float64) @ y
    for ta, tb in itertools.product((False, True), repeat=2):
        a = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if ta else x
        b = np.ascontiguousarray(np.swapaxes(y, -1, -2)) if tb else y
        assert_product(linalg.batch_matmul(ms.Tensor(a), ms.Tensor(b), ta, tb), want, x.shape[-1])


@pytest.mark.parametrize("rows", [(1,), (2,), (9,), (130,), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("features", [(1, 1), (67, 53), (84, 10), (520, 300)], ids=str)
def test_dense_adds_its_bias(rows, features, threads):
    inputs, outputs = features
    x, w, b = random(*rows, inputs), random(outputs, inputs), random(outputs)
    want = x.astype(np.float64) @ w.T
    assert_product(linalg.dense(ms.Tensor(x), ms.Tensor(w), ms.Tensor(b)), want + b, inputs)
    assert_product(linalg.dense(ms.Tensor(x), ms.Tensor(w)), want, inputs)


def test_nan_and_infinity_pass_through():
    x, y = random(9, 40), random(40, 33)
    x[2, 3], x[4, 5] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        want = x @ y
    got = linalg.mat_mul(ms.Tensor(x), ms.Tensor(y)).asnumpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
