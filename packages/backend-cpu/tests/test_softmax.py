"""Softmax along rows of any length: accuracy, masks, and numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

LENGTHS = [1, 2, 7, 8, 9, 16, 31, 32, 33, 63, 100, 768, 1001]


def exact(x):
    e = np.exp(x.astype(float) - x.max(-1, keepdims=True).astype(float))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("scale", [1.0, 15.0])
def test_rows(length, scale, threads):
    x = (scale * np.random.default_rng(length).standard_normal((37, length))).astype(np.float32)
    got = ops.softmax(ms.Tensor(x), -1).asnumpy()
    # The difference from the peak is rounded before its exponential.
    np.testing.assert_allclose(got, exact(x), rtol=2e-6 + 1.2e-7 * np.ptp(x), atol=1e-37)
    log = ops.log_softmax(ms.Tensor(x), -1).asnumpy()
    np.testing.assert_allclose(log, np.log(exact(x)), rtol=1e-6, atol=1e-6 + 1.2e-7 * np.ptp(x))


@pytest.mark.parametrize("length", LENGTHS[1:])
def test_masked_positions_are_zero(length):
    x = np.random.default_rng(0).standard_normal((5, length)).astype(np.float32)
    x[:, 1::2] = -np.inf
    x[2, 1::2] = -1e9
    got = ops.softmax(ms.Tensor(x), -1).asnumpy()
    assert not got[:, 1::2].any()
    np.testing.assert_allclose(got, exact(x), rtol=2e-6)


@pytest.mark.parametrize("at", [0, 5, 17, 39])
def test_nan_fills_its_row_only(at):
    x = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    x[1, at] = np.nan
    got = ops.softmax(ms.Tensor(x), -1).asnumpy()
    assert np.isnan(got[1]).all()
    assert not np.isnan(got[[0, 2]]).any()
    for reduce in (ops.amax, ops.amin):
        np.testing.assert_array_equal(np.isnan(reduce(ms.Tensor(x), -1).asnumpy()), [False, True, False])
