"""Comparisons, tests of floating values, logical and bitwise operations: all that has no gradient."""

import functools

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast, same

_relation = functools.partial(
    op,
    elementwise="broadcast",
    infer=broadcast(dtype=dtypes.bool_),
    promote=("input", "other"),
    nondiff=True,
)
_property = functools.partial(
    op, elementwise="same", infer=same(dtype=dtypes.bool_), nondiff=True, method=True
)

# --------------------------------------------------------------------------------------------- comparisons


@_relation(
    mindir="Equal", primitive=True, method="eq", fuse=_fusion.step("equal", dtypes.float32, dtypes.int32)
)
def equal(input, other):
    """Elementwise ``input == other``; NaN equals nothing.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.equal(input, other)


@_relation(
    mindir="NotEqual",
    primitive=True,
    method=True,
    fuse=_fusion.step("not_equal", dtypes.float32, dtypes.int32),
)
def not_equal(input, other):
    """Elementwise ``input != other``; NaN differs from everything.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.not_equal(input, other)


@_relation(
    mindir="Less", primitive=True, method=True, fuse=_fusion.step("less", dtypes.float32, dtypes.int32)
)
def less(input, other):
    """Elementwise ``input < other``.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.less(input, other)


@_relation(
    mindir="LessEqual",
    primitive=True,
    method=True,
    fuse=_fusion.step("less_equal", dtypes.float32, dtypes.int32),
)
def less_equal(input, other):
    """Elementwise ``input <= other``.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.less_equal(input, other)


@_relation(
    mindir="Greater",
    primitive=True,
    method=True,
    fuse=_fusion.step("less", dtypes.float32, dtypes.int32, swapped=True),
)
def greater(input, other):
    """Elementwise ``input > other``.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.greater(input, other)


@_relation(
    mindir="GreaterEqual",
    primitive=True,
    method=True,
    fuse=_fusion.step("less_equal", dtypes.float32, dtypes.int32, swapped=True),
)
def greater_equal(input, other):
    """Elementwise ``input >= other``.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.greater_equal(input, other)


def _comparison_samples(rand):
    yield rand.ints(-2, 3, (3, 4)), rand.ints(-2, 3, (3, 4))
    yield rand.ints(-2, 3, (2, 1, 5), dtype="int64"), rand.ints(-2, 3, (3, 1), dtype="int64")
    yield rand.ints(-2, 3, (67,)).astype("float32"), rand.ints(-2, 3, (67,)).astype("float32")
    yield rand.bools(2, 3), rand.bools(3)
    yield rand(3, 33), rand()
    yield rand(), rand(4)
    yield rand(0, 3), rand(3)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    yield special[:, None], special
    yield np.array([2**24, 2**24 + 1, -(2**31)], np.int32), np.array(2**24, np.int32)


for _comparison in (equal, not_equal, less, less_equal, greater, greater_equal):
    _comparison.samples(_comparison_samples)

eq, ne, lt, le, gt, ge = equal, not_equal, less, less_equal, greater, greater_equal
tensor_lt, tensor_le, tensor_gt, tensor_ge = less, less_equal, greater, greater_equal


@_relation(method=True)
def isclose(input, other, *, rtol: "float" = 1e-5, atol: "float" = 1e-8, equal_nan: "bool" = False):
    """Elementwise ``|input - other| <= atol + rtol * |other|``; equal infinities are close.

    NaNs are close to each other only with `equal_nan`.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.isclose(input, other, rtol, atol, equal_nan)


@isclose.samples
def isclose(rand):
    x = rand(3, 4)
    yield x, x * np.float32(1 + 2e-6)
    yield x, x[0], dict(rtol=0.1, atol=0.2)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0], np.float32)
    yield special[:, None], special
    yield special[:, None], special, dict(equal_nan=True)
    yield rand.ints(0, 9, (5,)), rand.ints(0, 9, (5,))
    yield rand(0), rand(0)


# --------------------------------------------------------------------------------- tests of floating values


@_property(mindir="IsNan", primitive=True)
def isnan(input):
    """Where `input` is not a number; false for integers.

    Shapes: any -> same.  dtypes: any -> bool.
    """
    return np.isnan(input)


@_property(mindir="IsInf", primitive=True)
def isinf(input):
    """Where `input` is infinite of either sign.

    Shapes: any -> same.  dtypes: any -> bool.
    """
    return np.isinf(input)


@_property(mindir="IsFinite", primitive=True)
def isfinite(input):
    """Where `input` is neither infinite nor NaN.

    Shapes: any -> same.  dtypes: any -> bool.
    """
    return np.isfinite(input)


@_property()
def isposinf(input):
    """Where `input` is positive infinity.

    Shapes: any -> same.  dtypes: real -> bool.
    """
    return np.isposinf(input)


@_property()
def isneginf(input):
    """Where `input` is negative infinity.

    Shapes: any -> same.  dtypes: real -> bool.
    """
    return np.isneginf(input)


@_property()
def isreal(input):
    """Where the imaginary part of `input` is zero; true for all real dtypes.

    Shapes: any -> same.  dtypes: any -> bool.
    """
    return np.isreal(input)


@_property()
def signbit(input):
    """Where the sign bit of `input` is set: negative numbers and negative zero.

    Shapes: any -> same.  dtypes: real -> bool.
    """
    return np.signbit(input) if input.dtype.kind == "f" else np.less(input, 0)


def _test_samples(rand):
    yield rand(3, 4)
    yield rand()
    yield rand(0, 2)
    yield np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, 1e-45, -1e-45], np.float32)
    yield np.tile(np.array([np.nan, np.inf, 1.0, -np.inf, -1.0, 2.0, 0.0], np.float32), 19)
    yield rand.ints(-3, 3, (7,))


for _test in (isnan, isinf, isfinite, isposinf, isneginf, isreal, signbit):
    _test.samples(_test_samples)

# ------------------------------------------------------------------------------------------------ logical


@_relation(mindir="LogicalAnd", primitive=True, method=True, fuse=_fusion.step("and", dtypes.bool_))
def logical_and(input, other):
    """Elementwise "and"; numbers count as true where they are not zero.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.logical_and(input, other)


