"""Mixing of batches and erasing of parts."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks
from mycelia.dataset.vision.base import ImageTransform, is_pil, need_array
from mycelia.dataset.vision.enums import ImageBatchFormat
from mycelia.dataset.vision.resample import to_dtype
from mycelia.engine.base import errors


def _need_batch(transform: ImageTransform, columns) -> tuple[np.ndarray, np.ndarray]:
    """Images [N, ...] of four axes and their labels [N, classes] or [N, labels, classes]."""
    for column in columns:
        if not isinstance(column, np.ndarray) and not is_pil(column):
            raise errors.type_error(
                type(transform).__name__, f"inputs must be arrays, but got {type(column)}"
            )
    if len(columns) != 2:
        raise transform.failure(f"images and labels are needed, but got {len(columns)} columns")
    images, labels = (np.asarray(column) for column in columns)
    if images.ndim != 4:
        raise transform.failure(
            f"images must be a batch of four axes, but their shape is {list(images.shape)}"
        )
    if labels.dtype.kind not in "biuf":
        raise transform.failure(
            f"invalid label type, label must be in a numeric type, but its dtype is {labels.dtype}"
        )
    if len(labels) != len(images):
        raise transform.failure(
            f"batch sizes of image and label must be the same, but they are {len(images)} and {len(labels)}"
        )
    if labels.ndim not in (2, 3) or labels.dtype.kind == "b":
        raise transform.failure(
            f"labels must be one-hot [N, classes] or [N, labels, classes], but got {labels.dtype} "
            f"{list(labels.shape)} for {len(images)} images"
        )
    return images, labels


def _mixed(values: np.ndarray, others: np.ndarray, share) -> np.ndarray:
    return values.astype(np.float32) * np.float32(share) + others.astype(np.float32) * np.float32(1 - share)


class MixUpBatch(ImageTransform):
    """Images and one-hot labels mixed with those of another order: share from Beta(alpha, alpha).

    Shapes: images of four axes, labels [N, classes]; labels become float32. Source: Zhang et al. 2018.
    """

    random = True

    def __init__(self, alpha: float = 1.0):
        checks.number("MixUpBatch", "alpha", alpha, 0, above=True)
        self.alpha = alpha

    def __call__(self, *columns):
        images, labels = _need_batch(self, columns)
        numbers = self.draws.generator()
        share, order = numbers.beta(self.alpha, self.alpha), numbers.permutation(len(images))
        images = to_dtype(_mixed(images, images[order], share), images.dtype)
        return images, _mixed(labels, labels[order], share)


class CutMixBatch(ImageTransform):
    """A rectangle of each image replaced by that of another one; labels mixed by the areas.

    Shapes: images [N, H, W, C] or [N, C, H, W], labels [N, classes]; labels become float32.
    Source: Yun et al. 2019.
    """

    random = True

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0):
        checks.kind("CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat)
        checks.number("CutMixBatch", "alpha", alpha, 0, above=True)
        checks.probability("CutMixBatch", prob)
        self.image_batch_format, self.alpha, self.prob = image_batch_format, alpha, prob

    def __call__(self, *columns):
        images, labels = _need_batch(self, columns)
        last = self.image_batch_format == ImageBatchFormat.NHWC
        if images.shape[3 if last else 1] not in (1, 3):
            raise self.failure(f"images must have 1 or 3 channels, but their shape is {list(images.shape)}")
        images, labels = images.copy(), labels.astype(np.float32)
        numbers = self.draws.generator()
        order = numbers.permutation(len(images))
        sources, source_labels = images[order], labels[order]
        planes = images if last else images.transpose(0, 2, 3, 1)
        source_planes = sources if last else sources.transpose(0, 2, 3, 1)
        height, width = planes.shape[1:3]
        for i in range(len(images)):
            share = numbers.beta(self.alpha, self.alpha)
            if numbers.random() >= self.prob:
                continue
            part = math.sqrt(1 - share)
            y, x = int(numbers.integers(height)), int(numbers.integers(width))
            rows, columns_ = int(height * part), int(width * part)
            top, bottom = max(0, y - rows // 2), min(height, y + rows // 2)
            left, right = max(0, x - columns_ // 2), min(width, x + columns_ // 2)
            planes[i, top:bottom, left:right] = source_planes[i, top:bottom, left:right]
            kept = 1 - (bottom - top) * (right - left) / (height * width)
            labels[i] = _mixed(labels[i], source_labels[i], kept)
        return images, labels


class MixUp(ImageTransform):
    """Images [N, H, W, C] and labels [N, classes] mixed with their neighbours, or with the batch before."""

    random = True

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True):
        checks.kind("MixUp", "is_single", is_single, bool)
        checks.integer("MixUp", "batch_size", batch_size, 1, checks.LARGEST)
        checks.number("MixUp", "alpha", alpha, 0, math.inf, above=True)
        self.batch_size, self.alpha, self.is_single = batch_size, alpha, is_single
        self._before = None

    def __call__(self, image, label):
        share = rng_streams.numpy().beta(self.alpha, self.alpha, self.batch_size)
        if self.is_single:
            others = np.roll(image, -1, axis=0), np.roll(label, -1, axis=0)
        else:
            if self._before is None:
                share = np.ones(self.batch_size)
            others = self._before or (0, 0)
        by_image, by_label = share.reshape(-1, 1, 1, 1), share.reshape(-1, 1)
        mixed = by_image * image + (1 - by_image) * others[0], by_label * label + (1 - by_label) * others[1]
        if not self.is_single:
            self._before = mixed
        return mixed


class CutOut(ImageTransform):
    """`num_patches` black squares of side `length` at random places. Source: DeVries and Taylor 2017."""

    random = True
    ranks = (3,)

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True):
        checks.kind("CutOut", "is_hwc", is_hwc, bool)
        checks.integer("CutOut", "length", length, 1, checks.LARGEST)
        checks.integer("CutOut", "num_patches", num_patches, 1, checks.LARGEST)
        self.length, self.num_patches, self.is_hwc = length, num_patches, is_hwc

    def on_array(self, image):
        image = image.copy()
        view = image if self.is_hwc else image.transpose(1, 2, 0)
        height, width = view.shape[:2]
        if self.length > height or self.length > width:
            raise self.failure(
                f"box size is too large for image erase: {self.length} for an image of {[height, width]}"
            )
        for _ in range(self.num_patches):
            top = self.draws.integer(0, height + self.length) - self.length
            left = self.draws.integer(0, width + self.length) - self.length
            view[max(0, top) : max(0, top + self.length), max(0, left) : max(0, left + self.length)] = 0
        return image


class Erase(ImageTransform):
    """A rectangle of an image [H, W, 3] filled with `value`, one number or three."""

    def __init__(self, top: int, left: int, height: int, width: int, value=0.0, inplace: bool = False):
        for name, v, low in (("top", top, 0), ("left", left, 0), ("height", height, 1), ("width", width, 1)):
            checks.integer("Erase", name, v, low)
        checks.kind("Erase", "inplace", inplace, bool)
        checks.kind("Erase", "value", value, (float, int, tuple))
        value = (value,) * 3 if isinstance(value, checks.NUMBER) else value
        if len(value) != 3:
            raise errors.type_error("Erase", f"value must be a number or a tuple of 3, but got {value!r}")
        for v in value:
            checks.number("Erase", "value", v, 0, 255)
        self.top, self.left, self.height, self.width = top, left, height, width
        self.value, self.inplace = value, inplace

    def on_array(self, image):
        self.need_channels(image, 3)
        if self.top > image.shape[0] or self.left > image.shape[1]:
            raise self.failure(
                f"(top, left) {(self.top, self.left)} is outside of the image {list(image.shape)}"
            )
        image = image if self.inplace else image.copy()
        part = image[self.top : self.top + self.height, self.left : self.left + self.width]
        part[...] = to_dtype(np.asarray(self.value, np.float64), image.dtype)
        return image


class RandomErasing(ImageTransform):
    """A random rectangle of an array [C, H, W] replaced, with a probability.

    `value`: a number, three of them, or "random" for normal draws. Source: Zhong et al. 2020.
    """

    random = True

    def __init__(
        self,
        prob=0.5,
        scale=(0.02, 0.33),
        ratio=(0.3, 3.3),
        value=0,
        inplace: bool = False,
        max_attempts: int = 10,
    ):
        op = "RandomErasing"
        checks.probability(op, prob)
        self.scale = checks.pair(op, "scale", scale, 0)
        self.ratio = checks.pair(op, "ratio", ratio, 0, positive=True)
        if self.scale[1] <= 0:
            raise errors.value_error(op, f"scale must end above 0, but got {scale!r}")
        checks.kind(op, "value", value, (int, list, tuple, str))
        checks.kind(op, "inplace", inplace, bool)
        checks.integer(op, "max_attempts", max_attempts, 1, checks.LARGEST)
        if isinstance(value, str):
            if value != "random":
                raise errors.value_error(
                    op, f'value must be "random", one number or three, but got {value!r}'
                )
        elif isinstance(value, (list, tuple)) and len(value) != 3:
            raise errors.value_error(op, f"value must have three numbers, but got {value!r}")
        else:
            for v in value if isinstance(value, (list, tuple)) else (value,):
                checks.integer(op, "value", v, 0, 255)
        self.prob, self.value, self.inplace, self.max_attempts = prob, value, inplace, max_attempts

    def __call__(self, np_img):
        if self.prob <= rng_streams.python().random():
            return np_img
        need_array("RandomErasing", np_img)
        channels, height, width = np_img.shape
        for _ in range(self.max_attempts):
            area, shape = (
                rng_streams.python().uniform(*self.scale) * height * width,
                rng_streams.python().uniform(*self.ratio),
            )
            columns = round(math.sqrt(area * shape))
            rows = round(columns / shape)
            if rows < height and columns < width:
                break
        else:
            return np_img if self.inplace else np_img.copy()
        random = rng_streams.python()
        top, left = random.randint(0, height - rows), random.randint(0, width - columns)
        if isinstance(self.value, str):
            value = rng_streams.numpy().normal(0.0, 1.0, (channels, rows, columns))
        else:
            value = np.asarray(self.value)[:, None, None] if np.ndim(self.value) else self.value
        result = np_img if self.inplace else np_img.copy()
        result[:, top : top + rows, left : left + columns] = value
        return result
