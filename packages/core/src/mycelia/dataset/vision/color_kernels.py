"""Arithmetic of colours on arrays [H, W, C]: grey, HSV, contrast, histogram."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.vision import native
from mycelia.dataset.vision.resample import to_dtype
from mycelia.engine import _data

# Shares of red, green and blue in grey, in 15 bits for 8-bit images.
_GREY_BITS = (9798, 19235, 3735)
_GREY = (0.299, 0.587, 0.114)


_ALL = np.arange(256, dtype=np.uint8)


def _bytes(image: np.ndarray) -> bool:
    """Whether native code takes an image (and it is no table)."""
    return image.dtype == np.uint8 and image.ndim in (2, 3) and image.size > 0


def grey(image: np.ndarray, first: str = "R") -> np.ndarray:
    """[H, W, 3 or 4] -> [H, W]; `first` tells RGB from BGR."""
    order = (0, 1, 2) if first == "R" else (2, 1, 0)
    if native.fits(image):
        red, green, blue = _GREY_BITS
        return _data.grey(image, _GREY_BITS if first == "R" else (blue, green, red))
    r, g, b = (image[..., i] for i in order)
    if image.dtype.kind in "iu":
        kr, kg, kb = _GREY_BITS
        return (
            (r.astype(np.int64) * kr + g.astype(np.int64) * kg + b.astype(np.int64) * kb + (1 << 14)) >> 15
        ).astype(image.dtype)
    return (r * _GREY[0] + g * _GREY[1] + b * _GREY[2]).astype(image.dtype)


def blend(image: np.ndarray, other: np.ndarray, factor: float) -> np.ndarray:
    """``image * factor + other * (1 - factor)`` in the dtype of the image."""
    mixed = image.astype(np.float32) * np.float32(factor) + other.astype(np.float32) * np.float32(1 - factor)
    return to_dtype(mixed, image.dtype)


def brightness(image: np.ndarray, factor: float) -> np.ndarray:
    """Every value times `factor`."""
    if _bytes(image):
        return native.looked_up(image, brightness(_ALL, factor))
    return to_dtype(image.astype(np.float64) * factor, image.dtype)


def contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the mean grey."""
    mean = to_dtype(grey(image).mean(), image.dtype)
    if _bytes(image):
        return native.looked_up(image, blend(_ALL, mean, factor))
    return blend(image, mean, factor)


def saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the grey image."""
    if native.fits(image) and image.shape[2] == 3:
        return _data.saturation(image, _GREY_BITS, factor)
    return blend(image, np.repeat(grey(image)[..., None], 3, axis=-1), factor)


def hue(image: np.ndarray, factor: float) -> np.ndarray:
    """Hue moved by `factor` of a turn, in 8 bits."""
    pixels = np.ascontiguousarray(to_dtype(image, np.uint8))
    return _data.hue(pixels, int(factor * 255) & 0xFF).astype(image.dtype)


def sharpness(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the smoothed image; the outermost pixels stay."""
    if _bytes(image):
        return _data.sharpness(native.flat(image), factor).reshape(image.shape)
    smooth = image.copy()
    values = image.astype(np.float64)
    height, width = image.shape[:2]
    if height > 2 and width > 2:
        total = 4 * values[1:-1, 1:-1]
        for y in range(3):
            for x in range(3):
                total = total + values[y : y + height - 2, x : x + width - 2]
        smooth[1:-1, 1:-1] = to_dtype(total / 13, image.dtype)
    return blend(image, smooth, factor)


def gamma(image: np.ndarray, exponent: float, gain: float) -> np.ndarray:
    """8-bit: ``gain * image ** exponent`` of image / 255; floats in 0..1: ``(gain * image) ** exponent``."""
    if image.dtype.kind in "iu":
        table = np.clip(np.power(np.arange(256) / 255.0, exponent) * gain * 255, 0, 255).astype(image.dtype)
        if image.dtype == np.uint8 and image.ndim in (2, 3) and image.size:
            return native.looked_up(image, table)
        return table[np.clip(image, 0, 255)]
    dtype = np.float32 if image.dtype == np.float64 else image.dtype
    with np.errstate(invalid="ignore"):
        bright = np.power(image.astype(np.float32) * np.float32(gain), np.float32(exponent))
    return np.clip(bright, 0, 1).astype(dtype)


def _each_channel(image: np.ndarray, table_of) -> np.ndarray:
    """Each channel through the table [256] that `table_of` makes of how often its values are there."""
    tables = [table_of(counts) for counts in _data.histogram(native.flat(image))]
    return native.looked_up(image, np.stack(tables).clip(0, 255).astype(np.uint8))


def auto_contrast(image: np.ndarray, cutoff: float, ignore) -> np.ndarray:
    """Each channel stretched to 0..255 after `cutoff` percent of its ends are taken away."""

    def table(counts):
        counts[list(ignore)] = 0
        if cutoff:
            _cut(counts, cutoff)
        there = np.flatnonzero(counts)
        if not len(there) or there[-1] <= there[0]:
            return np.arange(256)
        scale = 255.0 / (there[-1] - there[0])
        return np.clip((np.arange(256) * scale - there[0] * scale).astype(np.int64), 0, 255)

    return _each_channel(image, table)


def _cut(counts: np.ndarray, percent: float) -> None:
    total = counts.sum()
    for order in (range(256), range(255, -1, -1)):
        cut = int(total * int(percent) / 100)  # whole percents only
        for i in order:
            taken = min(cut, counts[i])
            counts[i] -= taken
            cut -= taken
            if cut <= 0:
                break


def equalize(image: np.ndarray) -> np.ndarray:
    """Each channel with a flat histogram."""

    def table(counts):
        there = np.flatnonzero(counts)
        if len(there) < 2:
            return np.arange(256)
        first = counts[there[0]]
        above = np.maximum(np.cumsum(counts) - first, 0)
        return np.rint(above * (np.float32(255) / np.float32(counts.sum() - first)))

    return _each_channel(image, table)


def solarize(image: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values in [low, high] inverted; from `low` on when both are the same."""
    chosen = image >= low
    if low != high:
        chosen &= image <= high
    return np.where(chosen, 255 - image, image).astype(image.dtype)


def posterize(image: np.ndarray, bits: int) -> np.ndarray:
    """The upper `bits` bits."""
    return image & np.uint8((0xFF << (8 - bits)) & 0xFF)
