"""Rounded quotients, remainders, and rounding to whole numbers."""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.math import mul, neg, sub
from mycelia.engine.ops.infer import broadcast, same, unbroadcast

# -------------------------------------------------------------------------------- quotients and remainders


def _quotient(x, y, rounding):
    """Rounded quotient; integers by zero give the dtype's largest or smallest number, or 0 for 0 / 0."""
    if x.dtype.kind == "f":
        return rounding(x / y).astype(x.dtype)
    if x.dtype.kind == "b":
        return x & y
    limits = np.iinfo(x.dtype)
    nonzero = np.where(y == 0, y.dtype.type(1), y)
    quotient = np.floor_divide(x, nonzero)
    if rounding is np.trunc:
        inexact = quotient * nonzero != x
        quotient = quotient + (inexact & ((x < 0) != (nonzero < 0))).astype(x.dtype)
    overflow = np.where(x > 0, limits.max, np.where(x < 0, limits.min, 0)).astype(x.dtype)
    return np.where(y == 0, overflow, quotient)


def _division_samples(rand):
    """Quotients away from the integers, where rounding jumps; all sign pairs; division by zero."""
    x = rand(3, 4, low=0.2, high=0.8) + rand.ints(-3, 3, (3, 4))
    yield x.astype(np.float32), np.ones((4,), np.float32)
    yield np.array([7.3, -7.3, 7.3, -7.3], np.float32), np.array([3, 3, -3, -3], np.float32)
    yield (
        np.array([7, -7, 7, -7, 6, -6], np.int32),
        np.array([3, 3, -3, -3, -3, 3], np.int32),
        dict(_grad=False),
    )
    yield np.array([5, -5, 0], np.int32), np.array([0, 0, 0], np.int32), dict(_grad=False)
    yield np.array([5, -5, 0], np.int64)[:, None], np.array([0, 2], np.int64), dict(_grad=False)
    yield np.array([-(2**31), 2**31 - 1], np.int32), np.array([-1, 1], np.int32), dict(_grad=False)
    yield np.array([5, 0, 255], np.uint8), np.array([0, 0, 2], np.uint8), dict(_grad=False)
    yield (
        np.array([1.0, -1, 0, np.inf, np.nan, 5.5, 0, -0.0], np.float32),
        np.array(0, np.float32),
        dict(_grad=False),
    )
    yield (
        np.array([1.0, -1, 0, np.inf, 1e-9, 5.5, -0.0], np.float32),
        np.array(-3.0, np.float32),
        dict(_grad=False),
    )
    yield rand.ints(-99, 99, (131,)), rand.ints(1, 9, (131,)), dict(_grad=False)
    yield rand(0, 3), rand(3), dict(_grad=False)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("x", "y"),
    nondiff=True,
    mindir="FloorDiv",
    primitive=True,
)
def floor_div(x, y):
    """Quotient rounded down: ``floor(x / y)``; integers by zero give the largest, the smallest or (0 / 0) 0.

    Shapes: broadcast.  dtypes: any, promoted.
    """
    return _quotient(x, y, np.floor)


floor_div.samples(_division_samples)


def _of_numbers(x, y, **attrs):
    if x.dtype.is_bool:
        raise TypeError("x and y must be numbers, but are bool")
    return broadcast()(x, y)


@op(
    infer=_of_numbers,
    promote=("x", "y"),
    nondiff=True,
    mindir="TruncateDiv",
    mindir_attributes=True,
    primitive=True,
)
def truncate_div(x, y):
    """Quotient rounded to zero: ``trunc(x / y)``; integers by 0 give the largest, the smallest or (0 / 0) 0.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    return _quotient(x, y, np.trunc)


truncate_div.samples(_division_samples)


def floor_divide(input, other):
    """Quotient rounded down: ``floor(input / other)``.

    Shapes: broadcast.  dtypes: any, promoted.
    """
    return floor_div(input, other)


floordiv = floor_divide


@op(elementwise="broadcast", infer=broadcast(), promote=("x", "y"), mindir="FloorMod", primitive=True)
def floor_mod(x, y):
    """Remainder with the sign of the divisor: ``x - floor(x / y) * y``; an integer modulo zero is itself.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    if x.dtype.kind == "f":
        return np.mod(x, y)
    return np.where(y == 0, x, np.mod(x, np.where(y == 0, y.dtype.type(1), y)))


