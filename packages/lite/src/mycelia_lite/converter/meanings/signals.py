"""Fourier transforms and windows; complex numbers are pairs along the last axis."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.meanings.table import meaning
from mycelia_lite.enums import DataType


def _complex(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]


def _parts(y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.stack((y.real, y.imag), -1).astype(dtype)


@meaning("dft")
def transformed(x, *more, inverse, onesided, axis, given):
    length, at = (int(more[sum(given[:i])].reshape(())) if there else None for i, there in enumerate(given))
    axis = (axis if at is None else at) % x.ndim
    signal = _complex(x)
    if inverse and onesided:
        points = 2 * (x.shape[axis] - 1) if length is None else length
        return np.fft.irfft(signal, points, axis)[..., None].astype(x.dtype)
    points = x.shape[axis] if length is None else length
    y = (np.fft.ifft if inverse else np.fft.fft)(signal, points, axis)
    return _parts(np.take(y, np.arange(points // 2 + 1), axis) if onesided else y, x.dtype)


@meaning("stft")
def frames_transformed(signal, step, *more, onesided, given):
    window, length = (more[sum(given[:i])] if there else None for i, there in enumerate(given))
    length, step = int(window.size if length is None else length.reshape(())), int(step.reshape(()))
    wide = _complex(signal if signal.ndim == 3 else signal[..., None])
    starts = np.arange(0, wide.shape[1] - length + 1, step)
    frames = wide[:, starts[:, None] + np.arange(length)]
    y = np.fft.fft(frames if window is None else frames * window.astype(np.float64))
    return _parts(y[..., : length // 2 + 1] if onesided else y, signal.dtype)


@meaning("window")
def cosines(size, *, a, b, c, periodic, dtype):
    """a - b cos t + c cos 2 t, once around; a periodic one would begin again with the next value."""
    count = int(size.reshape(()))
    t = 2 * np.pi * np.arange(count) / max(count if periodic else count - 1, 1)
    return (a - b * np.cos(t) + c * np.cos(2 * t)).astype(DataType(dtype).numpy)
