"""mycelia.numpy as a user of NumPy would use it; dtypes and values as MindSpore 2.10 gives them."""

import numpy as np
import pytest

import mycelia as ms
import mycelia.numpy as mnp


def ramp(*shape, dtype="float32"):
    return ms.Tensor((np.arange(int(np.prod(shape))).reshape(shape) * 0.37 - 1).astype(dtype))


def ints(*shape, dtype="int32"):
    return ms.Tensor(((np.arange(int(np.prod(shape))).reshape(shape) * 7) % 5 - 1).astype(dtype))


def test_every_name_is_there():
    assert all(getattr(mnp, name) is not None for name in mnp.__all__)


DTYPES = [
    (lambda: mnp.array([1, 2]), "int32"),
    (lambda: mnp.array([1, 2.5]), "float32"),
    (lambda: mnp.array([True, False]), "bool"),
    (lambda: mnp.cos(ints(3, dtype="int8")), "float16"),
    (lambda: mnp.cos(ints(3, dtype="int64")), "float32"),
    (lambda: mnp.add(ramp(3, dtype="float16"), 2.5), "float32"),
    (lambda: mnp.add(ints(3), ints(3, dtype="int64")), "int64"),
    (lambda: mnp.maximum(ints(3), 2.5), "int32"),
    (lambda: mnp.divide(ints(3), ints(3)), "float32"),
    (lambda: mnp.float_power(ints(3), ints(3, dtype="int64")), "float32"),
    (lambda: mnp.exp(ramp(3), dtype=mnp.float16), "float16"),
    (lambda: mnp.sum(ints(2, 3)), "int64"),
    (lambda: mnp.mean(ints(2, 3)), "int32"),
    (lambda: mnp.cumsum(ints(3, dtype="int8")), "int32"),
    (lambda: mnp.argmax(ramp(3)), "int64"),
    (lambda: mnp.argmin(ramp(3)), "int32"),
    (lambda: mnp.nanmean(ints(3)), "float32"),
    (lambda: mnp.digitize(ramp(3), [0.0, 1.0]), "int32"),
    (lambda: mnp.bincount([1, 2, 2]), "float32"),
    (lambda: mnp.where([True, False], [1, 2], [3.0, 4]), "float32"),
    (lambda: mnp.linspace(0, 5, 6, dtype=mnp.int32), "int32"),
]


@pytest.mark.parametrize("make, name", DTYPES)
def test_dtypes(make, name):
    assert make().dtype.name == name


