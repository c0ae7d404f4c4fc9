"""Order statistics and histograms: median, quantile, bincount, histc."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import combined as _combined
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import reduced_shape
from mycelia.engine.ops.reductions.extreme_values import amax, amin
from mycelia.engine.ops.reductions.extremes import place_along
from mycelia.engine.ops.reductions.reduce import keep_reduced, sum


def _median_type(input, *, axis, keepdims, ignore_nan):
    shape = reduced_shape(input.shape, (axis,), keepdims)
    return TensorType(input.dtype, shape), TensorType(dtypes.int64, shape)


@op(
    name="median",
    infer=_median_type,
    outputs=2,
    mindir="Median",
    mindir_attributes=True,
    batch=_batch.along("axis"),
)
def _median(input, *, axis: "int" = -1, keepdims: "bool" = False, ignore_nan: "bool" = False):
    """Lower median along `axis` and its place; NaN where there is one, unless `ignore_nan`.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range.
    """
    if input.ndim == 0:
        return input, np.zeros((), np.int64)
    order = np.argsort(input, axis, kind="stable")  # NaN last
    nans = np.isnan(input).sum(axis, keepdims=True)
    n = input.shape[axis]
    rank = (np.maximum(n - nans, 1) - 1) // 2 if ignore_nan else np.where(nans > 0, n - nans, (n - 1) // 2)
    place = np.take_along_axis(order, rank, axis)
    value = np.take_along_axis(input, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


@_median.vjp
def _median(cts, outs, input_shape, *, axis, keepdims):
    if not input_shape or cts[0] is None:  # None: only the place went into a result
        return cts[0]
    ct, place = cts[0], outs[1]
    if not keepdims:
        ct, place = keep_reduced(ct, axis, input_shape), keep_reduced(place, axis, input_shape)
    return place_along(ct, place, axis=axis, length=input_shape[axis])


@_median.samples
def _median(rand):
    yield rand.distinct(5)
    yield rand.distinct(3, 4), dict(axis=0)
    yield rand.distinct(2, 3, 4), dict(axis=1, keepdims=True)
    yield rand()
    yield np.array([[3.0, np.nan, 1.0], [2.0, 5.0, 4.0]], np.float32), dict(_grad=False)
    yield (
        np.array([[3.0, np.nan, 1.0], [np.nan, np.nan, np.nan]], np.float32),
        dict(ignore_nan=True, _grad=False),
    )
    yield rand.ints(-5, 5, (4, 3)), dict(axis=0, _grad=False)
    yield rand(0, 3), dict(axis=1)


def median(input, axis=-1, keepdims=False):
    """Lower median along `axis` and its place.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range.
    """
    return _median(input, axis=axis, keepdims=keepdims)


def nanmedian(input, axis=-1, keepdims=False):
    """Lower median along `axis` of the elements that are not NaN, and its place.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: real -> (same, int64).
    Errors: ValueError for an axis out of range.
    """
    return _median(input, axis=axis, keepdims=keepdims, ignore_nan=True)


def _quantile(name, input, q, axis, keepdims, ignore_nan):
    from mycelia.engine.ops.arrays.gathering import gather_elements
    from mycelia.engine.ops.arrays.masks import where
    from mycelia.engine.ops.arrays.order import sort
    from mycelia.engine.ops.arrays.shape import reshape

    if not isinstance(q, (int, float)):
        raise errors.type_error(f"{name}: q must be a number, but is {q!r}")
    if not 0 <= q <= 1:
        raise errors.value_error(f"{name}: q must be in [0, 1], but is {q}")
    shape = reduced_shape(input.shape, None if axis is None else (axis,), keepdims)
    if axis is None:
        input, axis = reshape(input, (-1,)), 0
    ordered, last = sort(input, axis)[0], input.shape[axis] - 1  # NaN comes last
    missing = sum(_logic.isnan(input), axis, True)
    count = _clipping.maximum(_math.sub(last, missing), 0) if ignore_nan else last
    at = _math.mul(cast(_math.add(_math.mul(missing, 0), count), input.dtype), float(q))
    low = cast(at, dtypes.int64)
    below = gather_elements(ordered, axis, low)
    above = gather_elements(ordered, axis, _clipping.minimum(_math.add(low, 1), count))
    result = _combined.lerp(below, above, _math.sub(at, cast(low, input.dtype)))
    if not ignore_nan:
        result = where(_comparison.greater(missing, 0), float("nan"), result)
    return reshape(result, shape)


def quantile(input, q, axis=None, keepdims=False):
    """The `q` quantile along `axis` (all elements by default), interpolated linearly; NaN where there is one.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for q outside of [0, 1] or an axis out of range.
    """
    return _quantile("quantile", input, q, axis, keepdims, False)


def nanquantile(input, q, axis=None, keepdims=False):
    """The `q` quantile along `axis` of the elements that are not NaN, interpolated linearly.

    Shapes: the axis vanishes, or becomes 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for q outside of [0, 1] or an axis out of range.
    """
    return _quantile("nanquantile", input, q, axis, keepdims, True)


# ------------------------------------------------------------------------------------------- histograms


def _bincount_type(input, weights, *, minlength):
    if len(input.shape) != 1 or not input.dtype.is_integer:
        raise ValueError(f"input must be a vector of integers, but is {input.dtype.name} {list(input.shape)}")
    if weights is not None and weights.shape != input.shape:
        raise ValueError(
            f"weights must have the shape of input, {list(input.shape)}, but have {list(weights.shape)}"
        )
    return TensorType(weights.dtype if weights is not None else dtypes.float32, (-1,))


@op(infer=_bincount_type, dynamic=True, nondiff=True, name="bincount")
def _bincount(input, weights: "tensor?" = None, *, minlength: "int" = 0):
    """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights.

    Shapes: input, weights [n] -> [max(input) + 1 or minlength].  dtypes: integer -> float32 or as weights.
    Errors: ValueError for negative numbers, ranks other than 1, or weights of another shape.
    """
    counts = np.bincount(input, weights, minlength)
    return counts.astype(np.float32 if weights is None else weights.dtype)


@_bincount.samples
def _bincount(rand):
    yield rand.ints(0, 7, (20,))
    yield rand.ints(0, 7, (20,), dtype="int64"), rand(20), dict(minlength=9)
    yield rand.ints(0, 1, (0,)), dict(minlength=3)


def bincount(input, weights=None, minlength=0):
    """Number of times that 0, 1, 2, ... occur in `input`, or the sum of their weights.

    Shapes: input, weights [n] -> [max(input) + 1 or minlength].  dtypes: integer -> float32 or as weights.
    Errors: ValueError for negative numbers, ranks other than 1, or weights of another shape.
    """
    return _bincount(input, weights, minlength=minlength)


def histc(input, bins=100, min=0.0, max=0.0):
    """Histogram of `bins` equal bins over [min, max]; over the range of `input` if the bounds are equal.

    Shapes: any -> [bins].  dtypes: real -> same.  Errors: ValueError for bins < 1 or min > max.
    """
    from mycelia.engine.ops.arrays.create import arange
    from mycelia.engine.ops.arrays.shape import reshape

    if bins < 1 or min > max:
        raise errors.value_error(
            f"histc: bins must be positive and min <= max, but bins={bins}, min={min}, max={max}"
        )
    x = cast(reshape(input, (-1, 1)), dtypes.float32)
    low, high = (min, max) if min != max else (amin(x), amax(x))
    width = _clipping.maximum(_math.sub(high, low), 1e-30) if min == max else high - low
    place = cast(_math.mul(_math.true_div(_math.sub(x, low), width), float(bins)), dtypes.int64)
    inside = _logic.logical_and(_comparison.greater_equal(x, low), _comparison.less_equal(x, high))
    hit = _comparison.equal(_clipping.minimum(place, bins - 1), arange(bins))
    return cast(sum(_logic.logical_and(hit, inside), 0), input.dtype)


__all__ = ["bincount", "histc", "median", "nanmedian", "nanquantile", "quantile"]
