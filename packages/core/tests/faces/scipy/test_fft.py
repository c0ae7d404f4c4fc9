"""scipy.fft: cosine transforms by their definition, their inverses and gradients."""

import numpy as np
import pytest

import mycelia as ms
from mycelia.scipy import fft

X = np.array([[0.5, -1, 2], [3, 0.25, 1]], np.float32)


def matrix(n):
    j, k = np.meshgrid(np.arange(n), np.arange(n))
    rows = np.cos(np.pi * (2 * j + 1) * k / (2 * n)) * np.sqrt(2 / n)
    rows[0] /= np.sqrt(2)
    return rows


@pytest.mark.parametrize("n", [None, 2, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "complex64"])
def test_dct_is_a_product_with_cosines(n, dtype):
    x = X.astype(dtype)
    size = n or 3
    padded = np.pad(x, ((0, 0), (0, 2)))[:, :size]
    found = fft.dct(ms.Tensor(x), n=n)
    np.testing.assert_allclose(found.asnumpy(), padded @ matrix(size).T, 1e-5, 1e-5)
    kept = {"float64": ms.float64, "complex64": ms.complex64}
    assert found.dtype == kept.get(dtype, ms.float32)
    np.testing.assert_allclose(fft.idct(found).asnumpy(), padded, 1e-5, 1e-5)


def test_several_axes():
    both = matrix(2) @ X @ matrix(3).T
    np.testing.assert_allclose(fft.dctn(ms.Tensor(X)).asnumpy(), both, 1e-5, 1e-6)
    np.testing.assert_allclose(fft.idctn(ms.Tensor(both)).asnumpy(), X, 1e-5, 1e-6)
    assert fft.dctn(ms.Tensor(X), s=(4,)).shape == (2, 4)
    np.testing.assert_allclose(fft.dctn(ms.Tensor(X), axes=(0,)).asnumpy(), matrix(2) @ X, 1e-5, 1e-6)


def test_the_gradient_is_the_inverse():
    found = ms.grad(lambda x: (fft.dct(x, axis=0) * ms.Tensor(X)).sum())(ms.Tensor(X))
    np.testing.assert_allclose(found.asnumpy(), matrix(2).T @ X, 1e-5, 1e-6)


@pytest.mark.parametrize(
    "arguments, kind",
    [
        (dict(type=3), ValueError),
        (dict(norm="forward"), ValueError),
        (dict(n=0), ValueError),
        (dict(axis=2), ValueError),
        (dict(n=1.5), TypeError),
    ],
)
def test_wrong_arguments(arguments, kind):
    with pytest.raises(kind):
        fft.dct(ms.Tensor(X), **arguments)
    with pytest.raises(ValueError):
        fft.dctn(ms.Tensor(X), axes=(0, 0))
    with pytest.raises(ValueError):
        fft.idctn(ms.Tensor(X), s=(2, 2), axes=(0,))
