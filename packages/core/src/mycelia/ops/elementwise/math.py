"""Elementwise arithmetic: sums, products, quotients, powers, exponentials, logarithms, magnitudes.

Extremes and limits are in `clipping`, comparisons and logic in `logic`, rounding and remainders in
`rounding`, angles in `trig`, erf and gamma in `special`.
"""

import numpy as np

from mycelia import dtypes, errors
from mycelia.ir.types import TensorType
from mycelia.ops.define import op
from mycelia.ops.elementwise import logic as _logic
from mycelia.ops.elementwise.cast import cast
from mycelia.ops.infer import broadcast, broadcast_shapes, same, unbroadcast

_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))
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


# ------------------------------------------------------------------------------------- sums and differences


@op(infer=broadcast(), promote=("input", "other"), mindir="Add")
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


@op(infer=broadcast(), promote=("input", "other"), mindir="Sub")
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


@op(infer=same(), mindir="Neg", method=True)
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


# ----------------------------------------------------------------------------------- products and quotients


@op(infer=broadcast(), promote=("input", "other"), mindir="Mul")
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


@op(name="div", infer=broadcast(), promote=("input", "other"), float_result=True, mindir="RealDiv")
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
    from mycelia.ops.elementwise.rounding import floor_div, truncate_div

    if rounding_mode is None:
        return true_div(input, other)
    if rounding_mode == "floor":
        return floor_div(input, other)
    if rounding_mode == "trunc":
        return truncate_div(input, other)
    raise errors.value_error(f"div: rounding_mode is {rounding_mode!r}, but must be None, 'floor' or 'trunc'")


divide = div


@op(infer=same(), float_result=True, mindir="Reciprocal", method=True)
def reciprocal(input):
    """Elementwise ``1 / input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.reciprocal(input)


@reciprocal.vjp
def reciprocal(ct, out):
    return neg(mul(ct, square(out)))


reciprocal.samples(unary_samples(0.3, 3.0))


@op(infer=same(), mindir="Square", method=True)
def square(input):
    """Elementwise ``input * input``.

    Shapes: any -> same.  dtypes: any.
    """
    return np.multiply(input, input)


@square.vjp
def square(ct, input):
    return mul(mul(ct, input), 2.0)


square.samples(unary_samples())


# --------------------------------------------------------------------------------------- powers and roots


@op(infer=broadcast(), promote=("input", "exponent"), mindir="Pow", method=True)
def pow(input, exponent):
    """Elementwise ``input ** exponent``; integers to negative powers are rounded to zero.

    Shapes: broadcast.  dtypes: any but bool, promoted.
    """
    if input.dtype.kind in "fc":
        return np.power(input, exponent)
    power = np.power(input, np.where(exponent < 0, exponent.dtype.type(0), exponent))
    return np.where(exponent < 0, np.where(np.abs(input) == 1, 1, 0) * input ** (exponent & 1), power).astype(
        input.dtype
    )


@pow.vjp
def pow(ct, input, exponent, out, input_shape, exponent_shape, needs):
    from mycelia.ops.arrays.masks import where

    base_ct = exponent_ct = None
    if needs[0]:  # the power below is infinite at 0 ** (0 - 1), where the slope is 0
        slope = mul(exponent, pow(input, sub(exponent, 1.0)))
        base_ct = unbroadcast(mul(ct, where(_logic.equal(exponent, 0.0), 0.0, slope)), input_shape)
    if needs[1]:
        slope = where(_logic.equal(out, 0.0), 0.0, mul(out, log(input)))
        exponent_ct = unbroadcast(mul(ct, slope), exponent_shape)
    return base_ct, exponent_ct


@pow.samples
def pow(rand):
    yield rand.positive(3, 4), rand(3, 4)
    yield rand.positive(2, 1, 3), rand(2, 1)
    yield rand.positive(5), np.array(2.0, np.float32)
    yield rand(5, low=-2, high=-0.5), np.array(3.0, np.float32), dict(_grad=False)
    for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5, 2.7):
        yield rand.positive(67), np.array(exponent, np.float32), dict(_grad=False)
    yield rand(67, low=-2, high=2), np.array(3.0, np.float32), dict(_grad=False)
    yield rand.positive(1031), rand(1031), dict(_grad=False)
    yield (
        np.array([0, 1, 2, -1, -2, 5], np.int32)[:, None],
        np.array([0, 1, 2, 5, -1, -2], np.int32),
        dict(_grad=False),
    )
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)
    yield rand(0), rand(0)


pows = pow


def float_power(input, exponent):
    """``input ** exponent`` computed in float64.

    Shapes: broadcast.  dtypes: any -> float64.
    """
    return pow(_double(input), _double(exponent))


float_power_ext = float_power


def _double(x):
    return float(x) if isinstance(x, (bool, int, float)) else cast(x, dtypes.float64)


@op(infer=same(), float_result=True, mindir="Sqrt", method=True)
def sqrt(x):
    """Elementwise square root; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.sqrt(x)


