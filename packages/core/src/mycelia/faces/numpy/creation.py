"""Functions that make Tensors from sizes and numbers, draw them, or answer questions about dtypes."""

from __future__ import annotations

import math

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.random.random import _normal, _uniform
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    an_int,
    as_shape,
    as_tensor,
    checked_dtype,
    one_axis,
    promoted,
    to_dtype,
)


def array(obj, dtype=None, copy=True, ndmin=0):
    """A Tensor with the values of a Tensor, number, list or tuple, of rank `ndmin` at least.

    dtypes: `dtype`, by default int32, float32 or bool for Python's numbers.
    Errors: TypeError for other values, ValueError for rows of different lengths.
    """
    x = to_dtype(as_tensor("array", obj, "obj"), checked_dtype("array", dtype, optional=True))
    if ndmin > x.ndim:
        return ops.reshape(x, (1,) * (ndmin - x.ndim) + tuple(x.shape))
    return ops.reshape(x, x.shape) if copy and x is obj else x


def asarray(a, dtype=None):
    """`array` without a copy if `a` is a Tensor of that dtype already."""
    return to_dtype(as_tensor("asarray", a, "a"), checked_dtype("asarray", dtype, optional=True))


def asfarray(a, dtype=dtypes.float32):
    """`asarray` in a floating dtype: any other means float32; None keeps what `a` has."""
    dtype = checked_dtype("asfarray", dtype, optional=True)
    if dtype is not None and not dtype.is_floating:
        dtype = dtypes.float32
    return to_dtype(as_tensor("asfarray", a, "a"), dtype)


def copy(a):
    """A Tensor of its own with the values of `a`."""
    return array(a)


def ones(shape, dtype=dtypes.float32):
    """Ones.  Shapes: `shape`, an int or ints.  Errors: ValueError for negative sizes."""
    dtype = checked_dtype("ones", dtype)
    return ops.ones(as_shape("ones", shape), dtype)


def zeros(shape, dtype=dtypes.float32):
    """Zeros.  Shapes: `shape`, an int or ints.  Errors: ValueError for negative sizes."""
    dtype = checked_dtype("zeros", dtype)
    return ops.zeros(as_shape("zeros", shape), dtype)


def empty(shape, dtype=dtypes.float32):
    """A Tensor whose values do not matter: zeros."""
    return zeros(shape, dtype)


def full(shape, fill_value, dtype=None):
    """`fill_value` everywhere, broadcast if it is not a number.

    Shapes: `shape`.  dtypes: `dtype`, or that of the value.
    """
    shape = as_shape("full", shape)
    value = as_tensor("full", fill_value, "fill_value")
    return ops.broadcast_to(to_dtype(value, checked_dtype("full", dtype, optional=True)), shape)


def full_like(a, fill_value, dtype=None, shape=None):
    """`full` with the shape and dtype of `a`, unless others are given."""
    a = as_tensor("full_like", a, "a")
    return full(a.shape if shape is None else shape, fill_value, a.dtype if dtype is None else dtype)


def ones_like(a, dtype=None, shape=None):
    """`ones` with the shape and dtype of `a`, unless others are given."""
    return full_like(a, 1, dtype, shape)


def zeros_like(a, dtype=None, shape=None):
    """`zeros` with the shape and dtype of `a`, unless others are given."""
    return full_like(a, 0, dtype, shape)


def empty_like(prototype, dtype=None, shape=None):
    """`empty` with the shape and dtype of `prototype`, unless others are given."""
    return full_like(prototype, 0, dtype, shape)


def arange(start, stop=None, step=None, dtype=None):
    """The numbers from `start` to `stop` (not included) in steps of `step`; alone, `start` is the stop.

    dtypes: `dtype`, by default that of the three: int32 or float32.
    Errors: TypeError for other values, ValueError if there are none, ZeroDivisionError for a zero step.
    """
    numbers = [_scalar("arange", v) for v in (start, stop, step) if v is not None]
    if stop is None:
        low, high = 0, numbers[0]
    else:
        low, high = numbers[:2]
    gap = 1 if step is None else numbers[-1]
    if gap == 0:
        raise errors.error(errors.MyceliaZeroDivisionError, "arange", "step cannot be 0")
    count = math.ceil((high - low) / gap)
    if count < 1:
        raise errors.value_error("arange", f"there is no number from {low} to {high} in steps of {gap}")
    dtype = checked_dtype("arange", dtype, optional=True)
    if dtype is None:
        dtype = dtypes.float32 if any(isinstance(v, float) for v in numbers) else dtypes.int32
        dtype = dtypes.bool_ if isinstance(start, bool) and stop is None else dtype
    if type(count) is SymInt and all(isinstance(v, int) for v in numbers):
        return ops.arange(low, high, gap, dtype=dtype)
    return constant(low + gap * np.arange(count), dtype)


