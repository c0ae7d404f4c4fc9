"""Transforms of any column: TypeCast, OneHot, Compose, Duplicate, Fill."""

from __future__ import annotations

import numpy as np

from mycelia import errors
from mycelia.dtypes import as_dtype


class TypeCast:
    """Convert to another dtype."""

    def __init__(self, data_type):
        self.data_type = as_dtype(data_type).np

    def __call__(self, value):
        return np.asarray(value).astype(self.data_type)


class OneHot:
    """A class number as a vector of `num_classes`; `smoothing_rate` is spread over all classes."""

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0):
        if num_classes < 1:
            raise errors.value_error("OneHot", f"num_classes must be positive, but got {num_classes}")
        if not 0 <= smoothing_rate <= 1:
            raise errors.value_error("OneHot", f"smoothing_rate must be in [0, 1], but got {smoothing_rate}")
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def __call__(self, value):
        label = np.asarray(value)
        if label.dtype.kind not in "iu" or (
            label.size and (label.min() < 0 or label.max() >= self.num_classes)
        ):
            raise errors.value_error(
                "OneHot", f"labels must be ints in [0, {self.num_classes}), but got {label}"
            )
        if self.smoothing_rate:
            rows = np.full(
                (self.num_classes, self.num_classes), self.smoothing_rate / self.num_classes, np.float32
            )
            rows += np.eye(self.num_classes, dtype=np.float32) * (1 - self.smoothing_rate)
            return rows[label]
        return np.eye(self.num_classes, dtype=label.dtype)[label]


class Compose:
    """Several transforms, one after the other."""

    def __init__(self, transforms):
        for transform in transforms:
            if not callable(transform):
                raise errors.type_error(
                    "Compose", f"every transform must be callable, but got {type(transform).__name__}"
                )
        self.transforms = list(transforms)

    def __call__(self, *values):
        for transform in self.transforms:
            values = transform(*values)
            values = values if isinstance(values, tuple) else (values,)
        return values if len(values) > 1 else values[0]


class Duplicate:
    """The column twice."""

    def __call__(self, value):
        return value, np.array(value)


class Fill:
    """Every element replaced by `fill_value`."""

    def __init__(self, fill_value):
        self.fill_value = fill_value

    def __call__(self, value):
        return np.full_like(np.asarray(value), self.fill_value)
