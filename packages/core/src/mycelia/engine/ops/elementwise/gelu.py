"""Gaussian error linear units."""

import math

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.activation import _np_sigmoid, sigmoid
from mycelia.engine.ops.infer import same

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2 / math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_erf = np.frompyfunc(math.erf, 1, 1)


def _np_erf(x):
    return np.asarray(_erf(np.asarray(x, np.float64))).astype(x.dtype)


@op(elementwise="same", infer=same(), float_result=True, cost=8)
def gelu(input, *, approximate: "none|tanh" = "none"):
    """Gaussian error unit: ``x * (1 + erf(x / sqrt(2))) / 2``.

    `approximate` "tanh": ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2``.
    Shapes: any -> same.  dtypes: floating.  Source: Hendrycks and Gimpel 2016.
    """
    if approximate == "tanh":
        return 0.5 * input * (1 + np.tanh(_SQRT_2_PI * (input + 0.044715 * input**3)))
    return 0.5 * input * (1 + _np_erf(input * _SQRT_HALF))


@gelu.vjp
def gelu(ct, input, *, approximate):
    return _gelu_grad(ct, input, approximate=approximate)


@gelu.samples
def gelu(rand):
    yield rand(3, 5, low=-4, high=4)
    yield rand(3, 5, low=-4, high=4), dict(approximate="tanh")
    yield rand(43, low=-40, high=40), dict(_grad=False)
    yield rand(43, low=-40, high=40), dict(approximate="tanh", _grad=False)
    yield rand(0)


@gelu.fuse
def gelu(p, x, *, approximate):
    return p.step("gelu" if approximate == "none" else "gelu_tanh", x)


@op(elementwise="same", infer=same(), cost=16)
def _gelu_grad(dy, x, *, approximate: "none|tanh" = "none"):
    """Gradient of gelu: ``dy * (cdf(x) + x * pdf(x))`` of the normal distribution, or of its tanh form.

    Shapes: dy, x equal -> same.  dtypes: floating.
    """
    if approximate == "tanh":
        t = np.tanh(_SQRT_2_PI * (x + 0.044715 * x**3))
        return dy * 0.5 * (1 + t + x * (1 - t * t) * _SQRT_2_PI * (1 + 3 * 0.044715 * x * x))
    return dy * (0.5 * (1 + _np_erf(x * _SQRT_HALF)) + x * _INV_SQRT_2PI * np.exp(-0.5 * x * x))


@_gelu_grad.vjp
def _gelu_grad(ct, dy, x, *, approximate):
    if approximate == "tanh":
        t = _math.tanh(_SQRT_2_PI * (x + 0.044715 * x * x * x))
        slope = _SQRT_2_PI * (1.0 + 3 * 0.044715 * x * x)
        bend = _SQRT_2_PI * 6 * 0.044715 * x
        second = 0.5 * (1.0 - t) * (1.0 + t) * (2.0 * slope + x * (bend - 2.0 * t * slope * slope))
    else:
        second = _INV_SQRT_2PI * _powers.exp(-0.5 * x * x) * (2.0 - x * x)
    return _gelu_grad(ct, x, approximate=approximate), ct * dy * second


@_gelu_grad.samples
def _gelu_grad(rand):
    yield rand(3, 5), rand(3, 5, low=-4, high=4)
    yield rand(3, 5), rand(3, 5, low=-3, high=3), dict(approximate="tanh")
    yield rand(0), rand(0)


@_gelu_grad.fuse
def _gelu_grad(p, dy, x, *, approximate):
    return p.step("gelu_grad" if approximate == "none" else "gelu_tanh_grad", dy, x)


@op(elementwise="same", infer=same(), mindir="FastGeLU", float_result=True, fuse="fast_gelu", primitive=True)
def fast_gelu(x):
    """Sigmoid form of gelu: ``x * sigmoid(1.702 * x)``.

    Shapes: any -> same.  dtypes: floating.
    """
    return x * _np_sigmoid(1.702 * x)


@fast_gelu.vjp
def fast_gelu(ct, x):
    s = sigmoid(1.702 * x)
    return ct * s * (1.0 + 1.702 * x * (1.0 - s))


@fast_gelu.samples
def fast_gelu(rand):
    yield rand(3, 5, low=-4, high=4)
    yield rand(0)


__all__ = ["fast_gelu", "gelu"]