@sqrt.vjp
def sqrt(ct, out):
    return true_div(mul(ct, 0.5), out)


sqrt.samples(unary_samples(0.1, 4.0))


@op(infer=same(), float_result=True, mindir="Rsqrt", method=True)
def rsqrt(input):
    """Elementwise ``1 / sqrt(input)``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.reciprocal(np.sqrt(input))


@rsqrt.vjp
def rsqrt(ct, out):
    return mul(mul(ct, -0.5), mul(out, square(out)))


rsqrt.samples(unary_samples(0.3, 4.0))


@op(infer=broadcast(), promote=("input", "other"), float_result=True, mindir="Hypot", method=True)
def hypot(input, other):
    """Length of the hypotenuse, ``sqrt(input**2 + other**2)``, without overflow on the way.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.hypot(input, other)


@hypot.vjp
def hypot(ct, input, other, out, input_shape, other_shape, needs):
    share = true_div(ct, out)
    return (
        unbroadcast(mul(share, input), input_shape) if needs[0] else None,
        unbroadcast(mul(share, other), other_shape) if needs[1] else None,
    )


@hypot.samples
def hypot(rand):
    yield rand(3, 4), rand.positive(3, 4)
    yield rand(2, 1), rand.positive(3)
    yield rand(257), rand(), dict(_grad=False)
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)
    yield rand(0), rand(0)


# ------------------------------------------------------------------------------ exponentials and logarithms


@op(infer=same(), float_result=True, mindir="Exp", method=True)
def exp(input):
    """Elementwise ``e ** input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.exp(input)


@exp.vjp
def exp(ct, out):
    return mul(ct, out)


exp.samples(unary_samples())


@op(infer=same(), float_result=True, method=True)
def exp2(input):
    """Elementwise ``2 ** input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.exp2(input)


@exp2.vjp
def exp2(ct, out):
    return mul(mul(ct, out), _LN2)


exp2.samples(unary_samples())


@op(infer=same(), float_result=True, mindir="Expm1", method=True)
def expm1(input):
    """Elementwise ``e ** input - 1``, accurate near zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.expm1(input)


@expm1.vjp
def expm1(ct, out):
    return mul(ct, add(out, 1.0))


expm1.samples(unary_samples())


@op(infer=same(), float_result=True, mindir="Log", method=True)
def log(input):
    """Elementwise natural logarithm; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log(input)


@log.vjp
def log(ct, input):
    return true_div(ct, input)


log.samples(unary_samples(0.1, 4.0))


@op(infer=same(), float_result=True, method=True)
def log2(input):
    """Elementwise logarithm to base 2; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log2(input)


@log2.vjp
def log2(ct, input):
    return true_div(mul(ct, 1.0 / _LN2), input)


log2.samples(unary_samples(0.1, 4.0))


@op(infer=same(), float_result=True, method=True)
def log10(input):
    """Elementwise logarithm to base 10; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log10(input)


@log10.vjp
def log10(ct, input):
    return true_div(mul(ct, 1.0 / _LN10), input)


log10.samples(unary_samples(0.1, 4.0))


