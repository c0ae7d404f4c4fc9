"""Window functions and the short-time Fourier transform that uses them."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.axes import swapaxes
from mycelia.engine.ops.arrays.create import arange, ones
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.complex_numbers import view_as_real
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.signal.fourier import fft, rfft


def _window(name, length, periodic, dtype, shape, default=dtypes.float32):
    """``shape(i / (n - 1), n)`` for i = 0 .. n - 1; a periodic window leaves out the last of n + 1 points."""
    if is_tensor(length):
        if length.dtype not in (dtypes.int32, dtypes.int64) or length.ndim:
            raise errors.type_error(
                f"For '{name}', 'window_length' must be an int or a 0-d integer Tensor, but got {length!r}."
            )
        length = int(length)
    if isinstance(length, bool) or not isinstance(length, int):
        raise errors.type_error(f"For '{name}', 'window_length' must be an int, but got {length!r}.")
    if not isinstance(periodic, bool):
        raise errors.type_error(f"For '{name}', 'periodic' must be a bool, but got {periodic!r}.")
    if length < 0:
        raise errors.value_error(f"For '{name}', 'window_length' must not be negative, but got {length}.")
    dtype = default if dtype is None else dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise errors.type_error(f"For '{name}', 'dtype' must be floating, but got {dtype}.")
    points = length + 1 if periodic and length > 1 else length
    if length < 2:
        return ones(length, dtype)
    return ops.cast(shape(arange(length, dtype=dtypes.float64) / (points - 1)), dtype=dtype)


def _cosines(place, *amplitudes):
    """Sum of ``a[k] * cos(2 pi k place)``."""
    return sum(a * ops.cos(2 * np.pi * k * place) for k, a in enumerate(amplitudes))


def bartlett_window(window_length, periodic=True, *, dtype=None):
    """Triangle: ``1 - |2 i / (n - 1) - 1|``.

    Shapes: -> [window_length].  dtypes: -> `dtype`, float32 by default.
    Errors: TypeError and ValueError for a length that is no natural number, TypeError for other dtypes.
    """
    return _window("bartlett_window", window_length, periodic, dtype, lambda t: 1 - _math.abs(2 * t - 1))


def blackman_window(window_length, periodic=True, *, dtype=None):
    """``0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))``. Arguments as `bartlett_window`."""
    shape = _cosines
    return _window(
        "blackman_window", window_length, periodic, dtype, lambda t: _math.abs(shape(t, 0.42, -0.5, 0.08))
    )


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None):
    """``alpha - beta cos(2 pi i / (n - 1))``. Arguments as `bartlett_window`."""
    return _window("hamming_window", window_length, periodic, dtype, lambda t: _cosines(t, alpha, -beta))


def hann_window(window_length, periodic=True, *, dtype=None):
    """``sin(pi i / (n - 1)) ** 2``. Arguments as `bartlett_window`, but float64 by default."""

    def shape(t):
        return ops.sin(np.pi * t) ** 2

    return _window("hann_window", window_length, periodic, dtype, shape, dtypes.float64)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None):
    """``I0(beta sqrt(1 - (2 i / (n - 1) - 1) ** 2)) / I0(beta)``. As `bartlett_window`, but float64."""

    def shape(t):
        inside = ops.maximum(1 - (2 * t - 1) ** 2, 0)
        return ops.bessel_i0(beta * ops.sqrt(inside)) / float(np.i0(beta))

    return _window("kaiser_window", window_length, periodic, dtype, shape, dtypes.float64)


def stft(
    x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="REFLECT",
    normalized=False, onesided=None, return_complex=None,
):  # fmt: skip
    """Fourier transforms of overlapping, windowed pieces of a signal.

    `hop_length`: distance of the pieces, n_fft // 4 by default; `window` is padded to `n_fft` on both sides;
    `center`: the signal is padded by n_fft // 2 on both sides in `pad_mode`; `onesided`: half the spectrum,
    the default for real signals; without `return_complex` the parts are in a last axis of size 2.
    Shapes: [(b,) t] -> [(b,) frequencies, pieces(, 2)].  dtypes: floating, complex.
    Errors: TypeError for other dtypes, ValueError for other ranks and sizes.
    """
    if not is_tensor(x) or not (x.dtype.is_floating or x.dtype.is_complex):
        raise errors.type_error(f"For 'stft', 'x' must be a floating or complex Tensor, but got {x!r}.")
    if x.ndim not in (1, 2):
        raise errors.value_error(f"For 'stft', 'x' must have rank 1 or 2, but has shape {x.shape}.")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    onesided = not x.dtype.is_complex if onesided is None else onesided
    return_complex = x.dtype.is_complex if return_complex is None else return_complex
    batch = x.shape[:-1]
    x = reshape(x, (1, -1)) if x.ndim == 1 else x
    if center:
        x = pad(x, (n_fft // 2, n_fft // 2), pad_mode.lower())
    total = x.shape[-1]
    if not 0 < n_fft <= total:
        raise errors.value_error(f"For 'stft', 'n_fft' must be in [1, {total}], but got {n_fft}.")
    if hop <= 0 or not 0 < width <= n_fft:
        raise errors.value_error(
            f"For 'stft', 'hop_length' must be positive and 'win_length' in [1, {n_fft}], "
            f"but they are {hop} and {width}."
        )
    if window is None:
        before = (n_fft - width) // 2
        window = constant(np.pad(np.ones(width), (before, n_fft - width - before)), dtypes.float32)
    elif window.shape != (width,):
        raise errors.value_error(
            f"For 'stft', 'window' must have shape ({width},), but has shape {window.shape}."
        )
    elif width < n_fft:
        before = (n_fft - width) // 2
        window = pad(window, (before, n_fft - width - before))
    count = (total - n_fft) // hop + 1
    places = arange(count).reshape(-1, 1) * hop + arange(n_fft)
    pieces = _math.mul(gather(x, places, 1), window)
    spectrum = (rfft if onesided and not x.dtype.is_complex else fft)(pieces)
    if onesided and x.dtype.is_complex:
        raise errors.value_error("For 'stft', 'onesided' must be False for a complex signal.")
    if normalized:
        spectrum = _math.mul(spectrum, n_fft**-0.5)
    spectrum = swapaxes(spectrum, 1, 2)
    spectrum = spectrum if batch else reshape(spectrum, spectrum.shape[1:])
    return spectrum if return_complex else view_as_real(spectrum)


__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "stft"]
