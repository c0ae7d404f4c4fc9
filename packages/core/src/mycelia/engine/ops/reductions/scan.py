"""Running reductions along one axis: sums, products, extremes, log-sums of exponentials."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op, registry
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axis
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.reductions import extreme_values as _extreme_values
from mycelia.engine.ops.reductions import reduce as _reduce


def _scan_type(x, *, axis, **attrs):
    normalize_axis(axis, len(x.shape))
    return x


def _scan_samples(rand):
    yield rand(7)
    yield rand(3, 4), dict(axis=1)
    yield rand(2, 3, 4), dict(axis=-2)
    yield rand(2, 3, 1), dict(axis=2)
    yield rand()
    yield rand(0, 3)
    yield rand(3, 0), dict(axis=1)
    yield rand(131, 33), dict(axis=0, _grad=False)
    yield rand(5, 1031), dict(axis=1, _grad=False)
    yield rand.ints(-5, 5, (4, 3)), dict(axis=1, _grad=False)
    yield rand.ints(-5, 5, (4, 3), dtype="int64"), dict(axis=0, _grad=False)


@op(name="cumsum", infer=_scan_type, mindir="CumSum", batch=_batch.along("axis"), precision="wide")
def _cumsum(x, *, axis: "int" = 0, reverse: "bool" = False):
    """Sums of all elements up to each one along `axis`; from the end with `reverse`.

    Shapes: any -> same.  dtypes: real but bool.  Errors: ValueError for an axis out of range.
    """
    if x.ndim == 0:
        return x
    if reverse:
        return np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis)
    return np.cumsum(x, axis, dtype=x.dtype)


@_cumsum.vjp
def _cumsum(ct, *, axis, reverse):
    return _cumsum(ct, axis=axis, reverse=not reverse)


@_cumsum.samples
def _cumsum(rand):
    yield from _scan_samples(rand)
    yield rand(2, 3, 4), dict(axis=1, reverse=True)
    yield rand(3, 37), dict(axis=1, reverse=True, _grad=False)


def cumsum(x, axis, dtype=None):
    """Sums of all elements up to each one along `axis`, in `dtype` if given.

    Shapes: any -> same.  dtypes: real but bool.  Errors: ValueError for an axis out of range.
    """
    return _cumsum(x if dtype is None else cast(x, dtype), axis=axis)


@op(name="cumprod", infer=_scan_type, mindir="CumProd", batch=_batch.along("axis"), precision="wide")
def _cumprod(x, *, axis: "int" = 0):
    """Products of all elements up to each one along `axis`.

    Shapes: any -> same.  dtypes: real but bool.  Errors: ValueError for an axis out of range.
    """
    return x if x.ndim == 0 else np.cumprod(x, axis, dtype=x.dtype)


@_cumprod.vjp
def _cumprod(ct, x, *, axis):
    # d out[i] / d x[k] = product of x[:i + 1] without x[k], for k <= i: n**2 entries a row, exact at zeros.
    from mycelia.engine.ops.arrays.axes import moveaxis
    from mycelia.engine.ops.arrays.shape import broadcast_to, expand_dims

    if not x.shape:
        return ct
    rows, flows = moveaxis(x, axis, -1), moveaxis(ct, axis, -1)
    n = rows.shape[-1]
    square = (*rows.shape[:-1], n, n)
    diagonal = _comparison.equal(_index_column(n), _index_row(n))
    without = ops.where(diagonal, 1.0, broadcast_to(expand_dims(rows, -2), square))  # row k lacks x[k]
    table = ops.where(
        _comparison.greater_equal(_index_row(n), _index_column(n)), _cumprod(without, axis=-1), 0.0
    )  # [k, i]
    return moveaxis(_reduce.sum(_math.mul(table, expand_dims(flows, -2)), -1), -1, axis)


def _index_row(n):
    return ops.arange(n)


def _index_column(n):
    from mycelia.engine.ops.arrays.shape import reshape

    return reshape(_index_row(n), (n, 1))


@_cumprod.samples
def _cumprod(rand):
    for x, *rest in map(lambda s: s if isinstance(s, tuple) else (s,), _scan_samples(rand)):
        yield np.copysign(0.5 + np.abs(x), x).astype(x.dtype) if x.dtype.kind == "f" else x, *rest
    yield np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 1.0, 0.0, 2.0]], np.float32), dict(axis=1)


def cumprod(input, dim, dtype=None):
    """Products of all elements up to each one along `dim`, in `dtype` if given; integers give int64.

    Shapes: any -> same.  dtypes: real.  Errors: ValueError for an axis out of range.
    """
    if dtype is None and not (input.dtype.is_floating or input.dtype.is_complex):
        dtype = dtypes.int64
    return _cumprod(input if dtype is None else cast(input, dtype), axis=dim)


# -------------------------------------------------------------------------------------- running extremes


def _extreme_type(x, *, axis):
    normalize_axis(axis, len(x.shape))
    return x, TensorType(dtypes.int64, x.shape)


def _running(better, x, axis):
    """Values and places of the best element so far: among equals the last, and NaN once there is one."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(x, axis, 0)
    value, place = rows.copy(), np.zeros(rows.shape, np.int64)
    for i in range(1, len(rows)):
        keep = ~better(rows[i], value[i - 1])
        value[i] = np.where(keep, value[i - 1], rows[i])
        place[i] = np.where(keep, place[i - 1], i)
    return np.moveaxis(value, 0, axis), np.moveaxis(place, 0, axis)


