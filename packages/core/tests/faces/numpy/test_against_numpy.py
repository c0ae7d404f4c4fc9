"""Combinations of arguments of `mycelia.numpy` against NumPy."""

import itertools

import numpy as np
import pytest

import mycelia as ms
import mycelia.numpy as mnp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of what has no moments
RANDOM = np.random.RandomState(3)


def some(*shape):
    return (RANDOM.randn(*shape) * 3).round(2).astype(np.float32)


VECTORS = [some(n) for n in (0, 1, 2, 5)] + [np.array([1, 1, 2, 2], np.float32), np.array([3, -1], np.int32)]
ARRAYS = [*VECTORS, some(1, 1), some(2, 3), some(0, 3), some(3, 0), some(2, 3, 4)]
WITH_NAN = [
    np.array(v, np.float32)
    for v in ([1, np.nan, 3], [np.nan] * 2, [[1, np.nan], [np.nan, np.nan], [3, 4]], [[2.0, 5.0, 9.0]])
]


def tensors(value):
    if isinstance(value, np.ndarray):
        return ms.Tensor(value)
    if isinstance(value, (tuple, list)) and any(isinstance(v, np.ndarray) for v in value):
        return type(value)(map(tensors, value))
    return value


def require_equal(found, expected, case):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), case
        for one, other in zip(found, expected):
            require_equal(one, other, case)
        return
    found = found.asnumpy()
    assert found.shape == np.shape(expected), case
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3, err_msg=str(case))


def compare(name, *args, **kwargs):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*args, **kwargs)
    found = getattr(mnp, name)(*map(tensors, args), **{k: tensors(v) for k, v in kwargs.items()})
    require_equal(found, expected, (name, args, kwargs))


def axes(array):
    return range(-array.ndim, array.ndim)


def test_diff():
    for a in ARRAYS:
        for axis, n in itertools.product(axes(a), (0, 1, 2, 3)):
            compare("diff", a, n=n, axis=axis)
            two = list(a.shape)
            two[axis] = 2
            ends = [1.0, np.ones(two, np.float32)]
            for first, last in itertools.product([None, *ends], repeat=2):
                given = {k: v for k, v in (("prepend", first), ("append", last)) if v is not None}
                compare("diff", a, n=n, axis=axis, **given)


BINS = [1, 2, 10, [2], [1, 2], [-5.0, -1.0, 0.0, 0.5, 5.0], [0, 0, 1], range(-3, 4), range(3)]


def test_histogram():
    for a, bins, limits in itertools.product(ARRAYS, BINS, (None, (-2, 2), (0, 0))):
        for weighted, density in itertools.product((False, True), repeat=2):
            given = {} if limits is None else {"range": limits}
            if weighted:
                given["weights"] = np.linspace(0.5, 2, a.size, dtype=np.float32).reshape(a.shape)
            compare("histogram", a, bins=bins, density=density, **given)
        compare("histogram_bin_edges", a, bins=bins)


def test_histogram_refuses_falling_bins():
    with pytest.raises(ValueError, match="must not fall"):
        mnp.histogram(ms.Tensor([1.0, 2.0]), bins=[3, 2, 1])


def test_the_largest_element_is_in_the_last_bin():
    for seed in range(60):
        a = np.random.RandomState(seed).randn(7).astype(np.float32)
        for bins in (1, 3, 7):
            assert mnp.histogram(ms.Tensor(a), bins=bins)[0].asnumpy().sum() == 7


def test_histograms_of_points():
    for n, density in itertools.product((1, 5, 9), (False, True)):
        x, y = some(n), some(n)
        for bins in (3, [2, 3], [[-9.0, 0, 9], [-9.0, 9.0]], [-9.0, 0.0, 9.0], [4, [-9.0, 1, 9]]):
            compare("histogram2d", x, y, bins=bins, density=density)
            compare("histogram2d", x, y, bins=bins, density=density, weights=np.abs(some(n)))


def test_moments_and_their_degrees_of_freedom():
    for a, ddof, keep in itertools.product([*ARRAYS, *WITH_NAN], (0, 1, 2, 3), (False, True)):
        if a.dtype.kind != "f":
            continue
        for axis, name in itertools.product((None, *axes(a)), ("var", "std", "nanvar", "nanstd")):
            compare(name, a, axis=axis, ddof=ddof, keepdims=keep)


def test_extremes_among_nan():
    for a, keep in itertools.product(WITH_NAN, (False, True)):
        for axis, name in itertools.product((None, *axes(a)), ("nanmax", "nanmin", "nanmean", "nansum")):
            compare(name, a, axis=axis, keepdims=keep)


def test_sets():
    for a, b in itertools.product(VECTORS, [*VECTORS, np.array([7, -1], np.float32)]):
        for inverted in (False, True):
            compare("isin", a, b, invert=inverted)
        compare("setdiff1d", a, b)
        compare("intersect1d", a, b, return_indices=True)


def test_sums_of_powers_with_infinities():
    x, y = np.meshgrid(*[np.array([-np.inf, -2, 0, 3, np.inf], np.float32)] * 2)
    compare("logaddexp2", x, y)
    compare("logaddexp", x, y)


def test_rearranging():
    for a in ARRAYS:
        for axis, shift in itertools.product(axes(a), (0, 1, -1, 7)):
            compare("roll", a, shift, axis=axis)
        for axis in axes(a):
            compare("flip", a, axis=axis)
            compare("cumsum", a, axis=axis)
            compare("concatenate", (a, a), axis=axis)
            compare("unwrap", a, axis=axis)
        if a.ndim > 1:
            for k, pair in itertools.product((-5, -1, 0, 2, 3), itertools.permutations(range(a.ndim), 2)):
                compare("rot90", a, k, axes=pair)
        for b in ARRAYS:
            if a.dtype == b.dtype:
                compare("kron", a, b)


def test_padding():
    modes = [("constant", {"constant_values": (1, 2)}), ("edge", {}), ("wrap", {}), ("reflect", {}),
             ("reflect", {"reflect_type": "odd"}), ("symmetric", {}), ("maximum", {}), ("minimum", {}),
             ("mean", {}), ("linear_ramp", {"end_values": (1, 5)})]  # fmt: skip
    for a in (a for a in ARRAYS if a.size and a.dtype.kind == "f"):
        for width, (mode, given) in itertools.product((0, 1, (2, 1), ((1, 2),) * a.ndim), modes):
            compare("pad", a, width, mode, **given)
