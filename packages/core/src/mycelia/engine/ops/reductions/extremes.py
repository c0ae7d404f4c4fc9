"""Places of the largest and smallest elements, and the pairs (value, place) of MindSpore's max and min."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axis
from mycelia.engine.ops.reductions.extreme_values import amax, amin, extreme_shape, masked
from mycelia.engine.ops.reductions.reduce import keep_reduced


def _place_type(input, *, axis, keepdims):
    axes = None if axis is None else (axis,)
    shape = extreme_shape(input.shape, axes, keepdims and axis is not None)
    return TensorType(dtypes.int64, shape)


def _arg_extreme(find, input, axis, keepdims):
    place = find(input, axis=axis)
    return np.expand_dims(place, axis) if keepdims and axis is not None else np.asarray(place)


@op(
    infer=_place_type,
    name="argmax",
    nondiff=True,
    mindir="ArgMaxExt",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keepdims"),
)
def _argmax(input, *, axis: "int?" = None, keepdims: "bool" = False):
    """Place of the largest element along `axis`, or in the flattened tensor: first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> int64.
    Errors: ValueError for an axis out of range or of extent 0.
    """
    return _arg_extreme(np.argmax, input, axis, keepdims)


@op(
    infer=_place_type,
    name="argmin",
    nondiff=True,
    mindir="ArgMinExt",
    batch=_batch.along("axis"),
    layout=_layout.reduction("axis", "keepdims"),
)
def _argmin(input, *, axis: "int?" = None, keepdims: "bool" = False):
    """Place of the smallest element along `axis`, or in the flattened tensor: first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> int64.
    Errors: ValueError for an axis out of range or of extent 0.
    """
    return _arg_extreme(np.argmin, input, axis, keepdims)


def _arg_samples(rand):
    yield rand(3, 4)
    for axis in (0, 1, 2, -1):
        yield rand(2, 3, 4), dict(axis=axis)
        yield rand(2, 3, 4), dict(axis=axis, keepdims=True)
    yield rand()
    yield rand(0, 3), dict(axis=1)
    yield rand(67, 131), dict(axis=0)
    yield rand(67, 131), dict(axis=1)
    yield rand(3, 1, 1), dict(axis=1)
    yield rand(1031)
    yield np.array([[1, 3, 3], [2, 2, 2]], np.float32), dict(axis=1)
    yield np.array([1.0, np.nan, 3.0, np.nan], np.float32)
    yield np.array([-np.inf, -np.inf], np.float32)
    yield np.array([np.inf, np.inf], np.float32)
    yield rand.ints(-3, 3, (5, 6)), dict(axis=1)
    yield rand.ints(-3, 3, (5, 6), dtype="int64"), dict(axis=0)


_argmax.samples(_arg_samples)
_argmin.samples(_arg_samples)


def argmax(input, dim=None, keepdim=False):
    """Place of the largest element along `dim`, or in the flattened tensor: first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdim`.  dtypes: real -> int64.
    Errors: ValueError for an axis out of range or of extent 0.
    """
    return _argmax(input, dim, keepdim)


def argmin(input, axis=None, keepdims=False):
    """Place of the smallest element along `axis`, or in the flattened tensor: first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> int32, int64 of a scalar.
    Errors: ValueError for an axis out of range or of extent 0.
    """
    place = _argmin(input, axis, keepdims)
    return cast(place, dtypes.int32) if input.ndim else place


def _with_index_type(input, *, axis, keepdims):
    shape = extreme_shape(input.shape, (axis,), keepdims)
    return TensorType(input.dtype, shape), TensorType(dtypes.int64, shape)


def _with_index(find, input, axis, keepdims):
    if input.ndim == 0:
        return input, np.int64(0)
    place = np.expand_dims(find(input, axis=axis), axis)
    value = np.take_along_axis(input, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


@op(infer=_with_index_type, outputs=2, batch=_batch.along("axis"), exact=True)
def max_with_index(input, *, axis: "int" = 0, keepdims: "bool" = False):
    """Largest element along `axis` and its place: the first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range or of extent 0.
    """
    return _with_index(np.argmax, input, axis, keepdims)


@op(infer=_with_index_type, outputs=2, batch=_batch.along("axis"), exact=True)
def min_with_index(input, *, axis: "int" = 0, keepdims: "bool" = False):
    """Smallest element along `axis` and its place: the first of equals, or of NaNs.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range or of extent 0.
    """
    return _with_index(np.argmin, input, axis, keepdims)


def _with_index_grad(cts, outs, input_shape, axis, keepdims):
    if not input_shape or cts[0] is None:  # None: only the place went into a result
        return cts[0]
    ct, place = cts[0], outs[1]
    if not keepdims:
        ct, place = keep_reduced(ct, axis, input_shape), keep_reduced(place, axis, input_shape)
    return place_along(ct, place, axis=axis, length=input_shape[axis])


def _with_index_samples(rand):
    for axis in (0, 1, -1):
        yield rand.distinct(2, 3, 4), dict(axis=axis)
        yield rand.distinct(2, 3, 4), dict(axis=axis, keepdims=True)
    yield rand()
    yield rand(0, 3), dict(axis=1)
    yield rand(67, 131), dict(axis=1, _grad=False)
    yield np.array([[1, 3, 3], [2, 2, np.nan]], np.float32), dict(axis=1, _grad=False)
    yield rand.ints(-3, 3, (5, 6)), dict(axis=1, _grad=False)


for _extreme in (max_with_index, min_with_index):
    _extreme.vjp(_with_index_grad)
    _extreme.samples(_with_index_samples)


def _place_along_type(x, place, *, axis, length):
    axis = normalize_axis(axis, x.rank)
    return TensorType(x.dtype, (*x.shape[:axis], length, *x.shape[axis + 1 :]))


@op(infer=_place_along_type, batch=_batch.along("axis"))
def place_along(x, place, *, axis: "int", length: "int"):
    """Zeros of extent `length` along `axis`, with the elements of `x` added where `place` says.

    Shapes: x, place [..., n, ...] -> [..., length, ...].  dtypes: x real, place int64.
    """
    axis %= x.ndim
    y = np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    grid = list(np.ogrid[tuple(slice(n) for n in x.shape)])
    grid[axis] = place
    np.add.at(y, tuple(grid), x)
    return y


@place_along.vjp
def place_along(ct, place, axis):
    from mycelia.engine.ops.arrays.gathering import gather_elements

    return gather_elements(ct, axis, place), None


@place_along.samples
def place_along(rand):
    yield rand(2, 3), rand.ints(0, 4, (2, 3), dtype="int64"), dict(axis=1, length=4)
    yield rand(2, 1, 3), rand.ints(0, 5, (2, 1, 3), dtype="int64"), dict(axis=-2, length=5)
    yield rand(3), rand.ints(0, 1, (3,), dtype="int64"), dict(axis=0, length=2)
    yield rand(0, 2), rand.ints(0, 1, (0, 2), dtype="int64"), dict(axis=0, length=2)


def _all_with_index(extreme, input, initial, where):
    from mycelia.engine.ops.arrays.create import zeros

    return extreme(input, initial=initial, where=where), zeros((), dtypes.int64)


def max(input, axis=None, keepdims=False, *, initial=None, where=None):
    """Largest element along `axis` and its place; without an axis the largest of all, and 0.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range or of extent 0.
    """
    if axis is None or not input.shape:
        return _all_with_index(amax, input, initial, where)
    candidates = masked(input, where, initial)
    if initial is not None:
        candidates = _clipping.maximum(candidates, initial)
    return max_with_index(candidates, axis, keepdims)


def min(input, axis=None, keepdims=False, *, initial=None, where=None):
    """Smallest element along `axis` and its place; without an axis the smallest of all, and 0.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range or of extent 0.
    """
    if axis is None or not input.shape:
        return _all_with_index(amin, input, initial, where)
    candidates = masked(input, where, initial)
    if initial is not None:
        candidates = _clipping.minimum(candidates, initial)
    return min_with_index(candidates, axis, keepdims)


def aminmax(input, *, axis=0, keepdims=False):
    """Smallest and largest element along `axis`, without regard to NaN; None means all axes.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real.
    Errors: ValueError for an axis out of range or of extent 0.
    """
    if not input.dtype.is_floating:
        return amin(input, axis, keepdims), amax(input, axis, keepdims)
    from mycelia.engine.ops.arrays.masks import where
    from mycelia.engine.ops.elementwise.logic import isnan

    unknown = isnan(input)
    low = amin(where(unknown, float("inf"), input), axis, keepdims)
    return low, amax(where(unknown, float("-inf"), input), axis, keepdims)


__all__ = [
    "aminmax", "argmax", "argmin", "max", "min",
]  # fmt: skip