@op(name="cummax", infer=_extreme_type, outputs=2, mindir="Cummax", batch=_batch.along("axis"))
def _cummax(x, *, axis: "int"):
    """Largest element so far along `axis` and its place; of equals the last; NaN from the first NaN on.

    Shapes: any -> same, same.  dtypes: real -> (same, int64).  Errors: ValueError for an axis out of range.
    """
    return _running(lambda new, old: (new >= old) & ~np.isnan(old) | np.isnan(new), x, axis)


@op(name="cummin", infer=_extreme_type, outputs=2, mindir="Cummin", batch=_batch.along("axis"))
def _cummin(x, *, axis: "int"):
    """Smallest element so far along `axis` and its place; of equals the last; NaN from the first NaN on.

    Shapes: any -> same, same.  dtypes: real -> (same, int64).  Errors: ValueError for an axis out of range.
    """
    return _running(lambda new, old: (new <= old) & ~np.isnan(old) | np.isnan(new), x, axis)


def _running_grad(cts, outs, x_shape, axis):
    if not x_shape or cts[0] is None:  # None: only the places went into a result
        return cts[0]
    return registry["place_along"](cts[0], outs[1], axis=axis, length=x_shape[axis])


def _running_samples(rand):
    yield rand.distinct(7), dict(axis=0)
    yield rand.distinct(3, 4), dict(axis=1)
    yield rand.distinct(2, 3, 4), dict(axis=-2)
    yield rand(0, 3), dict(axis=0)
    yield np.array([1.0, 3.0, 3.0, np.nan, 5.0, np.nan], np.float32), dict(axis=0, _grad=False)
    yield rand.ints(-3, 3, (5, 6)), dict(axis=1, _grad=False)


for _extreme in (_cummax, _cummin):
    _extreme.vjp(_running_grad)
    _extreme.samples(_running_samples)


def cummax(input, axis):
    """Largest element so far along `axis` and its place.

    Shapes: any -> same, same.  dtypes: real -> (same, int64).  Errors: ValueError for an axis out of range.
    """
    return _cummax(input, axis=axis)


def cummin(input, axis):
    """Smallest element so far along `axis` and its place.

    Shapes: any -> same, same.  dtypes: real -> (same, int32).  Errors: ValueError for an axis out of range.
    """
    value, place = _cummin(input, axis=axis)
    return value, cast(place, dtypes.int32)


@op(name="logcumsumexp", infer=_scan_type, float_result=True, batch=_batch.along("axis"))
def _logcumsumexp(x, *, axis: "int"):
    """``log(cumsum(exp(x)))`` along `axis` without overflow on the way.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError for an axis out of range.
    """
    return x if x.ndim == 0 else np.logaddexp.accumulate(x, axis)


@_logcumsumexp.vjp
def _logcumsumexp(ct, x, out, *, axis):
    # exp(x[k]) * sum over i >= k of ct[i] exp(-out[i]), shifted so that no factor overflows.
    peak = _extreme_values.amax(out, axis, True) if out.shape else out
    weights = _math.mul(ct, _powers.exp(_math.sub(peak, out)))
    return _math.mul(_cumsum(weights, axis=axis, reverse=True), _powers.exp(_math.sub(x, peak)))


@_logcumsumexp.samples
def _logcumsumexp(rand):
    yield rand(7), dict(axis=0)
    yield rand(3, 4), dict(axis=1)
    yield rand(2, 3, 4), dict(axis=-2)
    yield np.array([100.0, 101.0, -100.0], np.float32), dict(axis=0)
    yield rand(), dict(axis=0)


def logcumsumexp(input, axis):
    """``log(cumsum(exp(input)))`` along `axis` without overflow on the way.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError for an axis out of range.
    """
    return _logcumsumexp(input, axis=axis)


# ----------------------------------------------------------------------------------- neighbours on an axis


def _neighbours(x, axis):
    """`x` without its first and without its last element along `axis`."""
    from mycelia.engine.ops.arrays.slicing import narrow

    last = x.shape[axis] - 1
    return narrow(x, axis, 1, last), narrow(x, axis, 0, last)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along `axis`, taken `n` times; `prepend` and `append` are joined first.

    Shapes: [..., m, ...] -> [..., m - n, ...].  dtypes: any; bool gives "exclusive or".
    Errors: ValueError for n < 0, an axis out of range, or rank 0.
    """
    if n < 0:
        raise errors.value_error(f"diff: n must not be negative, but is {n}")
    if not x.shape:
        raise errors.value_error("diff: x must have at least one axis")
    axis = normalize_axis(axis, len(x.shape))
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = ops.cat(parts, axis)
    for _ in range(n):
        later, earlier = _neighbours(x, axis)
        x = _logic.logical_xor(later, earlier) if x.dtype.is_bool else _math.sub(later, earlier)
    return x


def trapz(y, x=None, *, dx=1.0, dim=-1):
    """Integral along `dim` by the trapezoidal rule, over the points `x` or over steps of `dx`.

    Shapes: the axis vanishes.  dtypes: floating; integers give float32.
    Errors: ValueError for an axis out of range.
    """
    y = y if y.dtype.is_floating else cast(y, dtypes.float32)
    axis = normalize_axis(dim, len(y.shape))
    later, earlier = _neighbours(y, axis)
    step = float(dx)
    if x is not None:
        step = diff(x, 1, axis if len(x.shape) == len(y.shape) else -1)
        if len(x.shape) == 1 and len(y.shape) > 1:
            from mycelia.engine.ops.arrays.shape import reshape

            step = reshape(step, (-1,) + (1,) * (len(y.shape) - 1 - axis))
    return _reduce.sum(_math.mul(_math.mul(_math.add(later, earlier), 0.5), step), axis)


__all__ = [
    "cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp", "trapz",
]  # fmt: skip
