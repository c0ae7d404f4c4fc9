"""What the samples of the reductions do not show: both generations of signatures,
dtypes, NaN, precision, errors.
"""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops

X = np.array([[3, 1, 2], [4, 0, 5]], np.float32)


@pytest.fixture
def x():
    return Tensor(X)


def test_both_spellings_of_sum(x):
    expected = X.sum(1, keepdims=True).tolist()
    assert x.sum(1, keepdims=True).asnumpy().tolist() == expected
    assert x.sum(axis=1, keepdims=True).asnumpy().tolist() == expected
    assert x.sum(dim=1, keepdim=True).asnumpy().tolist() == expected
    assert x.sum(1, True).asnumpy().tolist() == expected
    assert x.sum(1, ms.int32, True).dtype is ms.int32
    assert x.sum(initial=3).asnumpy() == 18


def test_max_with_a_dim_gives_the_pair_and_otherwise_the_value(x):
    value, place = x.max(1)
    assert value.asnumpy().tolist() == [3, 5] and place.asnumpy().tolist() == [0, 2]
    assert x.max(axis=1, keepdims=True).asnumpy().tolist() == [[3], [5]]
    assert x.max().asnumpy() == x.max((0, 1)).asnumpy() == 5
    assert len(x.min(axis=1, return_indices=True)) == 2
    value, place = ops.max(x)
    assert value.asnumpy() == 5 and place.dtype is ms.int64
    assert ops.amax(x, 1, initial=3.5).asnumpy().tolist() == [3.5, 5]


def test_dtypes_of_results(x):
    i = x.astype(ms.int32)
    assert ops.sum(i).dtype is ops.prod(i).dtype is ms.int64
    assert ops.mean(i).dtype is ms.int32 and ops.mean(i).asnumpy() == 2
    assert ops.argmax(x).dtype is ms.int64 and ops.argmin(x).dtype is ms.int32
    assert ops.count_nonzero(x).dtype is ms.int32
    assert ops.all(x).dtype is ms.bool_
    assert ops.cumsum(i, 0).dtype is ms.int32 and ops.cumprod(i, 0).dtype is ms.int64


def test_an_empty_tuple_of_axes_means_all(x):
    assert ops.sum(x, ()).asnumpy() == 15 and ops.mean(x, ()).asnumpy() == 2.5


def test_axes_are_checked(x):
    with pytest.raises(ValueError, match="axis"):
        ops.sum(x, 2)
    with pytest.raises(ValueError, match="twice"):
        ops.sum(x, (0, -2))
    with pytest.raises(ValueError, match="extent 0"):
        ops.amax(Tensor(np.zeros((0, 3), np.float32)), 0)


@pytest.mark.parametrize("find", [ops.amin, ops.amax, ops.argmin, ops.argmax, ops.max, ops.min])
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.int32])
def test_an_empty_axis_has_no_extreme_even_if_the_result_is_empty(find, dtype):
    x = ops.zeros((0, 3, 0), dtype)
    for call in (find, ms.jit(find)):
        with pytest.raises(ValueError, match="extent 0"):
            call(x, 0)
    found = find(x, 1)
    assert (found[0] if isinstance(found, tuple) else found).shape == (0, 0)


def test_nan_is_the_extreme():
    x = Tensor([1.0, float("nan"), 3.0])
    assert np.isnan(ops.amax(x).asnumpy()) and np.isnan(ops.amin(x).asnumpy())
    assert ops.argmax(x).asnumpy() == 1
    assert ops.nanmean(x).asnumpy() == 2 and ops.nansum(x).asnumpy() == 4


def test_long_sums_keep_their_digits():
    x = np.random.default_rng(0).uniform(0, 1, (3, 400_000)).astype(np.float32)
    exact = x.astype(np.float64).sum(1)
    np.testing.assert_allclose(ops.sum(Tensor(x), 1).asnumpy(), exact, rtol=1.2e-7)
    np.testing.assert_allclose(ops.sum(Tensor(np.ascontiguousarray(x.T)), 0).asnumpy(), exact, rtol=1e-6)


def test_variance_of_numbers_far_from_zero():
    x = np.random.default_rng(0).normal(1000, 1, 10_000).astype(np.float32)
    np.testing.assert_allclose(
        ops.var(Tensor(x), None, 1).asnumpy(), x.astype(np.float64).var(ddof=1), rtol=1e-5
    )
    np.testing.assert_allclose(Tensor(X).std(0, 1).asnumpy(), X.std(0, ddof=1), rtol=1e-6)


def test_norms(x):
    cases = {"fro": 7.4161983, "nuc": 8.6008008, 1: 7.0, float("inf"): 9.0}
    for order, expected in cases.items():
        np.testing.assert_allclose(ops.norm(x, order).asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(ops.norm(x, 3, 1, True).asnumpy(), [[3.3019273], [5.7387939]], rtol=1e-6)
    with pytest.raises(ValueError, match="ord"):
        ops.matrix_norm(x, 3)


def test_the_gradient_of_the_euclidean_norm_at_zero_is_zero():
    assert ms.grad(lambda v: ops.norm(v))(Tensor([0.0, 0.0])).asnumpy().tolist() == [0, 0]


def test_ties_share_the_gradient_of_the_maximum():
    gradient = ms.grad(lambda v: ops.amax(v))(Tensor([2.0, 1.0, 2.0]))
    assert gradient.asnumpy().tolist() == [0.5, 0, 0.5]


def test_histogram_and_quantile(x):
    assert ops.histc(x, 4).asnumpy().tolist() == [2, 1, 1, 2]
    assert ops.quantile(x, 0.5).asnumpy() == 2.5
    np.testing.assert_allclose(
        ops.quantile(x, 0.25, 1, True).asnumpy(), np.quantile(X, 0.25, 1, keepdims=True)
    )
    assert ops.bincount(Tensor([1, 2, 2]), minlength=4).asnumpy().tolist() == [0, 1, 2, 0]


def test_median_is_the_lower_one_and_gives_its_place(x):
    value, place = ops.median(Tensor([4.0, 1.0, 3.0, 2.0]))
    assert (value.asnumpy(), place.asnumpy()) == (2, 3)
    assert ops.median(x)[0].asnumpy().tolist() == [2, 4]


def test_differences_and_the_trapezoidal_rule(x):
    assert ops.diff(x).asnumpy().tolist() == np.diff(X).tolist()
    assert ops.diff(x, 1, 0, prepend=x).asnumpy().tolist() == np.diff(X, 1, 0, prepend=X).tolist()
    assert ops.trapz(x, dx=2.0, dim=0).asnumpy().tolist() == [7, 1, 7]


def test_covariance(x):
    np.testing.assert_allclose(ops.cov(x).asnumpy(), np.cov(X), rtol=1e-6)
    counts, weights = np.array([1, 2, 1]), np.array([0.5, 1.0, 2.0], np.float32)
    given = ops.cov(x, fweights=Tensor(counts), aweights=Tensor(weights)).asnumpy()
    np.testing.assert_allclose(given, np.cov(X, fweights=counts, aweights=weights), rtol=1e-5)