@floor_mod.vjp
def floor_mod(ct, x, y, x_shape, y_shape, needs):
    return (
        unbroadcast(ct, x_shape) if needs[0] else None,
        unbroadcast(neg(mul(ct, floor_div(x, y))), y_shape) if needs[1] else None,
    )


floor_mod.samples(_division_samples)


@op(infer=_of_numbers, promote=("x", "y"), mindir="TruncateMod", mindir_attributes=True, primitive=True)
def truncate_mod(x, y):
    """Remainder with the sign of the dividend: ``x - trunc(x / y) * y``; an integer modulo zero is itself.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


@truncate_mod.vjp
def truncate_mod(ct, x, y, x_shape, y_shape, needs):
    return (
        unbroadcast(ct, x_shape) if needs[0] else None,
        unbroadcast(neg(mul(ct, truncate_div(x, y))), y_shape) if needs[1] else None,
    )


truncate_mod.samples(_division_samples)

floormod = floor_mod


def remainder(input, other):
    """Remainder with the sign of the divisor, as Python's ``%``.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    return floor_mod(input, other)


def fmod(input, other):
    """Remainder with the sign of the dividend, as C's ``fmod``.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    return truncate_mod(input, other)


tensor_floordiv, tensor_mod = floor_div, floor_mod

# ------------------------------------------------------------------------------------------------ rounding


@op(
    elementwise="same", infer=same(), nondiff=True, mindir="Floor", onnx="Floor", method=True, fuse="floor",
    primitive=True, exact=True,
)  # fmt: skip
def floor(input):
    """Largest integer not above `input`.

    Shapes: any -> same.  dtypes: real; integers are returned as they are.
    """
    return np.floor(input).astype(input.dtype)


@op(
    elementwise="same", infer=same(), nondiff=True, mindir="Ceil", onnx="Ceil", method=True, fuse="ceil",
    primitive=True, exact=True,
)  # fmt: skip
def ceil(input):
    """Smallest integer not below `input`.

    Shapes: any -> same.  dtypes: real; integers are returned as they are.
    """
    return np.ceil(input).astype(input.dtype)


@op(
    elementwise="same", infer=same(), nondiff=True, mindir="Trunc", method=True, fuse="trunc",
    primitive=True, exact=True,
)  # fmt: skip
def trunc(input):
    """`input` without its fraction: rounded to zero.

    Shapes: any -> same.  dtypes: real; integers are returned as they are.
    """
    return np.trunc(input).astype(input.dtype)


@op(elementwise="same", infer=same(), nondiff=True, mindir="Round", method=True)
def round(input, *, decimals: "int" = 0):
    """Rounded to `decimals` places; ties go to the even neighbour.

    Shapes: any -> same.  dtypes: real; integers are returned as they are.
    """
    if abs(decimals) > 400:  # more places than any number has, before or behind the point
        return input.copy() if decimals > 0 or input.dtype.kind != "f" else input * 0
    return np.round(input, decimals).astype(input.dtype)


def _rounding_samples(rand):
    yield rand(3, 4, low=-5, high=5)
    yield rand()
    yield rand(0, 2)
    yield np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.0, 8388609.0, -8388609.5], np.float32)
    yield np.array([1e10, -1e10, 3e38, np.inf, -np.inf, np.nan, 2147483648.0, -2147483904.0], np.float32)
    yield rand(1031, low=-1e5, high=1e5)
    yield rand.ints(-5, 5, (7,))


for _rounding in (floor, ceil, trunc):
    _rounding.samples(_rounding_samples)


@round.samples
def round(rand):
    yield from _rounding_samples(rand)
    yield rand(9, low=-500, high=500), dict(decimals=1)
    yield rand(9, low=-500, high=500), dict(decimals=-2)


def frac(x):
    """The fraction of `x`, with its sign: ``x - trunc(x)``.

    Shapes: any -> same.  dtypes: real.
    """
    return sub(x, trunc(x))


__all__ = [
    "ceil", "floor", "floor_div", "floor_divide", "floor_mod", "floordiv", "floormod", "fmod", "frac",
    "remainder", "round", "tensor_floordiv", "tensor_mod", "trunc", "truncate_div", "truncate_mod",
]  # fmt: skip
