"""Functions of angles, circular and hyperbolic (tanh is in `math`), and their inverses."""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.logarithms import xdivy
from mycelia.engine.ops.elementwise.math import SPECIAL, add, mul, neg, square, sub, true_div, unary_samples
from mycelia.engine.ops.elementwise.powers import rsqrt
from mycelia.engine.ops.infer import broadcast, same, unbroadcast

# ------------------------------------------------------------------------------------------------ circular


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Sin",
    onnx="Sin",
    method=True,
    fuse="sin",
    primitive=True,
)
def sin(input):
    """Elementwise sine of an angle in radians.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.sin(input)


@sin.vjp
def sin(ct, input):
    return mul(ct, cos(input))


sin.samples(unary_samples(-9.0, 9.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Cos",
    onnx="Cos",
    method=True,
    fuse="cos",
    primitive=True,
)
def cos(input):
    """Elementwise cosine of an angle in radians.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.cos(input)


@cos.vjp
def cos(ct, input):
    return neg(mul(ct, sin(input)))


cos.samples(unary_samples(-9.0, 9.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Tan",
    onnx="Tan",
    method=True,
    precision="wide",
    primitive=True,
)
def tan(input):
    """Elementwise tangent of an angle in radians.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.tan(input)


@tan.vjp
def tan(ct, out):
    return mul(ct, add(square(out), 1.0))


tan.samples(unary_samples(-1.2, 1.2))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Asin",
    onnx="Asin",
    method=True,
    precision="wide",
    primitive=True,
)
def asin(input):
    """Elementwise inverse sine in radians, in [-pi/2, pi/2]; NaN outside of [-1, 1].

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arcsin(input)


@asin.vjp
def asin(ct, input):
    return mul(ct, rsqrt(sub(1.0, square(input))))


asin.samples(unary_samples(-0.9, 0.9))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="ACos",
    onnx="Acos",
    method=True,
    precision="wide",
    primitive=True,
)
def acos(input):
    """Elementwise inverse cosine in radians, in [0, pi]; NaN outside of [-1, 1].

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arccos(input)


@acos.vjp
def acos(ct, input):
    return neg(mul(ct, rsqrt(sub(1.0, square(input)))))


acos.samples(unary_samples(-0.9, 0.9))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Atan",
    onnx="Atan",
    method=True,
    primitive=True,
)
def atan(input):
    """Elementwise inverse tangent in radians, in [-pi/2, pi/2].

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arctan(input)


@atan.vjp
def atan(ct, input):
    return true_div(ct, add(square(input), 1.0))


atan.samples(unary_samples())


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="Atan2",
    method=True,
    primitive=True,
)
def atan2(input, other):
    """Angle in radians of the point (x = `other`, y = `input`), in [-pi, pi].

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.arctan2(input, other)


@atan2.vjp
def atan2(ct, input, other, input_shape, other_shape, needs):
    share = true_div(ct, add(square(input), square(other)))
    return (
        unbroadcast(mul(share, other), input_shape) if needs[0] else None,
        unbroadcast(neg(mul(share, input)), other_shape) if needs[1] else None,
    )


@atan2.samples
def atan2(rand):
    yield rand(3, 4), rand.positive(3, 4)
    yield rand(2, 1), rand(3, low=-2, high=-0.5)
    yield rand(257), rand(257), dict(_grad=False)
    yield SPECIAL[:, None], SPECIAL, dict(_grad=False)
    yield rand(0), rand(0)


# ---------------------------------------------------------------------------------------------- hyperbolic


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Sinh",
    onnx="Sinh",
    method=True,
    precision="wide",
    primitive=True,
)
def sinh(input):
    """Elementwise hyperbolic sine.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.sinh(input)


@sinh.vjp
def sinh(ct, input):
    return mul(ct, cosh(input))


sinh.samples(unary_samples())


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Cosh",
    onnx="Cosh",
    method=True,
    precision="wide",
    primitive=True,
)
def cosh(input):
    """Elementwise hyperbolic cosine.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.cosh(input)


@cosh.vjp
def cosh(ct, input):
    return mul(ct, sinh(input))


cosh.samples(unary_samples())


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Asinh",
    onnx="Asinh",
    method=True,
    primitive=True,
)
def asinh(input):
    """Elementwise inverse hyperbolic sine.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arcsinh(input)


@asinh.vjp
def asinh(ct, input):
    return mul(ct, rsqrt(add(square(input), 1.0)))


asinh.samples(unary_samples())


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Acosh",
    onnx="Acosh",
    method=True,
    primitive=True,
)
def acosh(input):
    """Elementwise inverse hyperbolic cosine; NaN below 1.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arccosh(input)


@acosh.vjp
def acosh(ct, input):
    # Two roots: of complex numbers the root of the product may lie on the other branch.
    return mul(ct, mul(rsqrt(sub(input, 1.0)), rsqrt(add(input, 1.0))))


acosh.samples(unary_samples(1.2, 4.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Atanh",
    onnx="Atanh",
    method=True,
    primitive=True,
)
def atanh(input):
    """Elementwise inverse hyperbolic tangent; NaN outside of [-1, 1].

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.arctanh(input)


@atanh.vjp
def atanh(ct, input):
    return true_div(ct, sub(1.0, square(input)))


atanh.samples(unary_samples(-0.9, 0.9))

arccos, arctan, arctan2 = acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh


def arcsin(x):
    """`asin` under its longer name."""
    return asin(x)


def deg2rad(x):
    """Degrees to radians.

    Shapes: any -> same.  dtypes: floating.
    """
    return mul(x, float(np.pi / 180))


def rad2deg(x):
    """Radians to degrees.

    Shapes: any -> same.  dtypes: floating.
    """
    return mul(x, float(180 / np.pi))


@op(elementwise="same", infer=same(), float_result=True, method=True, mindir="Sinc", primitive=True)
def sinc(input):
    """Normalized sinc: ``sin(pi * input) / (pi * input)``, and 1 at zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.sinc(input)


@sinc.vjp
def sinc(ct, input, out):
    slope = sub(cos(mul(input, float(np.pi))), out)
    return mul(ct, xdivy(slope, input))


sinc.samples(unary_samples(0.2, 3.0))

__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin",
    "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "rad2deg", "sin", "sinc", "sinh", "tan",
]  # fmt: skip
