"""What a debugger asks of a tensor, in one pass over its memory, while it is still in the cache."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op

#: What the numbers of `tensor_statistics` are, in order.
FIELDS = (
    "count", "max", "min", "mean", "l2norm", "nan", "negative_inf", "positive_inf", "zero", "negative",
    "positive",
)  # fmt: skip


def _real(input):
    return np.abs(input) if input.dtype.kind == "c" else input


@op(infer=lambda input: TensorType(dtypes.float64, (len(FIELDS),)), nondiff=True)
def tensor_statistics(input):
    """Count, maximum, minimum, mean and l2 norm, and how many elements are NaN, -inf, inf, zero, below and
    above it.

    Extremes, mean and norm are of the finite elements, NaN where there is none; complex numbers count by
    their absolute values, booleans as 0 and 1. Infinities count as below and above zero. A kernel may add
    up to 2048 numbers in float32: mean and norm are right to a part in a million of the largest number.
    Shapes: any -> [11].  dtypes: any -> float64.
    """
    x = _real(input).reshape(-1)
    inexact = x.dtype.kind == "f"
    finite = (x[np.isfinite(x)] if inexact else x).astype(np.float64)
    nan = np.isnan(x).sum() if inexact else 0
    infinite = (np.isneginf(x).sum(), np.isposinf(x).sum()) if inexact else (0, 0)
    some = finite.size > 0
    numbers = (
        finite.max() if some else np.nan, finite.min() if some else np.nan, finite.mean() if some else np.nan,
        np.sqrt(np.dot(finite, finite)) if some else np.nan,
    )  # fmt: skip
    signs = (x == 0).sum(), (x < 0).sum(), (x > 0).sum()
    return np.array([x.size, *numbers, nan, *infinite, *signs], np.float64)


@op(infer=lambda input: TensorType(dtypes.float64, (3,)), nondiff=True)
def nonfinite_counts(input):
    """How many elements are NaN, -inf and inf.

    Shapes: any -> [3].  dtypes: any -> float64.
    """
    x = _real(input)
    if x.dtype.kind != "f":
        return np.zeros(3, np.float64)
    return np.array([np.isnan(x).sum(), np.isneginf(x).sum(), np.isposinf(x).sum()], np.float64)


def _samples(rand):
    # A kernel takes sums in float32: of these numbers, and of more than a block, they are exact.
    yield np.round(rand(3, 4) * 8) / np.float32(8)
    yield rand.ints(-8, 9, 5000).astype(np.float32)
    yield rand(0, 3)
    yield rand()
    yield np.array([1.0, -2.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 3e38], np.float32)
    yield np.full(3000, np.nan, np.float32)
    yield np.full(4, 1e30, np.float32)  # squares that float32 has not
    yield np.full(3000, 2.0**-75, np.float32)
    yield np.full(3000, -(2.0**-149), np.float32)
    yield np.array([1.0, np.nan, -np.inf, 1e200], np.float64)
    yield rand.ints(-3, 4, (2, 9))
    yield rand.bools(4, 4)


tensor_statistics.samples(_samples)
nonfinite_counts.samples(_samples)

__all__ = []
