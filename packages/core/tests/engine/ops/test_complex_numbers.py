"""Complex numbers: parts and gradients in the convention of users."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

Z = np.array([[0.5 + 1j, -2 + 0.25j], [1.5 - 0.75j, -0.3 - 2j]], np.complex64)


@pytest.mark.parametrize(
    "function, expected",
    [
        (ops.real, np.real), (ops.imag, np.imag), (ops.conj, np.conj), (ops.angle, np.angle),
        (ops.abs, lambda z: np.abs(z).astype(np.complex64)), (ops.sign, lambda z: z / np.abs(z)),
        (ops.sigmoid, lambda z: 1 / (1 + np.exp(-z))), (lambda z: z**2, np.square),
        (lambda z: ops.cumprod(z, 0), lambda z: np.cumprod(z, 0)),
        (ops.norm, lambda z: np.linalg.norm(z).astype(np.complex64)),
        (ops.view_as_real, lambda z: np.stack([z.real, z.imag], -1)),
    ],
)  # fmt: skip
def test_values(function, expected):
    got, want = function(ms.Tensor(Z)), expected(Z)
    assert got.asnumpy().dtype == want.dtype
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5)
    np.testing.assert_allclose(ms.jit(lambda z: function(z))(ms.Tensor(Z)).asnumpy(), want, rtol=1e-5)


def test_polar():
    z = ops.polar(ms.Tensor([2.0, 1.0]), ms.Tensor([0.0, np.pi / 2]))
    assert z.dtype is ms.complex64
    np.testing.assert_allclose(z.asnumpy(), [2, 1j], atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: ops.abs(z).sum(), lambda z: ops.real(z * z), lambda z: ops.imag(ops.exp(z)),
        lambda z: ops.real(ops.log(z)), lambda z: ops.angle(z), lambda z: ops.real(ops.conj(z) * z),
        lambda z: ops.real(ops.matmul(z, z)), lambda z: ops.real(ops.acosh(z)),
        lambda z: ops.norm(z), lambda z: ops.view_as_real(ops.sqrt(z)), lambda z: ops.real(z / (z + 1)),
        lambda z: ops.abs(ops.fft(z, 3)), lambda z: ops.irfft(z, 3) ** 2, lambda z: ops.hfft(z) ** 2,
        lambda z: ops.abs(ops.ifft2(z)),
    ],
)  # fmt: skip
def test_gradient_points_uphill(function):
    """The gradient of a real function is df/dx + i df/dy."""

    def total(z):
        return ops.real(ops.cast(function(z), ms.complex128)).sum()

    found = ms.grad(total)(ms.Tensor(Z.astype(np.complex128))).asnumpy()
    for place in np.ndindex(Z.shape):
        for step in (1e-6, 1e-6j):
            shift = np.zeros(Z.shape, np.complex128)
            shift[place] = step
            slope = float(total(ms.Tensor(Z + shift)) - total(ms.Tensor(Z - shift))) / 2e-6
            want = found[place].real if step == 1e-6 else found[place].imag
            np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-5)


def test_gradient_of_a_real_factor_is_real():
    x = ms.Tensor(np.ones(2, np.float32))
    g = ms.grad(lambda x: ops.real(x * ms.Tensor(Z)).sum())(x)
    assert g.dtype is ms.float32
    np.testing.assert_allclose(g.asnumpy(), Z.real.sum(0))


def test_errors():
    with pytest.raises(TypeError, match="angle"):
        ops.angle(ms.Tensor([1.0]))
    with pytest.raises(TypeError, match="view_as_real"):
        ops.view_as_real(ms.Tensor([1.0]))
