"""The largest and smallest elements along axes."""

import builtins

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axes, reduced_shape
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.reductions.reduce import _np_axes, keep_reduced, reduced_axes, sum


def extreme_shape(shape, axes, keepdims):
    """The shape left after looking for an extreme along `axes`.

    Errors: ValueError for an axis of extent 0, even if another makes the result empty, as in NumPy.
    """
    if builtins.any(shape[i] == 0 for i in normalize_axes(axes, len(shape))):
        raise errors.value_error(
            f"an axis of extent 0 has no largest or smallest element; the shape is {list(shape)}"
        )
    return reduced_shape(shape, axes, keepdims)


def _extreme_type(input, *, axis, keepdims):
    return TensorType(input.dtype, extreme_shape(input.shape, axis, keepdims))


@op(
    infer=_extreme_type,
    name="reduce_max",
    mindir="ReduceMax",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keepdims"),
    exact=True,
)
def _reduce_max(input, *, axis: "ints?" = None, keepdims: "bool" = False):
    """Largest element over `axis`; NaN if there is one.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: real.
    Errors: ValueError for an axis out of range or given twice, or of extent 0.
    """
    return np.max(input, axis=_np_axes(input, axis), keepdims=keepdims)


@op(
    infer=_extreme_type,
    name="reduce_min",
    mindir="ReduceMin",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keepdims"),
    exact=True,
)
def _reduce_min(input, *, axis: "ints?" = None, keepdims: "bool" = False):
    """Smallest element over `axis`; NaN if there is one.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: real.
    Errors: ValueError for an axis out of range or given twice, or of extent 0.
    """
    return np.min(input, axis=_np_axes(input, axis), keepdims=keepdims)


def _extreme_grad(ct, input, out, *, axis):
    """`ct` is shared evenly by all places that hold the extreme."""
    chosen = cast(_comparison.equal(input, keep_reduced(out, axis, input.shape)), ct.dtype)
    share = _math.true_div(
        keep_reduced(ct, axis, input.shape), sum(chosen, reduced_axes(axis, len(input.shape)), True)
    )
    return _math.mul(chosen, share)


def _extreme_samples(rand):
    yield rand.distinct(3, 4)
    for axes in (0, -1, (0, 2), (1, 2)):
        yield rand.distinct(2, 3, 4), dict(axis=axes)
        yield rand.distinct(2, 3, 4), dict(axis=axes, keepdims=True)
    yield rand(), dict(keepdims=True)
    yield rand(1, 1), dict(axis=1)
    yield rand(0, 3), dict(axis=1)
    yield rand(67, 131), dict(axis=0, _grad=False)
    yield rand(67, 131), dict(axis=1, _grad=False)
    yield rand(5, 67, 3), dict(axis=(0, 2), _grad=False)
    yield rand(40000), dict(_grad=False)
    for gap in (0, 8, 20):
        x = rand(41)
        x[gap] = np.nan
        yield x, dict(_grad=False)
    yield np.array([[np.inf, -np.inf], [-np.inf, -np.inf]], np.float32), dict(axis=1, _grad=False)
    yield np.array([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]], np.float32), dict(axis=1, _grad=False)
    yield rand.ints(-9, 9, (5, 6)), dict(axis=1, _grad=False)
    yield rand.ints(-9, 9, (5, 6), dtype="int64"), dict(axis=0, _grad=False)


for _extreme in (_reduce_max, _reduce_min):
    _extreme.vjp(_extreme_grad)
    _extreme.samples(_extreme_samples)


def masked(input, where, filler):
    """`input` with `filler` where the mask `where` is false."""
    if where is None or where is True:
        return input
    if filler is None:
        raise errors.value_error("a value for `initial` is needed together with the mask `where`")
    return ops.where(where, input, filler)


def amax(input, axis=None, keepdims=False, *, initial=None, where=None):
    """Largest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: real.
    Errors: ValueError for an axis out of range, given twice or empty, and for `where` without `initial`.
    """
    peak = _reduce_max(masked(input, where, initial), axis, keepdims)
    return peak if initial is None else _clipping.maximum(peak, initial)


def amin(input, axis=None, keepdims=False, *, initial=None, where=None):
    """Smallest element over `axis` (all by default), of those that the mask `where` admits, and of `initial`.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: real.
    Errors: ValueError for an axis out of range, given twice or empty, and for `where` without `initial`.
    """
    least = _reduce_min(masked(input, where, initial), axis, keepdims)
    return least if initial is None else _clipping.minimum(least, initial)


def reduce_max(x, axis=()):
    """Largest element over `axis`, all axes by default.

    Shapes: reduced axes vanish.  dtypes: real.
    """
    return _reduce_max(x, axis)


def reduce_min(x, axis=()):
    """Smallest element over `axis`, all axes by default.

    Shapes: reduced axes vanish.  dtypes: real.
    """
    return _reduce_min(x, axis)


__all__ = ["amax", "amin", "reduce_max", "reduce_min"]
