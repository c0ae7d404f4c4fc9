"""Numbers that describe a tensor: extremes, norm, mean, and counts of what a debugger looks for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mycelia.engine.base.dtypes import bfloat16
from mycelia.engine.tensors.tensor import Tensor


class Statistics(NamedTuple):
    """Extremes, mean and norm are of the finite elements, NaN if there are none; complex numbers count by
    their
    absolute values. `negative` and `positive` count elements below and above zero, infinities included.
    """

    count: int
    max: float
    min: float
    mean: float
    l2norm: float
    nan: int
    negative_inf: int
    positive_inf: int
    zero: int
    negative: int
    positive: int

    @property
    def is_finite(self) -> bool:
        return not (self.nan or self.negative_inf or self.positive_inf)

    @property
    def mean_of_absolutes(self) -> float:
        """Not known from these numbers unless all elements have one sign."""
        return abs(self.mean) if self.min >= 0 or self.max <= 0 else math.nan


def array_of(tensor: Tensor) -> np.ndarray:
    """The elements; bfloat16 as float32."""
    return tensor.float().asnumpy() if tensor.dtype is bfloat16 else tensor.asnumpy()


def is_finite(tensor: Tensor) -> bool:
    """Whether all elements are finite; numbers without infinities always are."""
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        return True
    return bool(np.isfinite(array_of(tensor)).all())


def statistics(values: Tensor | np.ndarray) -> Statistics:
    """The statistics of a tensor or array; of booleans as of 0 and 1."""
    x = array_of(values) if isinstance(values, Tensor) else np.asarray(values)
    if x.dtype.kind == "c":
        x = np.abs(x)
    x = x.reshape(-1)
    inexact = x.dtype.kind == "f"
    finite = x[np.isfinite(x)] if inexact else x
    nan = int(np.isnan(x).sum()) if inexact else 0
    wide = finite.astype(np.float64)
    nothing = math.nan
    return Statistics(
        count=x.size,
        max=float(wide.max()) if wide.size else nothing,
        min=float(wide.min()) if wide.size else nothing,
        mean=float(wide.mean()) if wide.size else nothing,
        l2norm=float(np.sqrt(np.dot(wide, wide))) if wide.size else nothing,
        nan=nan,
        negative_inf=int(np.isneginf(x).sum()) if inexact else 0,
        positive_inf=int(np.isposinf(x).sum()) if inexact else 0,
        zero=int((x == 0).sum()),
        negative=int((x < 0).sum()),
        positive=int((x > 0).sum()),
    )