def _scalar(name: str, value):
    if is_tensor(value):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise errors.type_error(name, f"start, stop and step must be numbers, but got {value!r}")
    return value


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """`num` numbers from `start` to `stop` at equal distances, and the distance with `retstep`.

    Shapes: start, stop broadcast [..] -> [num, ..], the new axis at `axis`.  dtypes: float32 or `dtype`.
    Errors: TypeError unless num is an int, ValueError if it is not positive.
    """
    dtype = checked_dtype("linspace", dtype, optional=True)
    start, stop = (to_dtype(as_tensor("linspace", v), dtypes.float32) for v in (start, stop))
    if an_int("linspace", num, "num") < 1:
        raise errors.value_error("linspace", f"num must be positive, but got {num}")
    start, stop = start + ops.zeros_like(stop), stop + ops.zeros_like(start)
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts else ops.full_like(stop, math.nan)
    rank = start.ndim
    places = ops.reshape(ops.arange(num, dtype=dtypes.float32), (num,) + (1,) * rank)
    result = ops.expand_dims(start, 0)
    if parts:
        result = result + places * ops.expand_dims(step, 0)
        if endpoint:  # the last one exactly
            last = ops.equal(places, num - 1)
            result = ops.where(last, ops.expand_dims(stop, 0), result)
    result = ops.moveaxis(result, 0, one_axis("linspace", axis, rank + 1)) if rank else result
    result = to_dtype(result, dtype)
    return (result, step) if retstep else result


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of `base`, the exponents as of `linspace`."""
    exponents = linspace(start, stop, num, endpoint, False, None, axis)
    return to_dtype(ops.pow(float(base), exponents), checked_dtype("logspace", dtype, optional=True))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    Shapes: as of `linspace`.  dtypes: float32 or `dtype`.
    """
    start, stop = (to_dtype(as_tensor("geomspace", v), dtypes.float32) for v in (start, stop))
    parts = an_int("geomspace", num, "num") - 1 if endpoint else num
    if parts == 0:
        raise errors.error(errors.MyceliaZeroDivisionError, "geomspace", "one number has no ratio")
    if num < 1:
        raise errors.value_error("geomspace", f"num must be positive, but got {num}")
    start, stop = start + ops.zeros_like(stop), stop + ops.zeros_like(start)
    rank = start.ndim
    shares = constant(np.arange(num) / parts, dtypes.float32)
    shares = ops.reshape(shares, (num,) + (1,) * rank)
    result = ops.expand_dims(start, 0) * ops.pow(ops.expand_dims(stop / start, 0), shares)
    result = ops.moveaxis(result, 0, one_axis("geomspace", axis, rank + 1)) if rank else result
    return to_dtype(result, checked_dtype("geomspace", dtype, optional=True))


def eye(N, M=None, k=0, dtype=dtypes.float32):
    """A matrix with ones on its `k`-th diagonal.  Shapes: [N, M], M = N by default."""
    dtype = checked_dtype("eye", dtype)
    rows, columns, k = (an_int("eye", v, "N, M and k") for v in (N, N if M is None else M, k))
    if SymInt in (type(rows), type(columns), type(k)):
        return to_dtype(ops.equal(ops.arange(rows).reshape(-1, 1) + k, ops.arange(columns)), dtype)
    return constant(np.eye(rows, columns, k), dtype)


def identity(n, dtype=dtypes.float32):
    """The identity matrix.  Shapes: [n, n]."""
    return eye(n, dtype=dtype)


# ------------------------------------------------------------------------------------------------ at random


def _drawn(name, draw, shape, dtype):
    dtype = checked_dtype(name, dtype)
    if not dtype.is_floating:
        raise errors.value_error(name, f"dtype must be floating, but got {dtype}")
    shape = as_shape(name, shape[0] if len(shape) == 1 else shape or (1,))
    return to_dtype(draw(shape, dtypes.float32), dtype)


def rand(*shape, dtype=dtypes.float32):
    """Numbers of the uniform distribution over [0, 1).  Shapes: `shape` as ints or one tuple."""
    return _drawn("rand", _uniform, shape, dtype)


def randn(*shape, dtype=dtypes.float32):
    """Numbers of the standard normal distribution.  Shapes: `shape` as ints or one tuple."""
    return _drawn("randn", _normal, shape, dtype)


def randint(minval, maxval=None, shape=None, dtype=dtypes.int32):
    """Integers of the uniform distribution over [minval, maxval); alone, `minval` is the bound, from 0.

    Shapes: `shape`, [1] by default.  dtypes: int32.
    Errors: ValueError unless minval < maxval, and for dtypes that are not integer; TypeError for other ints.
    """
    dtype = checked_dtype("randint", dtype)
    low, high = (0, minval) if maxval is None else (minval, maxval)
    low, high = an_int("randint", low, "minval"), an_int("randint", high, "maxval")
    if low >= high:
        raise errors.value_error("randint", f"minval must be below maxval, but got {low} and {high}")
    if not dtype.is_integer:
        raise errors.value_error("randint", f"dtype must be integer, but got {dtype}")
    if dtype.itemsize < 4:
        raise errors.type_error("randint", f"dtype must be int32 or int64, but got {dtype}")
    drawn = ops.randint(low, high, as_shape("randint", (1,) if shape is None else shape))
    return to_dtype(drawn, dtype)


# --------------------------------------------------------------------------------------- questions of dtypes


def promote_types(type1, type2):
    """The dtype that holds both.  Errors: TypeError for what names no dtype."""
    type1, type2 = (checked_dtype("promote_types", t) for t in (type1, type2))
    return promoted("promote_types", type1, type2)


def result_type(*arrays_and_dtypes):
    """The dtype of a result of Tensors, numbers and dtypes.

    Errors: TypeError for what has none, IndexError for nothing.
    """
    if not arrays_and_dtypes:
        raise errors.index_error("result_type", "at least one argument is needed")
    found = None
    for one in arrays_and_dtypes:
        if is_tensor(one) or isinstance(one, (bool, int, float)):
            dtype = as_tensor("result_type", one).dtype
        elif isinstance(one, (list, tuple)):
            raise errors.type_error("result_type", f"takes Tensors, numbers and dtypes, but got {one!r:.60}")
        elif isinstance(one, str) and len(one) < 4:
            dtype = dtypes.as_dtype(np.dtype(one))
        else:
            dtype = checked_dtype("result_type", one)
        found = dtype if found is None else promoted("result_type", found, dtype)
    return found
