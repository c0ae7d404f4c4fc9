"""Transforms of an image together with its boxes: float [n, at least 4] of (x, y, width, height, ...)."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, crops, geometry
from mycelia.dataset.vision.base import ImageTransform, is_pil
from mycelia.dataset.vision.enums import Inter
from mycelia.engine.base import errors


def need_boxes(transform: ImageTransform, columns) -> tuple[np.ndarray, np.ndarray]:
    """The image and its boxes as float32; RuntimeError for boxes that leave the image."""
    for column in columns:
        if not isinstance(column, np.ndarray) and not is_pil(column):
            raise errors.type_error(
                type(transform).__name__, f"inputs must be arrays, but got {type(column)}"
            )
    if len(columns) != 2:
        raise transform.failure(f"an image and its boxes are needed, but got {len(columns)} columns")
    image, boxes = np.asarray(columns[0]), np.asarray(columns[1])
    if boxes.ndim != 2 or boxes.shape[1] < 4 or boxes.dtype.kind != "f":
        raise transform.failure(
            "bounding boxes should have at least 4 features each, as float [n, 4 or more], but got "
            f"{boxes.dtype} {list(boxes.shape)}"
        )
    height, width = image.shape[:2]
    x, y, w, h = boxes[:, :4].T
    if (x < 0).any() or (y < 0).any():
        raise transform.failure(f"bounding boxes have a negative value: {boxes[:, :4].tolist()}")
    if (x + w > width).any() or (y + h > height).any():
        raise transform.failure(
            f"bounding boxes is out of bounds of the image {[height, width]}: {boxes[:, :4].tolist()}"
        )
    return image, boxes.astype(np.float32)


class _WithBoxes(ImageTransform):
    random = True

    def __call__(self, *columns):
        image, boxes = need_boxes(self, columns)
        if not rng_streams.active():
            self.__dict__.pop("_draws", None)
        return self.both(image, boxes)


def _scaled(image: np.ndarray, boxes: np.ndarray, result: np.ndarray):
    y, x = (np.float32(result.shape[i]) / np.float32(image.shape[i]) for i in (0, 1))
    boxes[:, :4] *= np.array([x, y, x, y], np.float32)
    return result, boxes


def _cropped(boxes: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Boxes inside of a crop; those outside of it go, and one empty box stays if all do."""
    x0, y0 = np.maximum(boxes[:, 0] - left, 0), np.maximum(boxes[:, 1] - top, 0)
    x1 = np.minimum(boxes[:, 0] + boxes[:, 2] - left, width)
    y1 = np.minimum(boxes[:, 1] + boxes[:, 3] - top, height)
    kept = (x1 > x0) & (y1 > y0)
    if not kept.any():
        boxes = boxes[:1].copy()
        boxes[:, :4] = 0
        return boxes
    result = boxes[kept]
    result[:, :4] = np.stack([x0, y0, x1 - x0, y1 - y0], axis=-1)[kept]
    return result


class RandomHorizontalFlipWithBBox(_WithBoxes):
    """`RandomHorizontalFlip` of an image and its boxes."""

    def __init__(self, prob: float = 0.5):
        checks.probability(type(self).__name__, prob)
        self.prob = prob

    def both(self, image, boxes):
        """The image and the boxes."""
        if not self.draws.chance(self.prob):
            return image.copy(), boxes
        boxes[:, 0] = image.shape[1] - boxes[:, 0] - boxes[:, 2]
        return np.ascontiguousarray(image[:, ::-1]), boxes


class RandomVerticalFlipWithBBox(RandomHorizontalFlipWithBBox):
    """`RandomVerticalFlip` of an image and its boxes."""

    def both(self, image, boxes):
        if not self.draws.chance(self.prob):
            return image.copy(), boxes
        boxes[:, 1] = image.shape[0] - boxes[:, 1] - boxes[:, 3]
        return np.ascontiguousarray(image[::-1]), boxes


class ResizeWithBBox(_WithBoxes):
    """`Resize` of an image and its boxes."""

    random = False

    def __init__(self, size, interpolation: Inter = Inter.LINEAR):
        self._resize = geometry.Resize(size, interpolation)
        self.size, self.interpolation = size, interpolation

    def both(self, image, boxes):
        """The image and the boxes."""
        return _scaled(image, boxes, self._resize.on_array(image))


class RandomResizeWithBBox(_WithBoxes):
    """`RandomResize` of an image and its boxes."""

    def __init__(self, size):
        self._resize = geometry.RandomResize(size)
        self.size = size

    def both(self, image, boxes):
        """The image and the boxes."""
        self._resize._draws = self.draws
        return _scaled(image, boxes, self._resize.on_array(image))


class RandomCropWithBBox(_WithBoxes, crops.RandomCrop):
    """`RandomCrop` of an image and its boxes."""

    def both(self, image, boxes):
        """The image and the boxes."""
        padding, top, left = self.choose(*image.shape[:2])
        image = geometry.array_pad(self, image, padding, self.fill_value, self.padding_mode)
        boxes[:, 0] += padding[0]
        boxes[:, 1] += padding[1]
        return crops.cut(self, image, top, left, *self.size), _cropped(boxes, top, left, *self.size)


class RandomResizedCropWithBBox(_WithBoxes, crops.RandomResizedCrop):
    """`RandomResizedCrop` of an image and its boxes."""

    def both(self, image, boxes):
        """The image and the boxes."""
        top, left, rows, columns = self.choose(*image.shape[:2])
        part = crops.cut(self, image, top, left, rows, columns)
        boxes = _cropped(boxes, top, left, rows, columns)
        return _scaled(part, boxes, geometry.array_resize(self, part, self.size, self.interpolation))
