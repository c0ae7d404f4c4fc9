"""Fourier transforms, windows and the short-time transform, against NumPy's."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

rng = np.random.default_rng(5)
X = rng.normal(size=(3, 4, 6)).astype(np.float32)
Z = (X + 1j * X[::-1]).astype(np.complex64)


def close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("size, axis", [(None, -1), (5, 1), (8, 0)])
def test_one_axis(name, norm, size, axis):
    x = X if name in ("rfft", "ihfft") else Z
    want = getattr(np.fft, name)(x, size, axis, norm)
    close(getattr(ops, name)(ms.Tensor(x), size, axis, norm), want)
    close(ms.jit(lambda t: getattr(ops, name)(t, size, axis, norm))(ms.Tensor(x)), want)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("sizes, axes", [(None, None), ((2, 7), None), ((3, 5), (0, 1)), (None, (1,))])
def test_several_axes(name, sizes, axes):
    x = X if name == "rfft" else Z
    if axes is None and sizes is not None:
        axes = (-2, -1)
    close(getattr(ops, name + "n")(ms.Tensor(x), sizes, axes), getattr(np.fft, name + "n")(x, sizes, axes))
    close(getattr(ops, name + "2")(ms.Tensor(x)), getattr(np.fft, name + "2")(x))


def test_hermitian_transforms_over_several_axes():
    close(ops.hfft2(ms.Tensor(Z)), np.fft.hfft(np.fft.fft(Z, axis=-2)))
    close(ops.ihfft2(ms.Tensor(X)), np.fft.ifft(np.fft.ihfft(X), axis=-2))
    assert ops.hfftn(ms.Tensor(Z)).shape == (3, 4, 10) and ops.ihfftn(ms.Tensor(X)).shape == (3, 4, 4)


@pytest.mark.parametrize(
    "dtype, result", [("int32", ms.complex64), ("float16", ms.complex64), ("float64", ms.complex128)]
)
def test_dtypes(dtype, result):
    assert ops.fft(ms.Tensor(np.ones(4, dtype))).dtype is result


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts(n):
    close(ops.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
    close(ops.rfftfreq(n, 2.0), np.fft.rfftfreq(n, 2.0))
    close(ops.fftshift(ms.Tensor(X), 1), np.fft.fftshift(X, 1))
    close(ops.ifftshift(ms.Tensor(X)), np.fft.ifftshift(X))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: ops.fft(ms.Tensor(X), norm="large"), ValueError), (lambda: ops.fft(ms.Tensor(X), 0),
        ValueError), (lambda: ops.fft(ms.Tensor(X), dim=3), ValueError), (lambda: ops.fft(ms.Tensor(1.0)),
        ValueError), (lambda: ops.fftn(ms.Tensor(X), (2, 2), (0,)), ValueError), (lambda: ops.fftfreq(2.5),
        TypeError), (lambda: ops.fftn(ms.Tensor(X), dim=(0, 0)), ValueError), (lambda: ops.fftfreq(0),
        ValueError), ],
)  # fmt: skip
def test_errors(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize(
    "window, formula",
    [
        (ops.bartlett_window, np.bartlett), (ops.blackman_window, np.blackman), (ops.hamming_window,
        np.hamming), (ops.hann_window, np.hanning), (ops.kaiser_window, lambda n: np.kaiser(n, 12.0)),
    ],
)  # fmt: skip
def test_windows(window, formula, n):
    close(window(n, False), np.abs(formula(n)))
    close(window(n), np.abs(formula(n + 1)[:-1] if n > 1 else formula(n)))


def test_window_arguments():
    assert ops.hann_window(4).dtype is ms.float64 and ops.hamming_window(4).dtype is ms.float32
    assert ops.kaiser_window(4, dtype=ms.float16).dtype is ms.float16
    close(ops.bartlett_window(ms.Tensor(3), False), np.array([0.0, 1.0, 0.0]))
    for bad, error in ((-1, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="window_length"):
            ops.hann_window(bad)
    with pytest.raises(TypeError, match="dtype"):
        ops.hann_window(4, dtype=ms.int32)


def test_stft():
    x = rng.normal(size=(2, 40)).astype(np.float32)
    window = np.hanning(12).astype(np.float32)
    found = ops.stft(ms.Tensor(x), 16, 5, 12, ms.Tensor(window), return_complex=True)
    padded = np.pad(x, [(0, 0), (8, 8)], "reflect")
    wide = np.pad(window, 2)
    pieces = np.stack([padded[:, s : s + 16] * wide for s in range(0, padded.shape[1] - 15, 5)], 1)
    close(found, np.fft.rfft(pieces).transpose(0, 2, 1))
    parts = ops.stft(ms.Tensor(x[0]), 16, center=False, normalized=True)
    assert parts.shape == (9, 7, 2) and parts.dtype is ms.float32
