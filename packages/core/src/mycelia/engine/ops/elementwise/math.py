"""Elementwise arithmetic: sums, products, quotients, squares, signs and magnitudes.

Powers, exponentials and logarithms are in `powers`, extremes and limits in `clipping`, comparisons and logic
in `logic`, rounding and remainders in `rounding`, angles in `trig`, erf and gamma in `special`.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import fusion as _fusion
from mycelia.engine.ops.define import op, registry
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import broadcast, broadcast_shapes, same, unbroadcast
from mycelia.engine.ops.late import ops

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-45, -1e-45, 1e-20], np.float32
)


def binary_samples(rand):
    """Equal shapes, all kinds of broadcasting, scalars, empty, a prime length for tails, other dtypes."""
    yield rand(3, 4), rand(3, 4)
    yield rand(2, 1, 5), rand(3, 1)
    yield rand(4), rand(2, 3, 4)
    yield rand(), rand(3)
    yield rand(2, 2), rand()
    yield rand(), rand()
    yield rand(0, 3), rand(3)
    yield rand(1, 1), rand(1)
    yield rand(1031), rand(1031), dict(_grad=False)
    yield rand(7, 1, 33), rand(1, 5, 1), dict(_grad=False)
    yield rand.ints(-9, 9, (3, 5)), rand.ints(-9, 9, (5,)), dict(_grad=False)
    yield rand.ints(-9, 9, (2, 1), dtype="int64"), rand.ints(-9, 9, (2, 7), dtype="int64"), dict(_grad=False)
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)


def unary_samples(low=-3.0, high=3.0):
    """Samples of a function that is smooth on (low, high); the special values check poles and limits."""

    def samples(rand):
        yield rand(2, 5, low=low, high=high)
        yield rand(low=low, high=high)
        yield rand(0, 4)
        yield rand(1, 1, low=low, high=high)
        yield rand(1031, low=low, high=high), dict(_grad=False)
        yield SPECIAL, dict(_grad=False)

    return samples


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    mindir="Add",
    onnx="Add",
    fuse=_fusion.step("add", dtypes.float32, dtypes.int32),
    primitive=True,
)
def add(input, other):
    """Elementwise ``input + other``; "or" for bool.

    Shapes: broadcast.  dtypes: any, promoted.
    """
    return np.add(input, other)


@add.vjp
def add(ct, input_shape, other_shape, needs):
    return (
        unbroadcast(ct, input_shape) if needs[0] else None,
        unbroadcast(ct, other_shape) if needs[1] else None,
    )


add.samples(binary_samples)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    mindir="Sub",
    onnx="Sub",
    fuse=_fusion.step("sub", dtypes.float32, dtypes.int32),
    primitive=True,
)
def sub(input, other):
    """Elementwise ``input - other``; integers wrap around.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    return np.subtract(input, other)


@sub.vjp
def sub(ct, input_shape, other_shape, needs):
    return (
        unbroadcast(ct, input_shape) if needs[0] else None,
        unbroadcast(neg(ct), other_shape) if needs[1] else None,
    )


sub.samples(binary_samples)


@op(elementwise="same", infer=same(), mindir="Neg", method=True, fuse="neg", primitive=True, exact=True)
def neg(input):
    """Elementwise ``-input``; unsigned integers wrap around.

    Shapes: any -> same.  dtypes: any but bool.
    """
    return np.negative(input)


@neg.vjp
def neg(ct):
    return neg(ct)


@neg.samples
def neg(rand):
    yield from unary_samples()(rand)
    yield rand.ints(-9, 9, (7,)), dict(_grad=False)
    yield np.array([-128, 127, 0], np.int8), dict(_grad=False)


