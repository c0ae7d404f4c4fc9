"""What the functions take: array-likes, dtypes, axes."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import constant, positive_axes
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.tensors.tensor import is_tensor

_TEXTS = {"int": dtypes.int32, "float": dtypes.float32, "bool": dtypes.bool_, "uint": dtypes.uint32}
_PYTHON = {int: dtypes.int32, float: dtypes.float32, bool: dtypes.bool_}


def only_tensor(name: str, x, parameter: str = "x"):
    """`x`; TypeError unless it is a Tensor."""
    if not is_tensor(x):
        raise errors.type_error(name, f"{parameter} must be a Tensor, but got {type(x).__name__}")
    return x


def as_tensor(name: str, x, parameter: str = "x"):
    """A Tensor from a Tensor, number, list or tuple; Python's numbers become int32 and float32.

    Errors: TypeError for other values, ValueError for rows of different lengths.
    """
    if is_tensor(x):
        return x
    if isinstance(x, (list, tuple)) and _holds_tensor(x):
        parts = [as_tensor(name, part, parameter) for part in x]
        return ops.stack(same_dtype(parts), 0)
    if not isinstance(x, (bool, int, float, list, tuple)):
        raise errors.type_error(
            name, f"{parameter} must be a Tensor, number, list or tuple, but got {type(x).__name__}"
        )
    values = np.asarray(x)
    if values.dtype.kind not in "biuf":
        raise errors.type_error(name, f"{parameter} must hold numbers, but got {x!r:.60}")
    if isinstance(x, (list, tuple, int, float)):
        narrow = {np.dtype(np.float64): dtypes.float32, np.dtype(np.int64): dtypes.int32}
        return constant(values, narrow.get(values.dtype))
    return constant(values)


def _holds_tensor(values) -> bool:
    return any(is_tensor(v) or isinstance(v, (list, tuple)) and _holds_tensor(v) for v in values)


def common_dtype(name: str, tensors) -> dtypes.DType:
    """The dtype to which all are promoted."""
    found = tensors[0].dtype
    for x in tensors[1:]:
        found = promoted(name, found, x.dtype)
    return found


def promoted(name: str, a, b) -> dtypes.DType:
    """The common dtype of two; TypeError if there is none."""
    try:
        return dtypes.promote(a, b)
    except TypeError as reason:
        raise errors.type_error(name, str(reason)) from None


def same_dtype(tensors, name: str = "stack") -> list:
    """All brought to their common dtype."""
    dtype = common_dtype(name, tensors)
    return [to_dtype(x, dtype) for x in tensors]


def to_dtype(x, dtype):
    """`x` in `dtype`; None leaves it."""
    return x if dtype is None or x.dtype is dtype else cast(x, dtype)


def as_float(x):
    """`x`, integers and bools as float32."""
    return x if x.dtype.is_floating or x.dtype.is_complex else cast(x, dtypes.float32)


def checked_dtype(name: str, dtype, optional: bool = False):
    """The dtype that a DType, a text, int, float, bool or a NumPy type names; TypeError for others."""
    if dtype is None and optional:
        return None
    if isinstance(dtype, str):
        found = _TEXTS.get(dtype.lower()) or getattr(dtypes, dtype.lower(), None)
        if isinstance(found, dtypes.DType):
            return found
    elif isinstance(dtype, dtypes.Type) or isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtypes.as_dtype(dtype)
    elif dtype in _PYTHON:
        return _PYTHON[dtype]
    raise errors.type_error(name, f"dtype must name an element type such as float32, but got {dtype!r}")


def result_dtype(name: str, dtype):
    """A dtype that a computing function may be given: a DType or None; TypeError for others."""
    if dtype is None or isinstance(dtype, dtypes.DType):
        return dtype
    if isinstance(dtype, str) or not isinstance(dtype, (type, dtypes.Type)):
        raise errors.type_error(name, f"dtype must be a dtype such as float32, but got {dtype!r}")
    return checked_dtype(name, dtype)


def axes_of(name: str, axis, rank: int):
    """The axes that None (all), an int or a tuple or list of ints names, counted from the front.

    Errors: TypeError for others, ValueError for axes out of range or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if any(isinstance(a, bool) or not isinstance(a, int) for a in given):
        raise errors.type_error(name, f"axis must be an int or a tuple of ints, but got {axis!r}")
    return positive_axes(given, rank)


def one_axis(name: str, axis, rank: int) -> int:
    """One axis, counted from the front; TypeError unless an int, ValueError out of range."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise errors.type_error(name, f"axis must be an int, but got {axis!r}")
    return positive_axes((axis,), rank)[0]


def an_int(name: str, value, parameter: str) -> int:
    """`value`; TypeError unless it is an int."""
    if not isinstance(value, int):
        raise errors.type_error(name, f"{parameter} must be an int, but got {value!r}")
    return value


def as_shape(name: str, shape) -> tuple[int, ...]:
    """A tuple from an int or a tuple or list of ints; TypeError for others, ValueError for negative ones."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in sizes):
        raise errors.type_error(name, f"shape must be an int or a tuple of ints, but got {shape!r}")
    if any(n < 0 for n in sizes):
        raise errors.value_error(name, f"shape cannot hold negative sizes, but got {shape}")
    return sizes
