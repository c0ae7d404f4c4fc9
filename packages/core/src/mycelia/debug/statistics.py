"""Numbers that describe a tensor: extremes, norm, mean, and counts of what a debugger looks for."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from mycelia.engine.base.dtypes import bfloat16
from mycelia.engine.ops.define import find
from mycelia.engine.tensors.tensor import Tensor


class Statistics(NamedTuple):
    """Extremes, mean and norm are of the finite elements, NaN if there are none; complex numbers count by
    their absolute values. `negative` and `positive` count elements below and above zero, infinities included.
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


#: Columns of ``statistic.csv`` -> fields of `Statistics`.
COLUMNS = {
    "Max Value": "max",
    "Min Value": "min",
    "Avg Value": "mean",
    "Count": "count",
    "Negative Zero Count": "negative",
    "Positive Zero Count": "positive",
    "NaN Count": "nan",
    "Negative Inf Count": "negative_inf",
    "Positive Inf Count": "positive_inf",
    "Zero Count": "zero",
    "L2Norm Value": "l2norm",
}


def array_of(tensor: Tensor) -> np.ndarray:
    """The elements; bfloat16 as float32, bit by bit: no operator runs that someone might watch."""
    if tensor.dtype is not bfloat16:
        return tensor.asnumpy()
    bits = tensor._bits().astype(np.uint32)
    bits <<= 16
    return bits.view(np.float32)


def digest(algorithm: str, array: np.ndarray) -> str:
    """Of the raw bytes in C order, in hexadecimal digits."""
    return hashlib.new(algorithm, array.tobytes()).hexdigest()


def is_finite(tensor: Tensor) -> bool:
    """Whether all elements are finite; numbers without infinities always are."""
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        return True
    return not _unwatched("nonfinite_counts", tensor).any()


def statistics(values: Tensor | np.ndarray) -> Statistics:
    """The statistics of a tensor or array; of booleans as of 0 and 1."""
    tensor = values if isinstance(values, Tensor) else Tensor(np.ascontiguousarray(values))
    numbers = _unwatched("tensor_statistics", tensor).tolist()
    return Statistics(int(numbers[0]), *numbers[1:5], *map(int, numbers[5:]))


def _unwatched(op: str, tensor: Tensor) -> np.ndarray:
    """What `op` makes of `tensor`, without those hearing of it who watch operators."""
    return find(op)._execute((tensor,), ()).asnumpy()
