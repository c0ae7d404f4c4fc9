"""Functions that reduce axes or run along them."""

from __future__ import annotations

import math

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    as_float,
    as_tensor,
    axes_of,
    one_axis,
    only_tensor,
    result_dtype,
    same_dtype,
    to_dtype,
)


def _flag(name, keepdims):
    if not isinstance(keepdims, bool):
        raise errors.type_error(name, f"keepdims must be a bool, but got {keepdims!r}")
    return keepdims


def _axes(name, x, axis):
    """The axes; an empty tuple means all."""
    return axes_of(name, None if axis == () else axis, x.ndim)


def sum(a, axis=None, dtype=None, keepdims=False, initial=None):
    """Sum over `axis`, and `initial`.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: integers and bool give int64, or `dtype`.
    """
    x = as_tensor("sum", a, "a")
    dtype = result_dtype("sum", dtype)
    x, axes = to_dtype(x, dtype), _axes("sum", x, axis)
    total = ops.sum(x, axes, _flag("sum", keepdims)) if axes else _whole(x)
    if initial is not None:
        total = ops.add(total, initial)
    return to_dtype(total, dtype)


def _whole(x):
    return x if x.dtype.is_floating or x.dtype.is_complex else to_dtype(x, dtypes.int64)


def mean(a, axis=None, keepdims=False, dtype=None):
    """Mean over `axis`; integers are rounded towards zero.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: number -> same or `dtype`.
    Errors: RuntimeError for bools.
    """
    x = as_tensor("mean", a, "a")
    if x.dtype.is_bool:
        raise errors.runtime_error("mean", "bools have no mean")
    axes = _axes("mean", x, axis)
    value = ops.mean(as_float(x), axes, _flag("mean", keepdims)) if axes else x
    return to_dtype(to_dtype(value, x.dtype), result_dtype("mean", dtype))


def var(x, axis=None, ddof=0, keepdims=False):
    """Variance over `axis`: squares are divided by their number less `ddof`, or by 0.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: integers give float32.
    Errors: RuntimeError for bools, TypeError unless ddof is an int.
    """
    x = as_tensor("var", x)
    if x.dtype.is_bool:
        raise errors.runtime_error("var", "bools have no variance")
    if isinstance(ddof, bool) or not isinstance(ddof, int):
        raise errors.type_error("var", f"ddof must be an int, but got {ddof!r}")
    axes = _axes("var", x, axis)
    if math.prod(x.shape[i] for i in axes) <= ddof:  # as NumPy divides by zero
        off = as_float(x) - ops.mean(as_float(x), axes, True) if axes else ops.zeros_like(as_float(x))
        return (ops.sum(off * off, axes, _flag("var", keepdims)) if axes else off) * math.inf
    if not axes:
        return ops.zeros_like(as_float(x))
    if not x.dtype.is_floating:  # the mean of integers is one
        off = as_float(x - mean(x, axes, True))
        count = math.prod(x.shape[i] for i in axes) - ddof
        return ops.sum(off * off, axes, _flag("var", keepdims)) / count
    return ops.var(x, axes, ddof, _flag("var", keepdims))


def std(x, axis=None, ddof=0, keepdims=False):
    """Standard deviation over `axis`: the square root of `var`."""
    return ops.sqrt(var(x, axis, ddof, keepdims))


def _extreme(name: str, reduce, elementwise):
    def extreme(a, axis=None, keepdims=False, initial=None, where=True):
        x = only_tensor(name, a, "a")
        if x.dtype.is_bool:
            raise errors.type_error(name, "bools are not taken")
        if initial is not None and (isinstance(initial, bool) or not isinstance(initial, (int, float))):
            if not is_tensor(initial):
                raise errors.type_error(name, f"initial must be a number, but got {initial!r}")
        axes = _axes(name, x, axis)
        if where is not True:
            if initial is None:
                raise errors.value_error(name, "initial must be given if where is")
            chosen = as_tensor(name, where, "where")
            x = ops.where(chosen, *same_dtype([x, as_tensor(name, initial)], name))
        if initial is None and any(x.shape[i] == 0 for i in axes):
            raise errors.value_error(name, "there is nothing to compare")
        if axes:
            value = reduce(x, axes, _flag(name, keepdims))
        else:
            value = x
        if initial is None:
            return value
        return to_dtype(elementwise(*same_dtype([value, as_tensor(name, initial)], name)), value.dtype)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"""The {name[-3:]}imum over `axis`, where `where` is true, and of `initial`.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: real -> same.
    Errors: TypeError for bools and what is no Tensor, ValueError for `where` without `initial`.
    """
    return extreme


amax = _extreme("amax", ops.amax, ops.maximum)
amin = _extreme("amin", ops.amin, ops.minimum)
max, min = _extreme("max", ops.amax, ops.maximum), _extreme("min", ops.amin, ops.minimum)


