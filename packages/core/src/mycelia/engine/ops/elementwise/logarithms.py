"""Logarithms, sums of exponentials as logarithms, products with logarithms."""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.math import add, binary_samples, mul, neg, sub, true_div, unary_samples
from mycelia.engine.ops.infer import broadcast, same, unbroadcast
from mycelia.engine.ops.late import ops

_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Log",
    onnx="Log",
    method=True,
    fuse="log",
    precision="wide",
)
def log(input):
    """Elementwise natural logarithm; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log(input)


@log.vjp
def log(ct, input):
    return true_div(ct, input)


log.samples(unary_samples(0.1, 4.0))


@op(elementwise="same", infer=same(), float_result=True, method=True, precision="wide")
def log2(input):
    """Elementwise logarithm to base 2; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log2(input)


@log2.vjp
def log2(ct, input):
    return true_div(mul(ct, 1.0 / _LN2), input)


log2.samples(unary_samples(0.1, 4.0))


@op(elementwise="same", infer=same(), float_result=True, method=True, precision="wide")
def log10(input):
    """Elementwise logarithm to base 10; NaN below zero.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log10(input)


@log10.vjp
def log10(ct, input):
    return true_div(mul(ct, 1.0 / _LN10), input)


log10.samples(unary_samples(0.1, 4.0))


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Log1p",
    method=True,
    fuse="log1p",
    precision="wide",
    primitive=True,
)
def log1p(input):
    """Elementwise ``log(1 + input)``, accurate near zero; NaN below -1.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.log1p(input)


@log1p.vjp
def log1p(ct, input):
    return true_div(ct, add(input, 1.0))


log1p.samples(unary_samples(-0.8, 4.0))


@op(elementwise="broadcast", infer=broadcast(), promote=("input", "other"), float_result=True, method=True)
def logaddexp(input, other):
    """``log(exp(input) + exp(other))`` without overflow on the way.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.logaddexp(input, other)


@logaddexp.vjp
def logaddexp(ct, input, other, input_shape, other_shape, needs):
    return (
        unbroadcast(mul(ct, ops.sigmoid(sub(input, other))), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, ops.sigmoid(sub(other, input))), other_shape) if needs[1] else None,
    )


logaddexp.samples(binary_samples)


@op(elementwise="broadcast", infer=broadcast(), promote=("input", "other"), float_result=True, method=True)
def logaddexp2(input, other):
    """``log2(2**input + 2**other)`` without overflow on the way.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    return np.logaddexp2(input, other)


@logaddexp2.vjp
def logaddexp2(ct, input, other, input_shape, other_shape, needs):
    return (
        unbroadcast(mul(ct, ops.sigmoid(mul(sub(input, other), _LN2))), input_shape) if needs[0] else None,
        unbroadcast(mul(ct, ops.sigmoid(mul(sub(other, input), _LN2))), other_shape) if needs[1] else None,
    )


logaddexp2.samples(binary_samples)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="Xlogy",
    method=True,
    primitive=True,
)
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
    return mul(ct, cast(_comparison.not_equal(x, 0.0), ct.dtype))


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


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("x", "y"),
    float_result=True,
    mindir="Xdivy",
    mindir_attributes=True,
    method=True,
    primitive=True,
)
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


__all__ = ["log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "xdivy", "xlogy"]
