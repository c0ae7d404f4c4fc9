"""Comparisons of elements: equal, less, greater and their like, isclose."""

import functools

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast

_relation = functools.partial(
    op,
    elementwise="broadcast",
    infer=broadcast(dtype=dtypes.bool_),
    promote=("input", "other"),
    nondiff=True,
)


@_relation(
    mindir="Equal",
    onnx="Equal",
    primitive=True,
    method="eq",
    fuse=_fusion.step("equal", dtypes.float32, dtypes.int32),
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
    mindir="Less",
    onnx="Less",
    primitive=True,
    method=True,
    fuse=_fusion.step("less", dtypes.float32, dtypes.int32),
)
def less(input, other):
    """Elementwise ``input < other``.

    Shapes: broadcast.  dtypes: real -> bool.
    """
    return np.less(input, other)


@_relation(
    mindir="LessEqual",
    onnx="LessOrEqual",
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
    onnx="Greater",
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
    onnx="GreaterOrEqual",
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


__all__ = [
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "le",
    "less",
    "less_equal",
    "lt",
    "ne",
    "not_equal",
    "tensor_ge",
    "tensor_gt",
    "tensor_le",
    "tensor_lt",
]