def ptp(x, axis=None, keepdims=False):
    """The maximum less the minimum over `axis`.  Errors: TypeError unless a Tensor."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def _place(name: str, function, dtype):
    def place(a, axis=None):
        x = as_tensor(name, a, "a")
        if x.size == 0:
            raise errors.runtime_error(name, "there is nothing to compare")
        x = to_dtype(x, dtypes.int32) if x.dtype.is_bool else x
        if axis is None:
            return to_dtype(function(ops.reshape(x, (-1,)), 0), dtype)
        return to_dtype(function(x, one_axis(name, axis, x.ndim)), dtype)

    place.__name__ = place.__qualname__ = name
    place.__doc__ = f"""Where the {name[3:]}imum along `axis` is, or of all elements, counted through.

    Shapes: the axis vanishes.  dtypes: real -> {dtype.name}.  Errors: RuntimeError if there is nothing.
    """
    return place


argmax = _place("argmax", ops.argmax, dtypes.int64)
argmin = _place("argmin", ops.argmin, dtypes.int32)


def average(x, axis=None, weights=None, returned=False):
    """Mean over `axis`, in proportion to `weights`; with `returned` also the sum of the weights.

    Shapes: weights as `x`, or a vector along `axis`.  dtypes: promoted.
    Errors: TypeError unless both are Tensors and their shapes fit.
    """
    x = only_tensor("average", x)
    if axis is not None:
        axis = axes_of("average", axis, x.ndim)
    if weights is None:
        value = mean(x, axis)
        count = to_dtype(ops.sum(ops.ones_like(x), axis), value.dtype)
        return (value, count) if returned else value
    weights = only_tensor("average", weights, "weights")
    if weights.shape != x.shape:
        if weights.ndim != 1 or axis is None or len(axis) != 1 or weights.shape[0] != x.shape[axis[0]]:
            raise errors.type_error("average", f"weights of shape {weights.shape} do not fit x of {x.shape}")
        weights = ops.reshape(weights, tuple(-1 if i == axis[0] else 1 for i in range(x.ndim)))
        weights = ops.broadcast_to(weights, x.shape)
    x, weights = same_dtype([x, weights], "average")
    total = ops.sum(weights, axis)
    value = ops.div(as_float(ops.sum(x * weights, axis)), as_float(total))
    value, total = to_dtype(value, x.dtype), to_dtype(total, x.dtype)
    return (value, total) if returned else value


def count_nonzero(x, axis=None, keepdims=False):
    """The number of elements over `axis` that are not zero.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: number -> int32.
    Errors: AttributeError unless a Tensor, TypeError for bools.
    """
    if not is_tensor(x):
        raise errors.error(errors.MyceliaAttributeError, "count_nonzero", "x must be a Tensor")
    if x.dtype.is_bool:
        raise errors.type_error("count_nonzero", "bools are not taken")
    return ops.count_nonzero(x, axes_of("count_nonzero", axis, x.ndim), keepdims)


def sometrue(a, axis=None, keepdims=False):
    """Whether some element over `axis` is true or not zero.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: any -> bool.
    """
    x = as_tensor("sometrue", a, "a")
    x = x if x.dtype.is_bool else ops.not_equal(x, 0)
    axes = axes_of("sometrue", axis, x.ndim)
    return ops.any(x, axes, _flag("sometrue", keepdims)) if axes else x


# --------------------------------------------------------------------------------------------------- running


def _running(name, function, x, axis, dtype):
    """`function` along `axis`, or along all elements; small integers and bools as int32."""
    if x.dtype.is_bool or x.dtype.is_integer and x.dtype.itemsize < 4:
        x = to_dtype(x, dtypes.int32)
    if axis is None:
        x, axis = ops.reshape(x, (-1,)), 0
    result = function(x, one_axis(name, axis, x.ndim))
    return to_dtype(result, result_dtype(name, dtype) or x.dtype)


def cumsum(a, axis=None, dtype=None):
    """Running sum along `axis`, or of all elements.

    Shapes: same; a vector without `axis`.  dtypes: small integers and bool give int32, or `dtype`.
    Errors: TypeError unless a Tensor.
    """
    return _running("cumsum", ops.cumsum, only_tensor("cumsum", a, "a"), axis, dtype)


def cumprod(a, axis=None, dtype=None):
    """Running product along `axis`, or of all elements.

    Shapes: same; a vector without `axis`.  dtypes: small integers and bool give int32, Python's ints int64.
    """
    x = as_tensor("cumprod", a, "a")
    if x is not a and x.dtype is dtypes.int32:
        x = to_dtype(x, dtypes.int64)
    return _running("cumprod", ops.cumprod, x, axis, dtype)


# ----------------------------------------------------------------------------------------------- without NaN


def _replaced(x, value):
    """`x` with `value` in the place of each NaN."""
    if not x.dtype.is_floating:
        return x
    return ops.where(ops.isnan(x), to_dtype(as_tensor("nan", value), x.dtype), x)


def nansum(a, axis=None, dtype=None, keepdims=False):
    """Sum over `axis` with NaN counted as 0.  dtypes: number -> same or `dtype`."""
    x = as_tensor("nansum", a, "a")
    total = ops.sum(_replaced(x, 0.0), axes_of("nansum", axis, x.ndim) or None, keepdims)
    return to_dtype(total, result_dtype("nansum", dtype) or x.dtype)


def nanmean(a, axis=None, dtype=None, keepdims=False):
    """Mean over `axis` of the elements that are not NaN; NaN if there are none.  dtypes: float32."""
    result_dtype("nanmean", dtype)
    x = as_float(as_tensor("nanmean", a, "a"))
    axes = axes_of("nanmean", axis, x.ndim) or None
    count = ops.sum(to_dtype(ops.logical_not(ops.isnan(x)), x.dtype), axes, keepdims)
    return ops.div(ops.sum(_replaced(x, 0.0), axes, keepdims), count)


def _or_nan(x, value, axis, keepdims):
    """`value`, or NaN where all elements are."""
    if not x.dtype.is_floating:
        return value
    here = to_dtype(ops.logical_not(ops.isnan(x)), dtypes.int32)
    return ops.where(ops.greater(sum(here, axis, keepdims=keepdims), 0), value, math.nan)


def nanmax(a, axis=None, dtype=None, keepdims=False):
    """Maximum over `axis` of the elements that are not NaN.  dtypes: real -> same or `dtype`."""
    x = as_tensor("nanmax", a, "a")
    value = _or_nan(x, max(_replaced(x, -math.inf), axis, keepdims), axis, keepdims)
    return to_dtype(value, result_dtype("nanmax", dtype))


def nanmin(a, axis=None, dtype=None, keepdims=False):
    """Minimum over `axis` of the elements that are not NaN.  dtypes: real -> same or `dtype`."""
    x = as_tensor("nanmin", a, "a")
    value = _or_nan(x, min(_replaced(x, math.inf), axis, keepdims), axis, keepdims)
    return to_dtype(value, result_dtype("nanmin", dtype))


def nanvar(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Variance over `axis` of the elements that are not NaN.  dtypes: integers give float32, or `dtype`."""
    x = as_float(as_tensor("nanvar", a, "a"))
    axes = axes_of("nanvar", axis, x.ndim) or None
    here = ops.logical_not(ops.isnan(x))
    off = ops.where(here, x - nanmean(x, axes, None, True), ops.zeros_like(x))
    count = ops.relu(ops.sum(to_dtype(here, x.dtype), axes, keepdims) - ddof)
    off = ops.where(ops.greater(ops.sum(to_dtype(here, x.dtype), axes, True), ddof), off, math.nan)
    return to_dtype(ops.div(ops.sum(off * off, axes, keepdims), count), result_dtype("nanvar", dtype))


