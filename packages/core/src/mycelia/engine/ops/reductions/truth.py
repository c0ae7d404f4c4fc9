"""Whether all or any elements are true, and how many are not zero."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.infer import reduced_shape
from mycelia.engine.ops.reductions.reduce import _np_axes, sum


def _truth_type(input, *, axis, keep_dims):
    return TensorType(dtypes.bool_, reduced_shape(input.shape, axis, keep_dims))


@op(
    infer=_truth_type,
    nondiff=True,
    mindir="ReduceAll",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keep_dims"),
)
def all(input, *, axis: "ints?" = None, keep_dims: "bool" = False):
    """Whether every element along `axis` is true or not zero; true where there is none.

    Shapes: reduced axes vanish, or become 1 with `keep_dims`.  dtypes: any -> bool.
    Errors: ValueError for an axis out of range or given twice.
    """
    return np.all(input, axis=_np_axes(input, axis), keepdims=keep_dims)


@op(
    infer=_truth_type,
    nondiff=True,
    mindir="ReduceAny",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keep_dims"),
)
def any(input, *, axis: "ints?" = None, keep_dims: "bool" = False):
    """Whether some element along `axis` is true or not zero; false where there is none.

    Shapes: reduced axes vanish, or become 1 with `keep_dims`.  dtypes: any -> bool.
    Errors: ValueError for an axis out of range or given twice.
    """
    return np.any(input, axis=_np_axes(input, axis), keepdims=keep_dims)


def _truth_samples(rand):
    yield rand.bools(3, 4)
    for axes in (0, -1, (0, 2)):
        yield rand.bools(2, 3, 2), dict(axis=axes)
        yield rand.bools(2, 3, 2), dict(axis=axes, keep_dims=True)
    yield np.ones((5, 67), bool), dict(axis=1)
    yield np.zeros((67, 5), bool), dict(axis=0)
    yield rand.bools()
    yield rand.bools(0, 3)
    yield rand.bools(3, 0), dict(axis=1)
    yield np.array([[0.0, np.nan], [-0.0, 0.0]], np.float32), dict(axis=1)
    yield rand.ints(0, 2, (4, 3)), dict(axis=1)


all.samples(_truth_samples)
any.samples(_truth_samples)


def count_nonzero(x, axis=(), keep_dims=False, dtype=dtypes.int32):
    """Number of elements along `axis` that are not zero; NaN counts.

    Shapes: reduced axes vanish, or become 1 with `keep_dims`.  dtypes: any -> `dtype`.
    Errors: ValueError for an axis out of range or given twice.
    """
    return sum(_comparison.not_equal(x, 0), axis, keep_dims, dtype)


__all__ = ["all", "any", "count_nonzero"]
