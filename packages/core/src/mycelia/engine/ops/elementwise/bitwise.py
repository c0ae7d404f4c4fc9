"""Bitwise operations and shifts of integers."""

import functools

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.logic import _broadcast_same, _unary_same


def _integral(*types):
    """Raises where an operand of a bitwise operation is not an integer or bool."""
    for t in types:
        if not (t.dtype.is_integer or t.dtype.is_bool):
            raise errors.type_error(
                f"bitwise operations take integer or bool tensors, but got {t.dtype.name}"
            )


def _bitwise_type(input, other):
    _integral(input, other)
    return _broadcast_same(input, other)


def _invert_type(x):
    _integral(x)
    return _unary_same(x)


_bitwise = functools.partial(
    op,
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    mindir_attributes=True,
    method=True,
    primitive=True,
)


@_bitwise(mindir="BitwiseAnd", onnx="BitwiseAnd")
def bitwise_and(input, other):
    """Bits set in both operands.

    Shapes: broadcast.  dtypes: integer, bool.  Errors: TypeError for floating operands.
    """
    return np.bitwise_and(input, other)


@_bitwise(mindir="BitwiseOr", onnx="BitwiseOr")
def bitwise_or(input, other):
    """Bits set in either operand.

    Shapes: broadcast.  dtypes: integer, bool.  Errors: TypeError for floating operands.
    """
    return np.bitwise_or(input, other)


@_bitwise(mindir="BitwiseXor", onnx="BitwiseXor")
def bitwise_xor(input, other):
    """Bits set in exactly one operand.

    Shapes: broadcast.  dtypes: integer, bool.  Errors: TypeError for floating operands.
    """
    return np.bitwise_xor(input, other)


def _bitwise_samples(rand):
    yield rand.ints(-100, 100, (3, 5)), rand.ints(-100, 100, (3, 5))
    yield rand.ints(0, 200, (2, 1, 3), dtype="uint8"), rand.ints(0, 200, (2, 1), dtype="uint8")
    yield rand.ints(-(2**40), 2**40, (37,), dtype="int64"), rand.ints(0, 9, (), dtype="int64")
    yield rand.bools(7), rand.bools(7)
    yield rand.ints(0, 2, (0,)), rand.ints(0, 2, (0,))


for _defined in (bitwise_and, bitwise_or, bitwise_xor):
    _defined.samples(_bitwise_samples)


@op(
    elementwise="same",
    infer=_invert_type,
    nondiff=True,
    mindir="Invert",
    onnx="BitwiseNot",
    mindir_attributes=True,
    method=True,
    primitive=True,
)
def invert(x):
    """Flips every bit: ``-x - 1`` for signed integers, "not" for bool.

    Shapes: any -> same.  dtypes: integer, bool.  Errors: TypeError for floating `x`.
    """
    return np.invert(x)


@invert.samples
def invert(rand):
    yield rand.ints(-100, 100, (3, 5))
    yield rand.ints(0, 200, (7,), dtype="uint8")
    yield rand.bools(5)
    yield rand.ints(0, 2, (0,), dtype="int64")


bitwise_not = invert


def _shift(shift, x, count):
    """NumPy shifts by the width or more, or by a negative count, as the mathematical limit: 0 or the sign."""
    bits = x.dtype.itemsize * 8
    if shift is np.left_shift:
        return np.where(
            (count < 0) | (count >= bits), 0, np.left_shift(x, np.clip(count, 0, bits - 1))
        ).astype(x.dtype)
    return np.right_shift(x, np.where(count < 0, bits - 1, np.minimum(count, bits - 1)).astype(x.dtype))


@op(
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    method=True,
    primitive="LeftShift",
)
def bitwise_left_shift(input, other):
    """``input * 2**other`` in the dtype's width; counts outside of it give 0.

    Shapes: broadcast.  dtypes: integer.  Errors: TypeError for floating operands.
    """
    return _shift(np.left_shift, input, other)


@op(
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    method=True,
    primitive="RightShift",
)
def bitwise_right_shift(input, other):
    """``floor(input / 2**other)``: arithmetic shift; counts outside of the width give 0 or -1.

    Shapes: broadcast.  dtypes: integer.  Errors: TypeError for floating operands.
    """
    return _shift(np.right_shift, input, other)


def _shift_samples(rand):
    yield rand.ints(-100, 100, (3, 5)), rand.ints(0, 31, (3, 5))
    yield rand.ints(-100, 100, (4, 1), dtype="int64"), rand.ints(0, 63, (3,), dtype="int64")
    yield np.array([5, -5, 5, -5, 5, -5], np.int32), np.array([31, 31, 32, 40, -1, -1], np.int32)
    yield rand.ints(0, 2, (0,)), rand.ints(0, 2, (0,))


bitwise_left_shift.samples(_shift_samples)
bitwise_right_shift.samples(_shift_samples)


__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "invert",
]