def subtract(input, other, *, alpha=1):
    """Elementwise ``input - alpha * other``.

    Shapes: broadcast.  dtypes: any, promoted; bool gives int64.
    """
    if (
        getattr(input, "dtype", None) is dtypes.bool_
        and getattr(other, "dtype", dtypes.bool_) is dtypes.bool_
    ):
        input = cast(input, dtypes.int64)
    return sub(input, other) if alpha == 1 else sub(input, mul(other, alpha))


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    mindir="Mul",
    onnx="Mul",
    fuse=_fusion.step("mul", dtypes.float32, dtypes.int32),
    primitive=True,
)
def mul(input, other):
    """Elementwise ``input * other``; "and" for bool.

    Shapes: broadcast.  dtypes: any, promoted.
    """
    return np.multiply(input, other)


@mul.vjp
def mul(ct, input, other, input_shape, other_shape, needs):
    return (
        unbroadcast(mul(ct, other), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, input), other_shape) if needs[1] else None,
    )


mul.samples(binary_samples)


@op(
    elementwise="broadcast",
    name="div",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="RealDiv",
    fuse="div",
    primitive="Div",
)
def true_div(input, other):
    """Elementwise quotient ``input / other``; x / 0 is infinite or NaN.

    Shapes: broadcast.  dtypes: any, promoted; integers are divided in float32.
    """
    return np.divide(input, other)


@true_div.vjp
def true_div(ct, out, other, input_shape, other_shape, needs):
    share = true_div(ct, other)
    return (
        unbroadcast(share, input_shape) if needs[0] else None,
        unbroadcast(neg(mul(share, out)), other_shape) if needs[1] else None,
    )


@true_div.samples
def true_div(rand):
    yield rand(3, 4), rand.positive(3, 4)
    yield rand(2, 1, 5), rand(3, 1, low=-2, high=-0.5)
    yield rand(), rand.positive(3)
    yield rand(3), rand.positive()
    yield rand(0, 3), rand(3)
    yield rand(1031), rand.positive(1031), dict(_grad=False)
    yield rand.ints(-9, 9, (3, 5)), rand.ints(-2, 2, (5,)), dict(_grad=False)
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)


def div(input, other, *, rounding_mode=None):
    """Elementwise quotient: true, or rounded by `rounding_mode` "floor" (down) or "trunc" (to zero).

    Shapes: broadcast.  dtypes: any, promoted; without rounding, integers give float32.
    Errors: ValueError for another rounding mode.
    """
    if rounding_mode is None:
        return true_div(input, other)
    if rounding_mode == "floor":
        return ops.floor_div(input, other)
    if rounding_mode == "trunc":
        return ops.truncate_div(input, other)
    raise errors.value_error(f"div: rounding_mode is {rounding_mode!r}, but must be None, 'floor' or 'trunc'")


divide = div


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Reciprocal",
    onnx="Reciprocal",
    method=True,
    fuse="reciprocal",
    precision="wide",
    primitive=True,
)
def reciprocal(input):
    """Elementwise ``1 / input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.reciprocal(input)


@reciprocal.vjp
def reciprocal(ct, out):
    return neg(mul(ct, square(out)))


reciprocal.samples(unary_samples(0.3, 3.0))


@op(elementwise="same", infer=same(), mindir="Square", method=True, fuse="square", primitive=True)
def square(input):
    """Elementwise ``input * input``.

    Shapes: any -> same.  dtypes: any.
    """
    return np.multiply(input, input)


@square.vjp
def square(ct, input):
    return mul(mul(ct, input), 2.0)


square.samples(unary_samples())


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Tanh",
    onnx="Tanh",
    method=True,
    fuse="tanh",
    primitive=True,
)
def tanh(input):
    """Elementwise hyperbolic tangent.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.tanh(input)


@tanh.vjp
def tanh(ct, out):
    return tanh_grad(ct, out)


tanh.samples(unary_samples())


@op(elementwise="same", infer=same(), fuse="tanh_grad")
def tanh_grad(dy, out):
    """Gradient of tanh from its result: ``dy * (1 - out**2)``.

    Shapes: dy, out equal -> same.  dtypes: floating.
    """
    return dy * (1 - out * out)


@tanh_grad.vjp
def tanh_grad(ct, dy, out, needs):
    return (
        tanh_grad(ct, out) if needs[0] else None,
        mul(mul(ct, dy), mul(out, -2.0)) if needs[1] else None,
    )


