"""Powers, roots, exponentials and logarithms of elements."""

import math
import struct

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.logarithms import _LN2, log
from mycelia.engine.ops.elementwise.math import SPECIAL, add, mul, square, sub, true_div, unary_samples
from mycelia.engine.ops.infer import broadcast, same, unbroadcast
from mycelia.engine.ops.late import ops


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "exponent"),
    mindir="Pow",
    method=True,
    precision="wide",
    primitive=True,
)
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
    base_ct = exponent_ct = None
    if needs[0]:  # the power below is infinite at 0 ** (0 - 1), where the slope is 0
        slope = mul(exponent, pow(input, sub(exponent, 1.0)))
        base_ct = unbroadcast(mul(ct, ops.where(_comparison.equal(exponent, 0.0), 0.0, slope)), input_shape)
    if needs[1]:
        slope = ops.where(_comparison.equal(out, 0.0), 0.0, mul(out, log(input)))
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


@pow.fuse
def pow(p, x, exponent):
    """Exponents that the kernel treats apart are treated apart here."""
    name, operands = p.steps[exponent]
    number = struct.unpack("<f", struct.pack("<I", operands[0]))[0] if name == "constant" else None
    if number == 2:
        return p.step("square", x)
    if number == 3:
        return p.step("mul", p.step("square", x), x)
    if number == -1:
        return p.step("reciprocal", x)
    if number == 0.5:  # of -0.0 it is 0.0
        root = p.step("add", p.step("sqrt", x), p.constant(0.0))
        return p.step("select", p.step("equal", x, p.constant(-math.inf)), p.constant(math.inf), root)
    return p.step("pow", x, exponent)


pows = pow


def float_power(input, exponent):
    """``input ** exponent`` computed in float64.

    Shapes: broadcast.  dtypes: any -> float64.
    """
    return pow(_double(input), _double(exponent))


float_power_ext = float_power


def _double(x):
    return float(x) if isinstance(x, (bool, int, float)) else cast(x, dtypes.float64)


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Sqrt",
    onnx="Sqrt",
    method=True,
    fuse="sqrt",
    primitive=True,
)
def sqrt(x):
    """Elementwise square root; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.sqrt(x)


@sqrt.vjp
def sqrt(ct, out):
    return true_div(mul(ct, 0.5), out)


sqrt.samples(unary_samples(0.1, 4.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Rsqrt",
    method=True,
    fuse="rsqrt",
    precision="wide",
    primitive=True,
)
def rsqrt(input):
    """Elementwise ``1 / sqrt(input)``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.reciprocal(np.sqrt(input))


@rsqrt.vjp
def rsqrt(ct, out):
    return mul(mul(ct, -0.5), mul(out, square(out)))


rsqrt.samples(unary_samples(0.3, 4.0))


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="Hypot",
    mindir_attributes=True,
    method=True,
    primitive=True,
)
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


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Exp",
    onnx="Exp",
    method=True,
    fuse="exp",
    precision="wide",
    primitive=True,
)
def exp(input):
    """Elementwise ``e ** input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.exp(input)


@exp.vjp
def exp(ct, out):
    return mul(ct, out)


exp.samples(unary_samples())


@op(elementwise="same", infer=same(), float_result=True, method=True)
def exp2(input):
    """Elementwise ``2 ** input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.exp2(input)


@exp2.vjp
def exp2(ct, out):
    return mul(mul(ct, out), _LN2)


exp2.samples(unary_samples())


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Expm1",
    method=True,
    fuse="expm1",
    precision="wide",
    primitive=True,
)
def expm1(input):
    """Elementwise ``e ** input - 1``, accurate near zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.expm1(input)


@expm1.vjp
def expm1(ct, out):
    return mul(ct, add(out, 1.0))


expm1.samples(unary_samples())


def ldexp(x, other):
    """``x * 2 ** other``.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return mul(x, exp2(other) if hasattr(other, "dtype") else 2.0**other)


tensor_pow, tensor_exp, tensor_expm1 = pow, exp, expm1


__all__ = [
    "exp", "exp2", "expm1", "float_power", "float_power_ext", "hypot", "ldexp", "pow", "pows", "rsqrt",
    "sqrt", "tensor_exp", "tensor_expm1", "tensor_pow",
]  # fmt: skip