@op(infer=same(), float_result=True, mindir="Log1p", method=True)
def log1p(input):
    """Elementwise ``log(1 + input)``, accurate near zero; NaN below -1.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log1p(input)


@log1p.vjp
def log1p(ct, input):
    return true_div(ct, add(input, 1.0))


log1p.samples(unary_samples(-0.8, 4.0))


@op(infer=broadcast(), promote=("input", "other"), float_result=True, method=True)
def logaddexp(input, other):
    """``log(exp(input) + exp(other))`` without overflow on the way.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.logaddexp(input, other)


@logaddexp.vjp
def logaddexp(ct, input, other, input_shape, other_shape, needs):
    from mycelia.ops.elementwise.activation import sigmoid

    return (
        unbroadcast(mul(ct, sigmoid(sub(input, other))), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, sigmoid(sub(other, input))), other_shape) if needs[1] else None,
    )


logaddexp.samples(binary_samples)


@op(infer=broadcast(), promote=("input", "other"), float_result=True, method=True)
def logaddexp2(input, other):
    """``log2(2**input + 2**other)`` without overflow on the way.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.logaddexp2(input, other)


@logaddexp2.vjp
def logaddexp2(ct, input, other, input_shape, other_shape, needs):
    from mycelia.ops.elementwise.activation import sigmoid

    return (
        unbroadcast(mul(ct, sigmoid(mul(sub(input, other), _LN2))), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, sigmoid(mul(sub(other, input), _LN2))), other_shape) if needs[1] else None,
    )


logaddexp2.samples(binary_samples)


@op(infer=broadcast(), promote=("input", "other"), float_result=True, mindir="Xlogy", method=True)
def xlogy(input, other):
    """``input * log(other)``, and 0 where `input` is 0, whatever `other` is (NaN excepted).

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.where((input == 0) & ~np.isnan(other), np.zeros_like(input), input * np.log(other))


@xlogy.vjp
def xlogy(ct, input, other, input_shape, other_shape, needs):
    return (
        unbroadcast(xlogy(_where_nonzero(input, ct), other), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, xdivy(input, other)), other_shape) if needs[1] else None,
    )


def _where_nonzero(x, ct):
    """`ct` where `x` is not zero, else 0."""
    return mul(ct, cast(_logic.not_equal(x, 0.0), ct.dtype))


@xlogy.samples
def xlogy(rand):
    yield rand.positive(3, 4), rand.positive(4)
    yield rand(2, 1, low=-2, high=-0.5), rand.positive(3)
    yield (
        np.array([0, 0, 0, 2, -1], np.float32)[:, None],
        np.array([0, -1, np.inf, np.nan], np.float32),
        dict(_grad=False),
    )
    yield rand(0), rand(0)


@op(infer=broadcast(), promote=("x", "y"), float_result=True, mindir="Xdivy", method=True)
def xdivy(x, y):
    """``x / y``, and 0 where `x` is 0, whatever `y` is (NaN excepted).

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x / y)


@xdivy.vjp
def xdivy(ct, x, y, out, x_shape, y_shape, needs):
    return (
        unbroadcast(xdivy(_where_nonzero(x, ct), y), x_shape) if needs[0] else None,
        unbroadcast(neg(mul(ct, xdivy(out, y))), y_shape) if needs[1] else None,
    )


@xdivy.samples
def xdivy(rand):
    yield rand.positive(3, 4), rand.positive(4)
    yield rand(2, 1, low=-2, high=-0.5), rand.positive(3)
    yield (
        np.array([0, 0, 0, 2, -1], np.float32)[:, None],
        np.array([0, -1, np.inf, np.nan], np.float32),
        dict(_grad=False),
    )
    yield rand(0), rand(0)


@op(infer=same(), float_result=True, mindir="Tanh", method=True)
def tanh(input):
    """Elementwise hyperbolic tangent.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.tanh(input)


@tanh.vjp
def tanh(ct, out):
    return tanh_grad(ct, out)


tanh.samples(unary_samples())


@op(infer=same())
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


# ------------------------------------------------------------------------------------ magnitude and sign


@op(infer=same(), mindir="Abs", method=True)
def abs(input):
    """Elementwise absolute value; the most negative integer stays as it is.

    Shapes: any -> same.  dtypes: any.
    """
    return np.abs(input)


