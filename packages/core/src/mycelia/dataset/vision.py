"""Image transforms on arrays [H, W] or [H, W, C]: Rescale, Normalize, HWC2CHW, Resize."""

from __future__ import annotations

import enum

import numpy as np

from mycelia import errors


class Inter(enum.IntEnum):
    """Interpolation of `Resize`."""

    NEAREST = 0
    ANTIALIAS = 1
    LINEAR = BILINEAR = 2
    CUBIC = BICUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Rescale:
    """``image * rescale + shift`` in float32."""

    def __init__(self, rescale: float, shift: float):
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, image):
        return np.asarray(image).astype(np.float32) * self.rescale + self.shift


class Normalize:
    """``(image - mean) / std`` per channel, float32; channels last unless `is_hwc` is False."""

    def __init__(self, mean, std, is_hwc: bool = True):
        self.mean, self.std, self.is_hwc = np.asarray(mean, np.float32), np.asarray(std, np.float32), is_hwc
        if self.mean.shape != self.std.shape or self.mean.ndim != 1:
            raise errors.value_error(
                "Normalize", f"mean and std must be lists of one length, but got {mean} and {std}"
            )
        if (self.std <= 0).any():
            raise errors.value_error("Normalize", f"std must be positive, but got {std}")

    def __call__(self, image):
        image = np.asarray(image).astype(np.float32)
        if image.ndim == 2:
            return (image - self.mean[0]) / self.std[0]
        if self.is_hwc:
            return (image - self.mean) / self.std
        return (image - self.mean[:, None, None]) / self.std[:, None, None]


class HWC2CHW:
    """[H, W, C] -> [C, H, W]. ValueError for another rank."""

    def __call__(self, image):
        image = np.asarray(image)
        if image.ndim == 2:
            return image
        if image.ndim != 3:
            raise errors.shape_error(
                "HWC2CHW", f"the image must be [H, W, C], but its shape is {list(image.shape)}"
            )
        return np.ascontiguousarray(image.transpose(2, 0, 1))


class Resize:
    """Scale to `size`: (height, width), or the length of the shorter side.
    Bilinear or nearest; keeps the dtype.
    """

    def __init__(self, size, interpolation: Inter = Inter.LINEAR):
        sizes = (size,) if isinstance(size, int) else tuple(size)
        if len(sizes) not in (1, 2) or any(
            isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in sizes
        ):
            raise errors.value_error(
                "Resize", f"size must be a positive int or a pair of them, but got {size!r}"
            )
        if interpolation not in (Inter.LINEAR, Inter.NEAREST):
            raise errors.error(
                errors.NotSupportedError,
                "Resize",
                f"interpolation {interpolation!r} is not built yet; use LINEAR or NEAREST",
            )
        self.size, self.interpolation = sizes, interpolation

    def __call__(self, image):
        image = np.asarray(image)
        height, width = image.shape[:2]
        if len(self.size) == 2:
            rows, columns = self.size
        elif height < width:
            rows, columns = self.size[0], self.size[0] * width // height
        else:
            rows, columns = self.size[0] * height // width, self.size[0]
        if (rows, columns) == (height, width):
            return image
        if self.interpolation == Inter.NEAREST:
            r = np.minimum(np.arange(rows) * height // rows, height - 1)
            c = np.minimum(np.arange(columns) * width // columns, width - 1)
            return image[r][:, c]
        return _bilinear(image, rows, columns)


def _weights(size: int, wanted: int):
    """Left neighbour, right neighbour and its weight for half-pixel centres."""
    at = (np.arange(wanted, dtype=np.float32) + 0.5) * (size / wanted) - 0.5
    low = np.floor(at).astype(np.int64)
    part = (at - low).astype(np.float32)
    return np.clip(low, 0, size - 1), np.clip(low + 1, 0, size - 1), part


def _bilinear(image: np.ndarray, rows: int, columns: int) -> np.ndarray:
    values = image.astype(np.float32)
    top, bottom, v = _weights(image.shape[0], rows)
    left, right, h = _weights(image.shape[1], columns)
    extra = (1,) * (image.ndim - 2)
    v, h = v.reshape(-1, 1, *extra), h.reshape(1, -1, *extra)
    lines = values[top] * (1 - v) + values[bottom] * v
    result = lines[:, left] * (1 - h) + lines[:, right] * h
    return np.rint(result).astype(image.dtype) if image.dtype.kind in "iu" else result.astype(image.dtype)