@tanh_grad.samples
def tanh_grad(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand(1031), rand(1031), dict(_grad=False)
    yield rand(), rand()
    yield rand(0), rand(0)


@op(
    elementwise="same",
    infer=same(),
    mindir="Abs",
    onnx="Abs",
    method=True,
    fuse="abs",
    primitive=True,
    exact=True,
)
def abs(input):
    """Elementwise absolute value; the most negative integer stays as it is.

    Shapes: any -> same.  dtypes: any.
    """
    return np.abs(input)


@abs.vjp
def abs(ct, input):
    if input.dtype.is_complex:
        return mul(cast(registry["real"](ct), ct.dtype), registry["conj"](sign(input)))
    return ct if input.dtype.is_bool else mul(ct, sign(input))


@abs.samples
def abs(rand):
    yield from unary_samples(0.2, 3.0)(rand)
    yield rand.ints(-9, 9, (7,)), dict(_grad=False)
    yield np.array([-128, 127, 0], np.int8), dict(_grad=False)
    yield rand.bools(3), dict(_grad=False)


@op(
    elementwise="same", infer=same(), nondiff=True, mindir="Sign", onnx="Sign", method=True, fuse="sign",
    primitive=True, exact=True,
)  # fmt: skip
def sign(input):
    """-1, 0 or 1 by the sign of `input`; 0 for NaN. A complex number is divided by its magnitude.

    Shapes: any -> same.  dtypes: any but bool.
    """
    if input.dtype.kind == "c":
        return np.divide(input, np.abs(input), out=np.zeros_like(input), where=input != 0)
    return np.greater(input, 0).astype(input.dtype) - np.less(input, 0).astype(input.dtype)


@sign.samples
def sign(rand):
    yield from unary_samples()(rand)
    yield rand.ints(-9, 9, (7,))
    yield rand.ints(0, 3, (5,), dtype="uint8")


sgn = sign


def _copysign_type(x, other):
    return TensorType(x.dtype, broadcast_shapes(x.shape, other.shape))


@op(infer=_copysign_type, float_result=True, method=True)
def copysign(x, other):
    """Magnitude of `x` with the sign of `other`; negative zero counts as negative.

    Shapes: broadcast.  dtypes: real, that of `x`; integers give float32.
    """
    return np.where(np.signbit(other), -np.abs(x), np.abs(x)).astype(x.dtype)


@copysign.vjp
def copysign(ct, x, out, x_shape, other_shape):
    flow = unbroadcast(mul(ct, mul(sign(x), sign(out))), x_shape)
    return flow, None


@copysign.samples
def copysign(rand):
    signs = np.array([1.5, -0.5, -2.0], np.float32)
    yield rand.positive(4, 3), signs
    yield -rand.positive(2, 1), signs
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)
    yield rand(0), rand(0)


def absolute(input):
    """Elementwise absolute value.

    Shapes: any -> same.  dtypes: any.
    """
    return abs(input)


def negative(input):
    """Elementwise ``-input``.

    Shapes: any -> same.  dtypes: any but bool.
    """
    return neg(input)


def positive(input):
    """`input` itself.

    Shapes: any -> same.  dtypes: any but bool.
    """
    return input


def inv(x):
    """Elementwise ``1 / x``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return reciprocal(x)


def multiply(input, other):
    """Elementwise ``input * other``.

    Shapes: broadcast.  dtypes: any, promoted.
    """
    return mul(input, other)


def true_divide(dividend, divisor):
    """Elementwise ``dividend / divisor``.

    Shapes: broadcast.  dtypes: any, promoted; integers give float32.
    """
    return true_div(dividend, divisor)


tensor_add, tensor_sub, tensor_mul, tensor_div = add, sub, mul, true_div


__all__ = [
    "abs", "absolute", "add", "copysign", "div", "divide", "inv", "mul", "multiply", "neg", "negative",
    "positive", "reciprocal", "sgn", "sign", "square", "sub", "subtract", "tanh", "tensor_add",
    "tensor_div", "tensor_mul", "tensor_sub", "true_divide",
]  # fmt: skip