@_relation(mindir="LogicalOr", primitive=True, method=True, fuse=_fusion.step("or", dtypes.bool_))
def logical_or(input, other):
    """Elementwise "or"; numbers count as true where they are not zero.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.logical_or(input, other)


@_relation(mindir="LogicalXor", primitive=True, method=True, fuse=_fusion.step("xor", dtypes.bool_))
def logical_xor(input, other):
    """Elementwise "exclusive or"; numbers count as true where they are not zero.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.logical_xor(input, other)


def _logical_samples(rand):
    yield rand.bools(3, 5), rand.bools(3, 5)
    yield rand.bools(2, 1, 4), rand.bools(3, 1)
    yield rand.bools(131), rand.bools()
    yield rand.bools(0), rand.bools(0)
    yield rand.ints(-1, 2, (17,)), rand.ints(-1, 2, (17,))
    yield np.array([0.0, -0.0, np.nan, 2.0], np.float32)[:, None], np.array([0.0, np.nan], np.float32)


for _logical in (logical_and, logical_or, logical_xor):
    _logical.samples(_logical_samples)


@_property(mindir="LogicalNot", primitive=True, fuse=_fusion.step("not", dtypes.bool_))
def logical_not(input):
    """Elementwise "not": true where `input` is false or zero.

    Shapes: any -> same.  dtypes: any -> bool.
    """
    return np.logical_not(input)


@logical_not.samples
def logical_not(rand):
    yield rand.bools(3, 5)
    yield rand.bools(97)
    yield rand.bools()
    yield rand.ints(-1, 2, (9,))
    yield np.array([0.0, -0.0, np.nan, 2.0], np.float32)
    yield rand.bools(0)


# ------------------------------------------------------------------------------------------------ bitwise


def _integral(*types):
    """Raises where an operand of a bitwise operation is not an integer or bool."""
    for t in types:
        if not (t.dtype.is_integer or t.dtype.is_bool):
            raise errors.type_error(
                f"bitwise operations take integer or bool tensors, but got {t.dtype.name}"
            )


_broadcast_same, _unary_same = broadcast(), same()


def _bitwise_type(input, other):
    _integral(input, other)
    return _broadcast_same(input, other)


def _invert_type(x):
    _integral(x)
    return _unary_same(x)


@op(
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    mindir="BitwiseAnd",
    method=True,
    primitive=True,
)
def bitwise_and(input, other):
    """Bits set in both operands.

    Shapes: broadcast.  dtypes: integer, bool.  Errors: TypeError for floating operands.
    """
    return np.bitwise_and(input, other)


@op(
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    mindir="BitwiseOr",
    method=True,
    primitive=True,
)
def bitwise_or(input, other):
    """Bits set in either operand.

    Shapes: broadcast.  dtypes: integer, bool.  Errors: TypeError for floating operands.
    """
    return np.bitwise_or(input, other)


@op(
    elementwise="broadcast",
    infer=_bitwise_type,
    promote=("input", "other"),
    nondiff=True,
    mindir="BitwiseXor",
    method=True,
    primitive=True,
)
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


for _bitwise in (bitwise_and, bitwise_or, bitwise_xor):
    _bitwise.samples(_bitwise_samples)


@op(elementwise="same", infer=_invert_type, nondiff=True, mindir="Invert", method=True, primitive=True)
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
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "eq", "equal", "ge", "greater", "greater_equal", "gt", "invert", "isclose", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "le", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "lt", "ne", "not_equal", "signbit", "tensor_ge", "tensor_gt", "tensor_le",
    "tensor_lt",
]  # fmt: skip