VALUES = [
    (lambda: mnp.arange(0, 1, 0.3), [0, 0.3, 0.6, 0.9]),
    (lambda: mnp.linspace([0, 1], [2, 3], 3, axis=1), [[0, 1, 2], [1, 2, 3]]),
    (lambda: mnp.geomspace(1, 1000, 4), [1, 10, 100, 1000]),
    (lambda: mnp.mgrid[0:2, 0:1:2j], [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]),
    (lambda: mnp.tri(2, 3, 1), [[1, 1, 0], [1, 1, 1]]),
    (lambda: mnp.diag(ints(3, 3), -1), [0, 3]),
    (lambda: mnp.vander([1, 2, 3]), [[1, 1, 1], [4, 2, 1], [9, 3, 1]]),
    (lambda: mnp.pad([1, 2, 3], (2, 1), "reflect"), [3, 2, 1, 2, 3, 2]),
    (lambda: mnp.pad([1.0, 2.0], (2, 1), "linear_ramp", end_values=3), [3, 2, 1, 2, 3]),
    (lambda: mnp.remainder(ints(3), 0), [0, 0, 0]),
    (lambda: mnp.divmod(ints(3) + 2, 2.5)[1], [1, 0.5, 0]),
    (lambda: mnp.lcm(mnp.arange(1, 4), mnp.array(20)), [20, 20, 60]),
    (lambda: mnp.clip(ints(5), 0.5, 2), [0, 1, 2, 0, 2]),
    (lambda: mnp.sum(ints(2, 3), axis=0, initial=2.5), [1.5, 5.5, 4.5]),
    (lambda: mnp.amax(ramp(2, 3), 0, where=ms.Tensor([True, False, True]), initial=-5), [0.11, -5, 0.85]),
    (lambda: mnp.norm(ramp(2, 3), ord=float("inf")), 1.89),
    (lambda: mnp.nansum(ms.Tensor([1, np.nan, 2], ms.float32)), 3),
    (lambda: mnp.average(ints(2, 3), 0, ints(2, 3) + 2), [0, 1, 2]),
    (lambda: mnp.histogram([1, 2, 1], bins=[0, 1, 2, 3])[0], [0, 2, 1]),
    (lambda: mnp.cov([[1, 2], [3, 5]]), [[0.5, 1], [1, 2]]),
    (lambda: mnp.searchsorted([1, 2, 3], 2.5, "right"), 2),
    (lambda: mnp.digitize(ints(4), [3, 1]), [2, 1, 0, 2]),
    (lambda: mnp.interp([0, 1.5, 9], [1, 2, 3], [3, 2, 0], right=-9), [3, 2.5, -9]),
    (lambda: mnp.convolve([1, 2, 3], [0, 1, 0.5], "same"), [1, 2.5, 4]),
    (lambda: mnp.polyint([6, 2], 2, k=[1, 2]), [1, 1, 1, 2]),
    (lambda: mnp.polyval([1, 2, 3], 2), 11),
    (lambda: mnp.trapz([1, 2, 3], x=[4, 6, 8]), 8),
    (lambda: mnp.gradient([1.0, 4.0, 9.0]), [3, 4, 5]),
    (lambda: mnp.cross([1, 2, 3], [4, 5, 6]), [-3, 6, -3]),
    (lambda: mnp.tensordot(ramp(2, 3), ramp(4, 3), (1, 1)), np.tensordot(ramp(2, 3), ramp(4, 3), (1, 1))),
    (lambda: mnp.roll(ramp(2, 3), (1, 2), (0, 1)), np.roll(ramp(2, 3), (1, 2), (0, 1))),
    (lambda: mnp.repeat([1, 2], [2, 3]), [1, 1, 2, 2, 2]),
    (lambda: mnp.choose([0, 5], [[1, 2], [3, 4]], mode="wrap"), [1, 4]),
    (lambda: mnp.select([ramp(3) > -0.5], [ints(3)], 2.5), [2, 2, 3]),
    (lambda: mnp.piecewise(ramp(3), [ramp(3) < -0.5], [lambda x: -x, 9]), [1, 0.63, 9]),
    (lambda: mnp.unique(ms.Tensor([3, 1, 3])), [3, 1]),
    (lambda: mnp.intersect1d([1, 2, 3], [3, 2, 4]), [2, 3]),
    (lambda: mnp.isin([[1, 2]], [2]), [[False, True]]),
    (lambda: mnp.unravel_index([3, 5], (2, 3))[1], [0, 2]),
    (lambda: mnp.apply_along_axis(mnp.sum, 0, ints(2, 3)), [-1, 3, 2]),
]


@pytest.mark.parametrize("make, expected", VALUES)
def test_values(make, expected):
    np.testing.assert_allclose(make().asnumpy(), expected, rtol=1e-5, atol=1e-6)


REFUSED = [
    (lambda: mnp.array(np.ones(2)), TypeError),
    (lambda: mnp.add(True, False), TypeError),
    (lambda: mnp.less_equal(2, 3), TypeError),
    (lambda: mnp.abs(2), AttributeError),
    (lambda: mnp.dot(ramp(3), ints(3)), TypeError),
    (lambda: mnp.max(ramp(3), where=ms.Tensor([True, False, True])), ValueError),
    (lambda: mnp.ones(-1), ValueError),
    (lambda: mnp.arange(0, 5, 0), ZeroDivisionError),
    (lambda: mnp.split(ramp(6), 4), ValueError),
    (lambda: mnp.choose([0], [[1]], mode="raise"), NotImplementedError),
    (lambda: mnp.reshape([1, 2], (2, 1)), TypeError),
]


@pytest.mark.parametrize("make, kind", REFUSED)
def test_refused(make, kind):
    with pytest.raises(kind):
        make()


FUNCTIONS = [
    lambda x: mnp.sum(mnp.exp(x) + mnp.add(x, 1) * mnp.hypot(x, 2.0)),
    lambda x: mnp.std(x) + mnp.norm(x) + mnp.trapz(x * x),
    lambda x: mnp.sum(mnp.pad(mnp.where(x > 0, x * x, 0), 1) * 2),
    lambda x: mnp.sum(mnp.concatenate((x, mnp.outer(x, x).reshape(-1))) + mnp.convolve(x, x)[0]),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_and_differentiated(function):
    x = ramp(5)
    np.testing.assert_allclose(ms.jit(function)(x).asnumpy(), function(x).asnumpy(), rtol=1e-5)
    step, numeric = 1e-2, []
    for i in range(5):
        off = np.zeros(5, np.float32)
        off[i] = step
        high, low = (function(x + ms.Tensor(sign * off)).item() for sign in (1, -1))
        numeric.append((high - low) / (2 * step))
    np.testing.assert_allclose(ms.grad(function)(x).asnumpy(), numeric, rtol=2e-2, atol=2e-2)
