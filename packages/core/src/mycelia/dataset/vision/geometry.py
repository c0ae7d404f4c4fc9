"""Size and place: resizing, padding, flips."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, native, resample
from mycelia.dataset.vision.base import ImageTransform, pil_mode, pillow
from mycelia.dataset.vision.enums import Border, Inter
from mycelia.engine.base import errors


def array_resize(transform: ImageTransform, image: np.ndarray, size, mode: Inter) -> np.ndarray:
    """`image` in `size`: (rows, columns) or (shorter side,)."""
    if mode == Inter.ANTIALIAS:
        raise errors.type_error(type(transform).__name__, "ANTIALIAS is for PIL images only")
    height, width = image.shape[:2]
    rows, columns = wanted(height, width, size)
    if not reachable(height, width, rows, columns):
        raise transform.failure(f"{[height, width]} cannot grow to {[rows, columns]}: more than 1000 times")
    if mode == Inter.PILCUBIC:
        transform.need_channels(image, 3)
        picture = pillow().fromarray(image.astype(np.uint8))
        return np.array(picture.resize((columns, rows), pillow().Resampling.BICUBIC)).astype(image.dtype)
    if image.dtype.name not in ("uint8", "int8", "uint16", "int16", "float32", "float64") and mode:
        raise transform.failure(f"images of {image.dtype} cannot be interpolated")
    return resample.resize(image, rows, columns, mode)


def wanted(height: int, width: int, size) -> tuple[int, int]:
    """Rows and columns for a `size` of both, or of the shorter side."""
    if len(size) == 2:
        return size
    side = size[0]
    if height < width:
        return side, math.floor(np.float32(width) / np.float32(height) * np.float32(side))
    return math.floor(np.float32(height) / np.float32(width) * np.float32(side)), side


def reachable(height: int, width: int, rows: int, columns: int) -> bool:
    """Whether an image may grow that much."""
    return rows <= height * 1000 and columns <= width * 1000


def pil_resize(op: str, image, size, mode: Inter):
    """A PIL image in `size`: (rows, columns) or (shorter side,)."""
    filter_ = pil_mode(op, mode)
    width, height = image.size
    if len(size) == 2:
        return image.resize((size[1], size[0]), filter_)
    if min(width, height) == size[0]:
        return image
    if width < height:
        return image.resize((size[0], int(size[0] / (width / height))), filter_)
    return image.resize((int(size[0] * (width / height)), size[0]), filter_)


class Resize(ImageTransform):
    """Scale to `size`: (height, width), or the length of the shorter side. Keeps the dtype."""

    batches = True

    def __init__(self, size, interpolation: Inter = Inter.LINEAR):
        if interpolation is None:
            raise KeyError("Resize: interpolation must not be None")
        self.size = checks.resize_size("Resize", size)
        checks.kind("Resize", "interpolation", interpolation, Inter)
        self.interpolation = interpolation

    def on_array(self, image):
        return array_resize(self, image, self.size, self.interpolation)

    def on_pil(self, image):
        return pil_resize("Resize", image, self.size, self.interpolation)


class RandomResize(ImageTransform):
    """`Resize` with a random interpolation."""

    random = True
    batches = True

    def __init__(self, size):
        self.size = checks.resize_size("RandomResize", size)

    def mode(self) -> Inter:
        """The interpolation of this call."""
        return (Inter.LINEAR, Inter.NEAREST, Inter.CUBIC, Inter.AREA)[self.draws.integer(0, 3)]

    def on_array(self, image):
        return array_resize(self, image, self.size, self.mode())


def pil_flip(image, axis: int):
    """A PIL image upside down (axis 0) or mirrored (axis 1)."""
    ways = pillow().Transpose
    return image.transpose(ways.FLIP_LEFT_RIGHT if axis else ways.FLIP_TOP_BOTTOM)


def mirrored(image: np.ndarray, axis: int) -> np.ndarray:
    """An array upside down (axis 0) or mirrored (axis 1)."""
    if axis and native.fits(image):
        return native.changed(image, flips=(True, False))
    return np.ascontiguousarray(np.flip(image, axis))


class HorizontalFlip(ImageTransform):
    """Left and right exchanged."""

    batches = True
    axis = 1

    def on_array(self, image):
        return mirrored(image, self.axis)


class VerticalFlip(HorizontalFlip):
    """Top and bottom exchanged."""

    axis = 0


class RandomHorizontalFlip(ImageTransform):
    """Left and right exchanged with a probability."""

    random = True
    batches = True
    axis = 1

    def __init__(self, prob: float = 0.5):
        checks.probability(type(self).__name__, prob)
        self.prob = prob

    def on_array(self, image):
        return mirrored(image, self.axis) if self.draws.chance(self.prob) else image.copy()

    def on_pil(self, image):
        return pil_flip(image, self.axis) if self.prob > rng_streams.python().random() else image


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged with a probability."""

    axis = 0