def nanstd(a, axis=None, dtype=None, ddof=0, keepdims=False):
    """Standard deviation over `axis` of the elements that are not NaN: the square root of `nanvar`."""
    return to_dtype(ops.sqrt(nanvar(a, axis, None, ddof, keepdims)), result_dtype("nanstd", dtype))


def nancumsum(a, axis=None, dtype=None):
    """`cumsum` with NaN counted as 0.  Errors: TypeError unless a Tensor."""
    return cumsum(_replaced(only_tensor("nancumsum", a, "a"), 0.0), axis, dtype)


# ----------------------------------------------------------------------------------------------------- norms


def norm(x, ord=None, axis=None, keepdims=False):
    """Norm of a vector or of matrices: `ord` None or "fro" (2), inf, -inf, 1, -1, of vectors any number.

    Shapes: the axes vanish, or become 1 with `keepdims`.  dtypes: float32 or float64.
    Errors: ValueError for an order that is not there, NotImplementedError for 2, -2 and "nuc" of matrices.
    """
    x = as_tensor("norm", x)
    if x.dtype is not dtypes.float64:
        x = to_dtype(x, dtypes.float32)
    if ord is None and axis is None:
        return ops.sqrt(ops.sum(x * x, tuple(range(x.ndim)) or None, keepdims))
    axes = axes_of("norm", axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise errors.value_error("norm", f"matrices have two axes, but axis is {axis} and rank {x.ndim}")
    if ord in (2, -2, "nuc"):
        raise errors.error(errors.NotSupportedError, "norm", f"order {ord!r} of matrices is not supported")
    if ord in (None, "fro"):
        return ops.sqrt(ops.sum(x * x, axes, keepdims))
    if ord not in (1, -1, math.inf, -math.inf):
        raise errors.value_error("norm", f"matrices have no norm of order {ord!r}")
    rows, columns = axes
    summed, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = ops.sum(ops.abs(x), summed, True)
    value = (ops.amax if ord > 0 else ops.amin)(sums, over, True)
    return value if keepdims else ops.squeeze(value, axes)


def _vector_norm(x, ord, axes, keepdims):
    if ord is None or ord == 2:
        return ops.sqrt(ops.sum(x * x, axes, keepdims))
    if isinstance(ord, str):
        raise errors.value_error("norm", f"vectors have no norm of order {ord!r}")
    size = ops.abs(x)
    if ord in (math.inf, -math.inf):
        return (ops.amax if ord > 0 else ops.amin)(size, axes, keepdims)
    if ord == 0:
        return ops.sum(to_dtype(ops.not_equal(x, 0), x.dtype), axes, keepdims)
    return ops.pow(ops.sum(ops.pow(size, ord), axes, keepdims), 1.0 / ord)
