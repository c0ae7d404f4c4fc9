"""Reductions, extremes with their places, and running sums."""

import math

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import boolean, dtype, integer, integers, optional, real, type_id
from mycelia.ops.primitives.define import primitive


def _axes(axis):
    """The axis of a call: an int, ints, a constant tensor; None stands for all."""
    if isinstance(axis, Tensor):
        axis = axis.asnumpy().tolist()
    if axis is None or isinstance(axis, (tuple, list)) and not axis:
        return None
    return tuple(axis) if isinstance(axis, list) else axis


@primitive
def ReduceAll(input, axis=None, *, keep_dims: boolean = False):
    """Whether all elements along `axis` are true; by default of all axes."""
    return ops.all(input, _axes(axis), keep_dims)


@primitive
def ReduceAny(x, axis=(), *, keep_dims: boolean = False):
    """Whether any element along `axis` is true; by default of all axes."""
    return ops.any(x, _axes(axis), keep_dims)


@primitive
def ReduceMax(x, axis=(), *, keep_dims: boolean = False):
    """Largest element along `axis`, by default of all."""
    return ops.amax(x, _axes(axis), keep_dims)


@primitive
def ReduceMin(x, axis=(), *, keep_dims: boolean = False):
    """Smallest element along `axis`, by default of all."""
    return ops.amin(x, _axes(axis), keep_dims)


@primitive
def ReduceMean(x, axis=(), *, keep_dims: boolean = False):
    """Mean along `axis`, by default of all elements."""
    return ops.mean(x, _axes(axis), keep_dims)


@primitive
def ReduceProd(x, axis=(), *, keep_dims: boolean = False):
    """Product along `axis`, by default of all elements."""
    return ops.prod(x, _axes(axis), keep_dims, dtype=x.dtype)


@primitive
def ReduceSum(x, axis=(), *, keep_dims: boolean = False, skip_mode: boolean = False):
    """Sum along `axis`, by default of all elements; with `skip_mode` an empty axis changes nothing."""
    axis = _axes(axis)
    if skip_mode and axis is None:
        return x
    return ops.sum(x, axis, keep_dims, dtype=x.dtype)


@primitive
def ReduceStd(x, *, axis: integers = [], unbiased: boolean = True, keep_dims: boolean = False):  # noqa: B006
    """Standard deviation and mean along `axis`, by default of all elements."""
    axis = _axes(axis)
    return ops.std(x, axis, int(unbiased), keep_dims), ops.mean(x, axis, keep_dims)


@primitive
def EuclideanNorm(x, axes, *, keep_dims: boolean = False):
    """Square root of the sum of squares along `axes`."""
    return ops.sqrt(ops.sum(ops.square(x), _axes(axes), keep_dims))


@primitive(shows={"dims": lambda value: [] if value is None else value})
def CountNonZero(x, *, dims: optional(integers) = None):
    """Number of elements that are not zero, along `dims`."""
    return ops.count_nonzero(x, () if dims is None else dims, dtype=dtypes.int64)


@primitive
def LpNorm(input, *, axis: integers, p: integer = 2, keep_dims: boolean = False, epsilon: real = 1e-12):
    """``sum(abs(input) ** p) ** (1 / p)`` along `axis`.

    Powers of the sizes against the largest one neither vanish nor overflow; `epsilon` changes nothing then.
    """
    sizes = ops.abs(input)
    largest = ops.stop_gradient(ops.amax(sizes, axis, True))
    largest = ops.where(largest == 0, ops.ones_like(largest), largest)
    total = ops.sum(ops.pow(sizes / largest, p), axis, keep_dims)
    return ops.pow(total, 1 / p) * ops.reshape(largest, total.shape)


@primitive
def Renorm(input_x, *, p: integer, dim: integer, maxnorm: real):
    """Scale the slices along `dim` so that their `p` norm is at most `maxnorm`."""
    return ops.renorm(input_x, p, dim, maxnorm)


