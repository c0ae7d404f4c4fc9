"""Tensors made from sizes and numbers: zeros, ones, full, eye, arange, linspace, and their `_like` forms.

A filled tensor is one number broadcast to a shape: nothing large is made by NumPy,
and a graph holds one number.
"""

import math

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.shape import as_ints, broadcast_to, constant
from mycelia.engine.ops.define import op
from mycelia.engine.ops.late import ops


def _number(value):
    """A Python number from a number or a Tensor of one element."""
    return value.item() if is_tensor(value) or isinstance(value, np.generic) else value


def _checked_shape(shape, name):
    shape = as_ints(shape, name)
    if any(n < 0 for n in shape):
        raise errors.value_error(f"{name} cannot hold negative sizes, but got {shape}")
    return shape


def full(size, fill_value, *, dtype=None):
    """A tensor of shape `size` with `fill_value` everywhere.

    dtypes: `dtype`, by default int64, whatever the value is.
    Errors: ValueError for a negative size.
    """
    value = _number(fill_value)
    dtype = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    return broadcast_to(constant(value, dtype), _checked_shape(size, "size"))


def zeros(size, dtype=None):
    """A tensor of shape `size` with 0 everywhere, float32 unless `dtype` says otherwise."""
    return broadcast_to(_scalar(0, dtype), _checked_shape(size, "size"))


def ones(shape, dtype=None):
    """A tensor of the given shape with 1 everywhere, float32 unless `dtype` says otherwise."""
    return broadcast_to(_scalar(1, dtype), _checked_shape(shape, "shape"))


_scalars = {}


def _scalar(value, dtype):
    """0 or 1 as a tensor of rank 0, made once for each dtype."""
    dtype = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    found = _scalars.get((value, dtype.name))
    if found is None:
        found = _scalars[value, dtype.name] = constant(value, dtype)
    return found


def fill(type, shape, value):
    """A tensor of dtype `type` and the given shape with `value` everywhere."""
    return full(shape, value, dtype=type)


@op(elementwise="same", infer=lambda x, value, dtype: TensorType(dtype, x.shape), nondiff=True, cost=0)
def _fill_like(x, *, value: "float", dtype: "dtype"):
    """`value` in the shape of `x`, for shapes that are known only at run time.

    Shapes: any -> same.  dtypes: any -> `dtype`.
    """
    return np.full(x.shape, value)


@_fill_like.samples
def _fill_like(rand):
    yield rand(2, 3), dict(value=2.0, dtype="float32")
    yield rand(0, 3), dict(value=1.0, dtype="int32")


def full_like(input, fill_value, *, dtype=None):
    """A tensor of the shape and dtype of `input` (or `dtype`) with `fill_value` everywhere."""
    dtype = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if -1 in input.shape:
        return _fill_like(input, value=_number(fill_value), dtype=dtype)
    return full(input.shape, fill_value, dtype=dtype)


def zeros_like(input, *, dtype=None):
    """A tensor of the shape and dtype of `input` (or `dtype`) with 0 everywhere."""
    if -1 in input.shape:
        return full_like(input, 0, dtype=dtype)
    return broadcast_to(_scalar(0, input.dtype if dtype is None else dtype), input.shape)


def ones_like(input, *, dtype=None):
    """A tensor of the shape and dtype of `input` (or `dtype`) with 1 everywhere."""
    if -1 in input.shape:
        return full_like(input, 1, dtype=dtype)
    return broadcast_to(_scalar(1, input.dtype if dtype is None else dtype), input.shape)


def fills(x, value):
    """A tensor of the shape and dtype of `x` with `value` everywhere."""
    return full_like(x, value)


