"""Change of element type."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops.define import op


def _cast_type(input, *, dtype):
    return TensorType(dtype, input.shape)


def np_cut(x, dtype):
    """Floating numbers as integers of a NumPy dtype, as `cast` says; NumPy leaves some of it open."""
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    number = np.int32 if dtype == np.int32 else np.int64
    lowest = np.iinfo(number).min
    low = x.dtype.type(lowest)
    upper = (x >= -low) & (x < -2 * low) & (dtype == np.uint64)
    x = np.where(upper, x + low, x)
    whole = np.where((x >= low) & (x < -low), x, low).astype(number)
    return np.where(upper, whole ^ lowest, whole).astype(dtype)


_STEPS = {
    (_fusion.INT, _fusion.FLOAT): "float_of_int", (_fusion.MASK, _fusion.FLOAT): "float_of_mask",
    (_fusion.FLOAT, _fusion.INT): "int_of_float", (_fusion.MASK, _fusion.INT): "int_of_mask",
    (_fusion.FLOAT, _fusion.MASK): "mask_of_float", (_fusion.INT, _fusion.MASK): "mask_of_int",
}  # fmt: skip


def _casts_fuse(inputs, output):
    """Between the kinds of a program, and between floats of 16 and 32 bits."""
    (given,) = inputs
    both = {given, output}
    return given is not output and (both <= {dtypes.float32, *_fusion.NARROW} or both <= set(_fusion.KINDS))


def _cast_steps(p, x, *, dtype):
    kind = p.types[x]
    if kind == _fusion.FLOAT and dtype in (dtypes.float32, *_fusion.NARROW):
        rounding = _fusion.ROUNDING.get(dtype)
        # What has been rounded already stays as it is.
        return x if rounding is None or p.steps[x][0] == rounding else p.step(rounding, x)
    return p.step(_STEPS[kind, _fusion.KINDS[dtype]], x)


@op(
    elementwise="same", infer=_cast_type, mindir="Cast", cost=0, fuse=_fusion.Fusion(_cast_steps, _casts_fuse)
)
def cast(input, *, dtype: "dtype"):
    """`input` with elements of `dtype`: rounded to the nearest floating number, cut to zero for integers.

    Integers wrap around; NaN and what is out of range give the lowest int32 or int64, of which narrower and
    unsigned integers are the low bits; uint64 takes what fits. Nonzero, also NaN, is true.
    Shapes: any -> same.  dtypes: any -> `dtype`.
    """
    if input.dtype.kind == "c" and not (dtype.is_complex or dtype.is_bool):
        input = input.real
    if dtype.is_integer and input.dtype.kind == "f":
        return np_cut(input, dtype.np)
    return input.astype(np.float32 if dtype is dtypes.bfloat16 else dtype.np)


@cast.vjp
def cast(ct, input_dtype, dtype):
    return cast(ct, input_dtype)  # integers too: a number that is rounded on its way passes its gradient on


@cast.samples
def cast(rand):
    floats = (dtypes.float16, dtypes.float32, dtypes.float64)
    numbers = (*floats, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.bool_)
    for target in (*numbers, dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.bfloat16):
        yield rand(3, 7, low=0, high=100), dict(dtype=target, _grad=False)
        yield rand.ints(0, 100, (37,)), dict(dtype=target, _grad=False)
        yield rand.bools(5), dict(dtype=target, _grad=False)
    for source in numbers:
        yield rand.ints(0, 2, (35,)).astype(source.np), dict(dtype=dtypes.float32, _grad=False)
        yield rand.ints(0, 2, (35,)).astype(source.np), dict(dtype=dtypes.int64, _grad=False)
    yield rand(3, 4), dict(dtype=dtypes.float64)
    yield np.array([300, -1, 2**31 - 1], np.int32), dict(dtype=dtypes.uint8, _grad=False)
    yield np.array([1.9, -1.9, 300.0, -3.0], np.float32), dict(dtype=dtypes.uint8, _grad=False)
    yield np.array([0.0, -0.0, 0.5, np.nan, np.inf], np.float32), dict(dtype=dtypes.bool_, _grad=False)
    beyond = [
        np.nan,
        np.inf,
        -np.inf,
        2.0**31,
        -(2.0**31),
        3e9,
        -3e9,
        2.0**40,
        1e19,
        -1e19,
        3e38,
        -1.5,
        1e-40,
    ]
    for source in (np.float16, np.float32, np.float64):
        with np.errstate(over="ignore"):
            values = np.resize(np.array(beyond), 37).astype(source)
        for target in (*numbers[3:8], dtypes.uint16, dtypes.uint32, dtypes.uint64):
            yield values, dict(dtype=target, _grad=False)
    half = np.array(
        [65504, 65520, 1e-8, 6e-8, 6.1e-5, 1.0009765, 1.00048828125, np.inf, -np.inf, np.nan, -0.0],
        np.float32,
    )
    yield half, dict(dtype=dtypes.float16, _grad=False)
    yield half, dict(dtype=dtypes.bfloat16, _grad=False)
    yield rand(), dict(dtype=dtypes.float16, _grad=False)
    yield rand(0, 3), dict(dtype=dtypes.int32, _grad=False)


def type_as(input, other):
    """`input` with the element type of `other`.

    Shapes: input any -> same.  dtypes: any.
    """
    return cast(input, other.dtype)


__all__ = ["cast", "type_as"]
