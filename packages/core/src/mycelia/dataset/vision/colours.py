"""Arithmetic of colours on arrays [H, W, C]: grey, HSV, contrast, histogram."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.vision.resample import to_dtype

# Shares of red, green and blue in grey, in 15 bits for 8-bit images.
_GREY_BITS = (9798, 19235, 3735)
_GREY = (0.299, 0.587, 0.114)


def grey(image: np.ndarray, first: str = "R") -> np.ndarray:
    """[H, W, 3 or 4] -> [H, W]; `first` tells RGB from BGR."""
    order = (0, 1, 2) if first == "R" else (2, 1, 0)
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
    return to_dtype(image.astype(np.float64) * factor, image.dtype)


def contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the mean grey."""
    mean = np.full(image.shape, grey(image).mean())
    return blend(image, to_dtype(mean, image.dtype), factor)


def saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the grey image."""
    return blend(image, np.repeat(grey(image)[..., None], 3, axis=-1), factor)


def to_hsv(image: np.ndarray) -> np.ndarray:
    """uint8 RGB -> uint8 HSV with hue in 0..255, in 12-bit fixed point."""
    r, g, b = (image[..., i].astype(np.int64) for i in range(3))
    v = np.maximum(np.maximum(r, g), b)
    difference = v - np.minimum(np.minimum(r, g), b)
    steps = np.arange(1, 256)
    by_value = np.concatenate([[0], np.rint((255 << 12) / steps)]).astype(np.int64)
    by_difference = np.concatenate([[0], np.rint((256 << 12) / (6.0 * steps))]).astype(np.int64)
    s = (difference * by_value[v] + (1 << 11)) >> 12
    h = np.where(v == r, g - b, np.where(v == g, b - r + 2 * difference, r - g + 4 * difference))
    h = (h * by_difference[difference] + (1 << 11)) >> 12
    h = np.where(h < 0, h + 256, h)
    return np.stack([h, s, v], axis=-1).clip(0, 255).astype(np.uint8)


def from_hsv(image: np.ndarray) -> np.ndarray:
    """The way back of `to_hsv`, in float32."""
    h, s, v = (image[..., i].astype(np.float32) for i in range(3))
    h, s, v = h * np.float32(6.0 / 255), s * np.float32(1 / 255), v * np.float32(1 / 255)
    sector = np.floor(h)
    part = h - sector
    sector = sector.astype(np.int64) % 6
    low, fall, rise = v * (1 - s), v * (1 - s * part), v * (1 - s * (1 - part))
    r = np.choose(sector, [v, fall, low, low, rise, v])
    g = np.choose(sector, [rise, v, v, fall, low, low])
    b = np.choose(sector, [low, low, rise, v, v, fall])
    return to_dtype(np.stack([r, g, b], axis=-1) * 255, np.uint8)


def hue(image: np.ndarray, factor: float) -> np.ndarray:
    """Hue moved by `factor` of a turn."""
    hsv = to_hsv(to_dtype(image, np.uint8))
    hsv[..., 0] += np.uint8(int(factor * 255) & 0xFF)
    return from_hsv(hsv).astype(image.dtype)


def sharpness(image: np.ndarray, factor: float) -> np.ndarray:
    """Away from, or towards, the smoothed image; the outermost pixels stay."""
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
        table = np.power(np.arange(256) / 255.0, exponent) * gain * 255
        return np.clip(table, 0, 255).astype(image.dtype)[np.clip(image, 0, 255)]
    dtype = np.float32 if image.dtype == np.float64 else image.dtype
    with np.errstate(invalid="ignore"):
        bright = np.power(image.astype(np.float32) * np.float32(gain), np.float32(exponent))
    return np.clip(bright, 0, 1).astype(dtype)


def _each_channel(image: np.ndarray, table_of) -> np.ndarray:
    flat = image if image.ndim == 3 else image[..., None]
    planes = [table_of(flat[..., c])[flat[..., c]] for c in range(flat.shape[2])]
    return np.stack(planes, axis=-1).clip(0, 255).astype(np.uint8).reshape(image.shape)


def auto_contrast(image: np.ndarray, cutoff: float, ignore) -> np.ndarray:
    """Each channel stretched to 0..255 after `cutoff` percent of its ends are taken away."""

    def table(plane):
        counts = np.bincount(plane.ravel(), minlength=256)
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

    def table(plane):
        counts = np.bincount(plane.ravel(), minlength=256)
        there = np.flatnonzero(counts)
        if len(there) < 2:
            return np.arange(256)
        first = counts[there[0]]
        above = np.maximum(np.cumsum(counts) - first, 0)
        return np.rint(above * (np.float32(255) / np.float32(plane.size - first)))

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