def pil_pad(image, padding, fill, mode: Border):
    """A PIL image with a border (left, top, right, bottom)."""
    left, top, right, bottom = padding
    if mode == Border.CONSTANT:
        if image.mode in ("L", "1"):
            fill = fill[0]
        return pillow("ImageOps").expand(image, border=(left, top, right, bottom), fill=fill)
    return pillow().fromarray(resample.border(np.asarray(image), left, top, right, bottom, mode.value, fill))


class Pad(ImageTransform):
    """A border of `padding` pixels: one number, (left and right, top and bottom), or all four."""

    def __init__(self, padding, fill_value=0, padding_mode: Border = Border.CONSTANT):
        self.padding = checks.padding("Pad", padding)
        self.fill_value = checks.colour("Pad", fill_value)
        checks.kind("Pad", "padding_mode", padding_mode, Border)
        self.padding_mode = padding_mode

    def on_array(self, image):
        return array_pad(self, image, self.padding, self.fill_value, self.padding_mode)

    def on_pil(self, image):
        return pil_pad(image, self.padding, self.fill_value, self.padding_mode)


def array_pad(transform: ImageTransform, image: np.ndarray, padding, fill, mode: Border) -> np.ndarray:
    """An array with a border (left, top, right, bottom)."""
    if image.ndim == 3 and image.shape[2] not in (1, 3):
        raise transform.failure(f"the image must have 1 or 3 channels, but its shape is {list(image.shape)}")
    return resample.border(image, *padding, mode.value, fill)


class PadToSize(ImageTransform):
    """A border up to `size`; the image is at `offset` (top, left), by default in the middle."""

    def __init__(self, size, offset=None, fill_value=0, padding_mode: Border = Border.CONSTANT):
        self.size = self._pair("size", size, 1)
        self.offset = None if offset is None or offset in ([], ()) else self._pair("offset", offset, 0)
        self.fill_value = checks.colour("PadToSize", fill_value)
        checks.kind("PadToSize", "padding_mode", padding_mode, Border)
        self.padding_mode = padding_mode

    @staticmethod
    def _pair(name, value, low):
        checks.kind("PadToSize", name, value, (int, list, tuple))
        value = (value, value) if isinstance(value, int) else tuple(value)
        if len(value) != 2:
            raise errors.value_error("PadToSize", f"{name} must have two values, but got {value!r}")
        for i, v in enumerate(value):
            checks.integer("PadToSize", f"{name}[{i}]", v, low)
        return value

    def on_array(self, image):
        spare = [self.size[i] - image.shape[i] for i in range(2)]
        top, left = self.offset if self.offset else (max(0, spare[0]) // 2, max(0, spare[1]) // 2)
        if top > spare[0] or left > spare[1]:
            raise self.failure(
                f"an image of {list(image.shape[:2])} at {[top, left]} does not fit into {list(self.size)}"
            )
        padding = (left, top, spare[1] - left, spare[0] - top)
        return array_pad(self, image, padding, self.fill_value, self.padding_mode)
