"""Smoothing a curve by its neighbours; what is not finite is passed over and stays as it is."""

from __future__ import annotations

import numpy as np

SMOOTHERS = ("ema", "average", "gaussian")
#: Points of a piece, whose temporaries are a few times as large.
_PIECE = 1 << 18
#: A Gaussian is cut off here, in standard deviations: 6e-5 of its weight lies outside.
_REACH = 4


def smoothed(values: np.ndarray, smoother: str, width: int) -> np.ndarray:
    """Values float32 [n], smoothed over about `width` points; float32 [n].

    smoother: "average", the mean of the `width` points around each; "gaussian", weights of a Gaussian whose
    standard deviation is a quarter of `width`. At the ends the mean is over the points that there are.
    """
    if smoother not in SMOOTHERS[1:]:
        raise ValueError(f"'smoother' must be one of {SMOOTHERS[1:]}, got {smoother!r}")
    if width < 2 or not len(values):
        return values
    if smoother == "average":
        weights = np.ones(min(width, 2 * len(values) - 1) | 1)
    else:
        deviation = min(width, len(values)) / 4
        reach = max(1, int(_REACH * deviation))
        weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    half = len(weights) // 2
    out = np.empty(len(values), np.float32)
    for start in range(0, len(values), _PIECE):
        stop = min(len(values), start + _PIECE)
        low, high = max(0, start - half), min(len(values), stop + half)
        piece = values[low:high].astype(np.float64)
        known = np.isfinite(piece)
        # The mean is taken off first: sums of what is left lose no digits to it.
        middle = piece[known].mean() if known.any() else 0.0
        centred = np.where(known, piece - middle, 0.0)
        sums, shares = _around(centred, weights), _around(known.astype(np.float64), weights)
        mean = sums / np.maximum(shares, weights.min()) + middle
        out[start:stop] = np.where(known, mean, piece)[start - low : stop - low]
    return out


def _around(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted sum around each value, weights of an odd length; float64 [n]."""
    half = len(weights) // 2
    if len(weights) <= 64:
        return np.convolve(values, weights)[half : half + len(values)]
    size = 1 << (len(values) + len(weights) - 1).bit_length()
    product = np.fft.rfft(values, size) * np.fft.rfft(weights, size)
    return np.fft.irfft(product, size)[half : half + len(values)]
