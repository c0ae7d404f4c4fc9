"""Parts of an image: crops, given or drawn, some resized afterwards; patches."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, resample
from mycelia.dataset.vision.base import ImageTransform, need_pil
from mycelia.dataset.vision.enums import Border, Inter, SliceMode
from mycelia.dataset.vision.geometry import array_pad, array_resize, pil_flip, pil_pad, pil_resize
from mycelia.dataset.vision.tensor import decode
from mycelia.engine.base import errors


def cut(transform: ImageTransform, image: np.ndarray, top: int, left: int, height: int, width: int):
    """A rectangle of an array; RuntimeError if it leaves the image."""
    if top + height > image.shape[0] or left + width > image.shape[1]:
        raise transform.failure(
            f"the crop {[top, left, height, width]} (top, left, height, width) leaves the image of shape "
            f"{list(image.shape)}"
        )
    return image[top : top + height, left : left + width].copy()


def pil_cut(image, top: int, left: int, height: int, width: int):
    """A rectangle of a PIL image; black outside of it."""
    return image.crop((left, top, left + width, top + height))


class Crop(ImageTransform):
    """The rectangle of `size` with its upper left corner at `coordinates` (y, x)."""

    def __init__(self, coordinates, size):
        checks.kind("Crop", "coordinates", coordinates, (list, tuple))
        if len(coordinates) != 2:
            raise errors.type_error(
                "Crop", f"Coordinates should be a list/tuple (y, x) of length 2. They are {coordinates!r}"
            )
        for i, v in enumerate(coordinates):
            checks.integer("Crop", f"coordinates[{i}]", v, 0)
        self.coordinates, self.size = tuple(coordinates), checks.size("Crop", size)

    def on_array(self, image):
        return cut(self, image, *self.coordinates, *self.size)


class CenterCrop(ImageTransform):
    """The middle of the image; black where `size` is larger than the image."""

    batches = True

    def __init__(self, size):
        self.size = checks.size("CenterCrop", size)

    def on_array(self, image):
        height, width = image.shape[:2]
        high, wide = max(0, self.size[0] - height), max(0, self.size[1] - width)
        if high or wide:
            if image.ndim == 3 and image.shape[2] not in (1, 3):
                raise self.failure(
                    f"only 1 or 3 channels can be padded, but the shape is {list(image.shape)}"
                )
            image = resample.border(
                image, (wide + 1) // 2, (high + 1) // 2, wide // 2, high // 2, "constant", (0, 0, 0)
            )
        top, left = (image.shape[0] - self.size[0]) // 2, (image.shape[1] - self.size[1]) // 2
        return cut(self, image, top, left, *self.size)

    def on_pil(self, image):
        return pil_middle(image, self.size)


def pil_middle(image, size):
    """The middle of a PIL image."""
    width, height = image.size
    return pil_cut(image, round((height - size[0]) / 2.0), round((width - size[1]) / 2.0), *size)


class FiveCrop(ImageTransform):
    """Four corners and the middle of a PIL image."""

    def __init__(self, size):
        self.size = checks.size(type(self).__name__, size)

    def __call__(self, img):
        need_pil(type(self).__name__, img)
        (rows, columns), (width, height) = self.size, img.size
        if rows > height or columns > width:
            raise errors.value_error(
                type(self).__name__, f"size {self.size} is larger than the image {(height, width)}"
            )
        corners = [(t, x) for t in (0, height - rows) for x in (0, width - columns)]
        return (*(pil_cut(img, t, x, rows, columns) for t, x in corners), pil_middle(img, self.size))


class TenCrop(FiveCrop):
    """`FiveCrop` of a PIL image and of its mirror image."""

    def __init__(self, size, use_vertical_flip: bool = False):
        super().__init__(size)
        if use_vertical_flip is not None:
            checks.kind("TenCrop", "use_vertical_flip", use_vertical_flip, bool)
        self.use_vertical_flip = use_vertical_flip

    def __call__(self, img):
        need_pil("TenCrop", img)
        return super().__call__(img) + super().__call__(pil_flip(img, 0 if self.use_vertical_flip else 1))


class RandomCrop(ImageTransform):
    """A random rectangle of `size`, after padding."""

    random = True
    batches = True

    def __init__(
        self,
        size,
        padding=None,
        pad_if_needed: bool = False,
        fill_value=0,
        padding_mode: Border = Border.CONSTANT,
    ):
        op = type(self).__name__
        self.size = checks.size(op, size)
        checks.kind(op, "pad_if_needed", pad_if_needed, bool)
        self.padding = (0, 0, 0, 0) if padding is None else checks.padding(op, padding)
        self.fill_value = checks.colour(op, 0 if fill_value is None else fill_value)
        checks.kind(op, "padding_mode", padding_mode, Border)
        self.pad_if_needed, self.padding_mode = pad_if_needed, padding_mode

    def choose(self, height: int, width: int):
        """(left, top, right, bottom) of the padding; (top, left) of the crop in the padded image."""
        left, top, right, bottom = self.padding
        height, width = height + top + bottom, width + left + right
        if self.pad_if_needed:
            high, wide = max(0, self.size[0] - height), max(0, self.size[1] - width)
            top, bottom, left, right = top + high, bottom + high, left + wide, right + wide
            height, width = height + 2 * high, width + 2 * wide
        if self.size[0] > height or self.size[1] > width:
            raise self.failure(f"size {self.size} is larger than the padded image {(height, width)}")
        x = self.draws.integer(0, width - self.size[1])
        y = self.draws.integer(0, height - self.size[0])
        return (left, top, right, bottom), y, x

    def on_array(self, image):
        padding, top, left = self.choose(*image.shape[:2])
        if image.ndim == 3 and image.shape[2] not in (1, 3):
            raise self.failure(f"the image must have 1 or 3 channels, but its shape is {list(image.shape)}")
        if any(padding):
            image = array_pad(self, image, padding, self.fill_value, self.padding_mode)
        return cut(self, image, top, left, *self.size)

    def on_pil(self, image):
        rows, columns = self.size
        image = pil_pad(image, self.padding, self.fill_value, self.padding_mode)
        if self.pad_if_needed and image.size[0] < columns:
            wide = columns - image.size[0]
            image = pil_pad(image, (wide, 0, wide, 0), self.fill_value, self.padding_mode)
        if self.pad_if_needed and image.size[1] < rows:
            high = rows - image.size[1]
            image = pil_pad(image, (0, high, 0, high), self.fill_value, self.padding_mode)
        width, height = image.size
        if rows > height or columns > width:
            raise errors.value_error(
                "RandomCrop", f"size {self.size} is larger than the image {(height, width)}"
            )
        if (rows, columns) == (height, width):
            return image
        top = rng_streams.python().randint(0, height - rows)
        return pil_cut(image, top, rng_streams.python().randint(0, width - columns), rows, columns)


def fitting_box(height: int, width: int, scale, ratio, attempts: int, uniform, integer, x_first: bool):
    """(top, left, rows, columns) of a random part: its share of the area and its shape are in the ranges.

    After `attempts` that do not fit, the largest part in the middle. `x_first`: which side is drawn first.
    """
    for _ in range(attempts):
        area = uniform(*scale) * height * width
        shape = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
        columns = round(math.sqrt(area * shape))
        rows = round(columns / shape)
        if 0 < columns <= width and 0 < rows <= height:
            if x_first:
                left = integer(0, width - columns)
                return integer(0, height - rows), left, rows, columns
            top = integer(0, height - rows)
            return top, integer(0, width - columns), rows, columns
    rows, columns = height, width
    if width / height < ratio[0]:
        rows = round(width / ratio[0])
    elif width / height > ratio[1]:
        columns = round(height * ratio[1])
    return round((height - rows) / 2.0), round((width - columns) / 2.0), rows, columns


class RandomResizedCrop(ImageTransform):
    """A random part of the image (share of the area, aspect ratio), scaled to `size`."""

    random = True
    batches = True

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ):
        op = type(self).__name__
        self.size = checks.size(op, size)
        checks.kind(op, "interpolation", interpolation, Inter)
        self.scale = checks.pair(op, "scale", scale, 0)
        if self.scale[1] <= 0:
            raise errors.value_error(op, f"scale must end above 0, but got {scale!r}")
        self.ratio = checks.pair(op, "ratio", ratio, 0, positive=True)
        checks.integer(op, "max_attempts", max_attempts)
        self.interpolation, self.max_attempts = interpolation, max_attempts

    def choose(self, height: int, width: int):
        """(top, left, rows, columns) of the part of an array."""
        uniform, integer = self.draws.uniform, self.draws.integer
        return fitting_box(height, width, self.scale, self.ratio, self.max_attempts, uniform, integer, True)

    def on_array(self, image):
        part = cut(self, image, *self.choose(*image.shape[:2]))
        return array_resize(self, part, self.size, self.interpolation)

    def on_pil(self, image):
        width, height = image.size
        box = fitting_box(
            height,
            width,
            self.scale,
            self.ratio,
            self.max_attempts,
            rng_streams.python().uniform,
            rng_streams.python().randint,
            False,
        )
        return pil_resize(type(self).__name__, pil_cut(image, *box), self.size, self.interpolation)


class RandomCropDecodeResize(RandomResizedCrop):
    """`Decode` and `RandomResizedCrop` in one: uint8 [n] -> [height, width, 3]."""

    def __call__(self, img):
        if not isinstance(img, np.ndarray) or img.ndim != 1 or img.dtype != np.uint8:
            what = f"{img.dtype} {list(img.shape)}" if isinstance(img, np.ndarray) else type(img)
            raise errors.type_error(
                "RandomCropDecodeResize", f"the encoded image must be uint8 [n], but got {what}"
            )
        return super().__call__(decode(img, "RandomCropDecodeResize"))


class ResizedCrop(ImageTransform):
    """A rectangle, scaled to `size`."""

    def __init__(self, top, left, height, width, size, interpolation: Inter = Inter.BILINEAR):
        for name, value, low in (
            ("top", top, 0),
            ("left", left, 0),
            ("height", height, 1),
            ("width", width, 1),
        ):
            checks.integer("ResizedCrop", name, value, low)
        checks.kind("ResizedCrop", "interpolation", interpolation, Inter)
        self.box, self.size = (top, left, height, width), checks.size("ResizedCrop", size)
        self.interpolation = interpolation

    def on_array(self, image):
        if self.interpolation == Inter.ANTIALIAS:
            raise self.failure("ANTIALIAS is for PIL images only")
        return array_resize(self, cut(self, image, *self.box), self.size, self.interpolation)


class SlicePatches(ImageTransform):
    """The image cut into `num_height` x `num_width` equal patches, row by row."""

    def __init__(self, num_height=1, num_width=1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0):
        checks.integer("SlicePatches", "num_height", num_height)
        checks.integer("SlicePatches", "num_width", num_width)
        checks.kind("SlicePatches", "slice_mode", slice_mode, SliceMode)
        checks.integer("SlicePatches", "fill_value", fill_value, 0, 255)
        self.num_height, self.num_width, self.slice_mode, self.fill_value = (
            num_height,
            num_width,
            slice_mode,
            fill_value,
        )

    def on_array(self, image):
        counts, sizes = (self.num_height, self.num_width), image.shape[:2]
        if counts[0] > sizes[0] or counts[1] > sizes[1]:
            raise self.failure(f"an image of {list(sizes)} cannot be cut into {list(counts)} patches")
        if self.slice_mode == SliceMode.PAD:
            bottom, right = (-size % count for size, count in zip(sizes, counts))
            image = resample.border(image, 0, 0, right, bottom, "constant", (self.fill_value,) * 3)
        rows, columns = image.shape[0] // counts[0], image.shape[1] // counts[1]
        places = [(i * rows, j * columns) for i in range(counts[0]) for j in range(counts[1])]
        patches = tuple(cut(self, image, top, left, rows, columns) for top, left in places)
        return patches if len(patches) > 1 else patches[0]