@ignored.arguments(device="the device target says where it lies")
def empty(*size, dtype=None, device=None):
    """A tensor of shape `size` whose content is undefined, float32 unless `dtype` says otherwise."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return _empty(_checked_shape(shape, "size"), dtypes.float32 if dtype is None else dtypes.as_dtype(dtype))


def _empty(shape, dtype):
    # A graph for many sizes holds no memory of one of them.
    return zeros(shape, dtype) if SymInt in map(type, shape) else _C.empty(dtype, shape)


@ignored.arguments(device="the device target says where it lies")
def empty_like(input, *, dtype=None, device=None):
    """A tensor of the shape and dtype of `input` (or `dtype`) whose content is undefined."""
    return _empty(input.shape, input.dtype if dtype is None else dtypes.as_dtype(dtype))


def eye(n, m=None, dtype=None):
    """A matrix of `n` rows and `m` (by default n) columns with 1 on its diagonal and 0 elsewhere.

    dtypes: `dtype`, by default float32.  Errors: ValueError for a negative size.
    """
    rows, columns = _checked_shape((n, n if m is None else m), "n and m")
    if SymInt in (type(rows), type(columns)):
        from mycelia.engine.ops.elementwise.cast import cast

        on = arange(rows).reshape(rows, 1) == arange(columns)
        return cast(on, dtype=dtypes.float32 if dtype is None else dtypes.as_dtype(dtype))
    return constant(np.eye(rows, columns), dtypes.float32 if dtype is None else dtypes.as_dtype(dtype))


def arange(start=0, end=None, step=1, *, dtype=None):
    """The numbers from `start` to `end` (not included) in steps of `step`; with one argument from 0 to it.

    Shapes: [ceil((end - start) / step)].  dtypes: `dtype`, by default int64,
    or float32 if a number is a float.
    Errors: ValueError for a zero step, or one that leads away from `end`.
    """
    start, end, step = _number(start), _number(end), _number(step)
    if end is None:
        start, end = 0, start
    return _progression("arange", start, end, step, dtype)


def _progression(name, start, end, step, dtype):
    for argument, value in (("start", start), ("end", end), ("step", step)):
        if isinstance(value, str) or value is None:
            raise errors.type_error(f"For '{name}', {argument} must be a number, but got {value!r}")
    if step == 0:
        raise errors.value_error(f"For '{name}', step cannot be 0")
    if (end - start) * step < 0:
        raise errors.value_error(f"For '{name}', step {step} leads away from {end} when starting at {start}")
    numbers = (start, end, step)
    if dtype is None:
        dtype = dtypes.float32 if any(isinstance(v, float) for v in numbers) else dtypes.int64
    exact = np.int64 if all(isinstance(v, int) for v in numbers) else np.float64
    count = math.ceil((end - start) / step) if exact is np.float64 else -(-(end - start) // step)
    if SymInt in (type(start), type(step), type(count)):
        from mycelia.engine.ops.elementwise.cast import cast
        from mycelia.engine.ops.reductions.scan import cumsum

        # A sum of steps holds for all counts.
        places = cumsum(broadcast_to(constant(1, dtypes.int64), (count,)), 0) - 1
        places = places if exact is np.int64 else cast(places, dtype=dtypes.float64)
        return cast(places * step + start, dtype=dtypes.as_dtype(dtype))
    return constant(start + step * np.arange(count, dtype=exact), dtypes.as_dtype(dtype))


def range(start, end, step, maxlen=1000000):
    """The numbers from `start` to `end` (not included) in steps of `step`, at most `maxlen`.

    dtypes: int64, or float32 if a number is a float.
    Errors: ValueError for a zero or wrong-way step, too many numbers.
    """
    result = _progression("range", _number(start), _number(end), _number(step), None)
    if result.size > maxlen:
        raise errors.value_error(f"For 'range', {result.size} numbers are more than maxlen {maxlen}")
    return result


def linspace(start, end, steps):
    """`steps` numbers from `start` to `end`, both included, at equal distances.

    Shapes: [steps], or [B.., steps] for tensors of shape [B..].  dtypes: float32, or that of the tensors.
    Errors: ValueError if steps is below 1.
    """
    return _spaced("linspace", start, end, steps, None)


def _spaced(name, start, end, steps, dtype):
    steps = _number(steps)
    if steps < 1:
        raise errors.value_error(f"For '{name}', steps must be positive, but got {steps}")
    if dtype is None:
        floating = [v.dtype for v in (start, end) if is_tensor(v) and v.dtype.is_floating]
        dtype = floating[0] if floating else dtypes.float32
    if is_tensor(start) or is_tensor(end):
        wide = [_as_double(v) for v in (start, end)]
        share = _evenly(0.0, 1.0, steps)
        low, high = (v.expand_dims(-1) for v in wide)
        return (low * (1.0 - share) + high * share).astype(dtype)
    return _evenly(_as_float(start), _as_float(end), steps).astype(dtype)


def _as_float(value):
    return value.converted(float) if type(value) is SymInt else float(value)


def _evenly(start, end, steps):
    """`np.linspace` in float64."""
    if SymInt not in (type(start), type(end), type(steps)):
        return constant(np.linspace(start, end, steps), dtypes.float64)
    if steps == 1:
        return constant([start], dtypes.float64)
    position = arange(steps).astype(dtypes.float64)
    inner = position * ((end - start) / (steps - 1)) + start
    return ops.where(position == steps - 1, constant(end, dtypes.float64), inner)


def _as_double(value):
    from mycelia.engine.ops.control_flow.control import stop_gradient

    if is_tensor(value):
        return stop_gradient(value).astype(dtypes.float64)
    return constant(value, dtypes.float64)


def logspace(start, end, steps, base=10, *, dtype=dtypes.float32):
    """`steps` powers of `base`, the exponents from `start` to `end` at equal distances.

    Shapes: [steps].  dtypes: `dtype`.  Errors: ValueError if steps is negative.
    """
    if steps < 0:
        raise errors.value_error(f"For 'logspace', steps cannot be negative, but got {steps}")
    low, high = _as_float(_number(start)), _as_float(_number(end))
    exponents = _evenly(low, high, steps)
    return ops.pow(constant(float(base), dtypes.float64), exponents).astype(dtypes.as_dtype(dtype))


def vander(x, N=None):
    """The matrix whose columns are the powers of the vector `x`, from ``N - 1`` down to 0.

    Shapes: [n] -> [n, N], N = n by default.  Errors: ValueError if x is no vector or N is negative.
    """
    if x.ndim != 1:
        raise errors.value_error(f"For 'vander', x must be a vector, but got shape {x.shape}")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise errors.value_error(f"For 'vander', N cannot be negative, but got {N}")
    if type(count) is SymInt:
        exponents = (count - 1 - arange(count)).astype(x.dtype)
    else:
        exponents = constant(np.arange(count)[::-1], x.dtype)
    return x.reshape((-1, 1)) ** exponents


def sequence_mask(lengths, maxlen=None):
    """Masks that are true for the first `lengths` places.

    Shapes: [I..] -> [I.., maxlen], maxlen = the largest length by default.  dtypes: integer -> bool.
    """
    if maxlen is None:
        maxlen = max(int(lengths.asnumpy().max(initial=0)), 0)
    return arange(maxlen, dtype=lengths.dtype) < lengths.reshape((*lengths.shape, 1))


__all__ = [
    "full", "zeros", "ones", "fill", "full_like", "zeros_like", "ones_like", "fills", "empty", "empty_like",
    "eye", "arange", "range", "linspace", "logspace", "vander", "sequence_mask",
]  # fmt: skip
