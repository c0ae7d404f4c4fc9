"""Comparisons, tests of floating values, logical and bitwise operations: all that has no gradient."""

import functools

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.comparison import _relation
from mycelia.engine.ops.infer import broadcast, same

_property = functools.partial(
    op, elementwise="same", infer=same(dtype=dtypes.bool_), nondiff=True, method=True
)


@_property(mindir="IsNan", mindir_attributes=True, primitive=True)
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


@_relation(
    mindir="LogicalAnd", onnx="And", primitive=True, method=True, fuse=_fusion.step("and", dtypes.bool_)
)
def logical_and(input, other):
    """Elementwise "and"; numbers count as true where they are not zero.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.logical_and(input, other)


@_relation(mindir="LogicalOr", onnx="Or", primitive=True, method=True, fuse=_fusion.step("or", dtypes.bool_))
def logical_or(input, other):
    """Elementwise "or"; numbers count as true where they are not zero.

    Shapes: broadcast.  dtypes: any -> bool.
    """
    return np.logical_or(input, other)


@_relation(
    mindir="LogicalXor", onnx="Xor", primitive=True, method=True, fuse=_fusion.step("xor", dtypes.bool_)
)
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


@_property(mindir="LogicalNot", onnx="Not", primitive=True, fuse=_fusion.step("not", dtypes.bool_))
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


_broadcast_same, _unary_same = broadcast(), same()


__all__ = [
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "signbit",
]