@abs.vjp
def abs(ct, input):
    if input.dtype.is_complex:
        from mycelia.ops.elementwise.complex_numbers import _conj, _real

        return mul(cast(_real(ct), ct.dtype), _conj(sign(input)))
    return mul(ct, sign(input))


@abs.samples
def abs(rand):
    yield from unary_samples(0.2, 3.0)(rand)
    yield rand.ints(-9, 9, (7,)), dict(_grad=False)
    yield np.array([-128, 127, 0], np.int8), dict(_grad=False)
    yield rand.bools(3), dict(_grad=False)


@op(infer=same(), nondiff=True, mindir="Sign", method=True)
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


# ---------------------------------------------------------------------------------------- combined formulas


def lerp(input, end, weight):
    """Linear interpolation: ``input + weight * (end - input)``; `weight` is a number or a tensor.

    Shapes: broadcast.  dtypes: floating.
    """
    return add(input, mul(weight, sub(end, input)))


def addcmul(input, tensor1, tensor2, value=1):
    """``input + value * tensor1 * tensor2``.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return add(input, _scaled(mul(tensor1, tensor2), value))


def addcdiv(input, tensor1, tensor2, value=1):
    """``input + value * tensor1 / tensor2``.

    Shapes: broadcast.  dtypes: floating.
    """
    return add(input, _scaled(true_div(tensor1, tensor2), value))


def _scaled(x, factor):
    return x if isinstance(factor, (int, float)) and factor == 1 else mul(x, factor)


def ldexp(x, other):
    """``x * 2 ** other``.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return mul(x, exp2(other) if hasattr(other, "dtype") else 2.0**other)


def heaviside(input, values):
    """Step function: 0 below zero, 1 above, `values` at zero.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    from mycelia.ops.arrays.masks import where

    step = cast(_logic.greater(input, 0), input.dtype)
    return where(_logic.equal(input, 0), values, step)


@op(mindir="NextAfter", method=True)
def nextafter(input, other):
    """Neighbouring floating number of `input` in the direction of `other`.

    Shapes: broadcast.  dtypes: floating, both the same.  Errors: TypeError if they differ.
    """
    return np.nextafter(input, other)


@nextafter.infer
def nextafter(input, other):
    if input.dtype is not other.dtype:
        raise TypeError(f"input and other must have one dtype, but they are {input} and {other}")
    return broadcast()(input, other)


@nextafter.vjp
def nextafter(ct, input_shape):
    return unbroadcast(ct, input_shape), None


@nextafter.samples
def nextafter(rand):
    yield rand(3, 4), rand(3, 4)
    yield (
        np.array([0.0, -0.0, 1.0, -2.0], np.float32)[:, None],
        np.array([1.0, -1.0, 0.0], np.float32),
    )
    yield rand(0), rand(0)


def addn(x):
    """Sum of all tensors of the list `x`.

    Shapes: all equal -> same.  dtypes: real.  Errors: ValueError for an empty list.
    """
    if not x:
        raise errors.value_error("addn: the list of tensors is empty")
    total = x[0]
    for term in x[1:]:
        total = add(total, term)
    return total


def accumulate_n(x):
    """Sum of all tensors of the list `x`.

    Shapes: all equal -> same.  dtypes: real.  Errors: ValueError for an empty list.
    """
    return addn(x)


tensor_add, tensor_sub, tensor_mul, tensor_div, tensor_pow = add, sub, mul, true_div, pow
tensor_exp, tensor_expm1 = exp, expm1


__all__ = [
    "abs", "absolute", "accumulate_n", "add", "addcdiv", "addcmul", "addn", "copysign", "div", "divide",
    "exp", "exp2", "expm1", "float_power", "float_power_ext", "heaviside", "hypot", "inv", "ldexp", "lerp",
    "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "mul", "multiply", "neg", "negative",
    "nextafter", "positive", "pow", "pows", "reciprocal", "rsqrt", "sgn", "sign", "sqrt", "square", "sub",
    "subtract", "tanh", "tensor_add", "tensor_div", "tensor_exp", "tensor_expm1", "tensor_mul",
    "tensor_pow", "tensor_sub", "true_divide", "xdivy", "xlogy",
]  # fmt: skip
