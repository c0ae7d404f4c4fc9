"""The different elements of a tensor in ascending order."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.shape import positive_axis
from mycelia.engine.ops.define import op


def _unique_types(x, *, dim):
    if dim is None:
        index = TensorType(dtypes.int64, x.shape)
        return TensorType(x.dtype, (-1,)), index, TensorType(dtypes.int64, (-1,))
    at = positive_axis(dim, x.rank, "dim")
    values = TensorType(x.dtype, (*x.shape[:at], -1, *x.shape[at + 1 :]))
    return values, TensorType(dtypes.int64, (x.shape[at],)), TensorType(dtypes.int64, (-1,))


@op(infer=_unique_types, outputs=3, dynamic=True, nondiff=True)
def unique_sorted(input, *, dim: "int?" = None):
    """The different elements (or slices along `dim`) in ascending order, which of them each one is, and how
    often they occur.

    Shapes: any -> [number], as input, [number].  dtypes: any -> the same, int64, int64.
    """
    values, inverse, counts = np.unique(input, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(input.shape if dim is None else -1), counts


@unique_sorted.samples
def unique_sorted(rand):
    yield rand.ints(0, 4, (9,)), dict(_dtypes=("int64", "float32"))
    yield rand.ints(0, 4, (3, 4))
    yield rand.ints(0, 1, (6, 2)), dict(dim=0)
    yield rand.ints(0, 1, (2, 5)), dict(dim=-1)
    yield rand(0)


__all__ = []