# ---- places ----------------------------------------------------------------------------------------------


@primitive(shows={"output_type": type_id})
def Argmax(input_x, *, axis: integer = -1, output_type: dtype = dtypes.int32):
    """Place of the largest element along `axis`."""
    return ops.cast(ops.argmax(input_x, axis), output_type)


@primitive(shows={"output_type": type_id})
def Argmin(x, *, axis: integer = -1, output_type: dtype = dtypes.int32):
    """Place of the smallest element along `axis`."""
    return ops.cast(ops.argmin(x, axis), output_type)


@primitive
def ArgMaxWithValue(input, *, axis: integer = 0, keep_dims: boolean = False):
    """Place of the largest element along `axis`, and the element."""
    value, place = ops.max(input, axis, keep_dims)
    return place, value


@primitive
def ArgMinWithValue(input, *, axis: integer = 0, keep_dims: boolean = False):
    """Place of the smallest element along `axis`, and the element."""
    value, place = ops.min(input, axis, keep_dims)
    return place, value


@primitive(extra={"cust_aicpu": "Median"})
def Median(
    x, *, global_median: boolean = False, axis: integer = 0, keep_dims: boolean = False,
    ignore_nan: boolean = False,
):  # fmt: skip
    """Middle element along `axis` and its place; with `global_median` of all elements, NaN or 0 of none."""
    median = ops.nanmedian if ignore_nan and x.dtype.is_floating else ops.median
    if not global_median:
        return median(x, axis, keep_dims)
    if x.size == 0:
        value = constant(math.nan if x.dtype.is_floating else 0, x.dtype)
    else:
        value, _ = median(x.reshape((-1,)), 0, False)
    return value, constant(0, dtypes.int64)  # its place is of no use


@primitive(shows={"dim": lambda value: 10000 if value is None else value})
def Quantile(x, q, *, dim: optional(integer) = None, keep_dims: boolean = False, ignore_nan: boolean = False):
    """Value below which the fraction `q` lies, along `dim`, by default of all elements."""
    return (ops.nanquantile if ignore_nan else ops.quantile)(x, q, dim, keep_dims)


# ---- running ---------------------------------------------------------------------------------------------


def _running(function, x, axis, exclusive, reverse, first):
    """`function` along `axis`; from the end, and without the element itself."""
    axis = int(axis.asnumpy()) if isinstance(axis, Tensor) else axis
    if reverse:
        x = ops.flip(x, (axis,))
    if exclusive:
        size = x.shape[axis]
        start = ops.full_like(ops.narrow(x, axis, 0, 1), first)
        x = ops.concat((start, ops.narrow(x, axis, 0, size - 1)), axis)
    found = function(x, axis)
    return ops.flip(found, (axis,)) if reverse else found


@primitive
def CumSum(input, axis, *, exclusive: boolean = False, reverse: boolean = False):
    """Sum of all elements up to each one along `axis`."""
    return _running(ops.cumsum, input, axis, exclusive, reverse, 0)


@primitive
def CumProd(x, axis, *, exclusive: boolean = False, reverse: boolean = False):
    """Product of all elements up to each one along `axis`."""
    return _running(ops.cumprod, x, axis, exclusive, reverse, 1)


@primitive
def CumulativeLogsumexp(x, axis, *, exclusive: boolean = False, reverse: boolean = False):
    """Logarithm of the sum of exponentials up to each element along `axis`."""
    lowest = float(np.finfo(np.float32 if x.dtype is dtypes.bfloat16 else x.dtype.np).min)
    return _running(ops.logcumsumexp, x, axis, exclusive, reverse, lowest)


@primitive
def Cummax(input, *, axis: integer):
    """Largest element up to each one along `axis`, and its place."""
    return ops.cummax(input, axis)


@primitive
def Cummin(input, *, axis: integer):
    """Smallest element up to each one along `axis`, and its place."""
    return ops.cummin(input, axis)
