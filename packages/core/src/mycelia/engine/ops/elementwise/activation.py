"""Smooth activation functions and gated units; the piecewise linear ones are in `rectifiers.py`, the softmax
family is in `reductions/softmaxes.py`.

Those in the inner loop of common networks have a gradient op of their own, which a backend can run in one
pass; a gradient op takes ``dy``, the gradient of the result, and the input ``x`` or the result ``y``,
whichever is needed.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.infer import same


@op(elementwise="same", infer=same(), mindir="Elu", onnx="Elu", float_result=True)
def elu(input_x, *, alpha: "float" = 1.0):
    """Exponential linear unit: ``x if x > 0 else alpha * (exp(x) - 1)``.

    Shapes: any -> same.  dtypes: floating.  Source: Clevert et al. 2015.
    """
    return np.where(input_x > 0, input_x, alpha * np.expm1(np.minimum(input_x, 0)))


@elu.vjp
def elu(ct, out, *, alpha):
    return _elu_grad(ct, out, alpha=alpha)


@elu.samples
def elu(rand):
    yield rand(3, 5, low=-3, high=3)
    yield rand(33, low=-30, high=30), dict(alpha=0.7)
    yield rand(0)


@elu.fuse
def elu(p, x, *, alpha):
    return p.step("elu", x, p.constant(alpha))


@op(elementwise="same", infer=same())
def _elu_grad(dy, y, *, alpha: "float" = 1.0):
    """Gradient of elu from its result: ``dy if y > 0 else dy * (y + alpha)``.

    Shapes: dy, y equal -> same.  dtypes: floating.
    """
    return np.where(y > 0, dy, dy * (y + alpha))


@_elu_grad.vjp
def _elu_grad(ct, dy, y, *, alpha):
    return _elu_grad(ct, y, alpha=alpha), ct * dy * (y <= 0)


@_elu_grad.samples
def _elu_grad(rand):
    yield rand(3, 5), rand.distinct(3, 5) + np.float32(0.03), dict(alpha=0.7)


@_elu_grad.fuse
def _elu_grad(p, dy, y, *, alpha):
    return p.step("elu_grad", dy, y, p.constant(alpha))


@op(elementwise="same", infer=same(), mindir="CeLU", float_result=True)
def celu(x, *, alpha: "float" = 1.0):
    """Continuously differentiable exponential unit: ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

    Shapes: any -> same.  dtypes: floating.  Source: Barron 2017.
    """
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


@celu.infer
def celu(x, *, alpha):
    if alpha == 0:
        raise ValueError("alpha must not be 0")
    return x


@celu.vjp
def celu(ct, x, *, alpha):
    return ct * _powers.exp(_clipping.minimum(x, 0.0) / alpha)


@celu.samples
def celu(rand):
    yield rand(3, 5, low=-3, high=3), dict(alpha=1.5)
    yield rand(1)
    yield rand(0, 2)


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@op(
    elementwise="same",
    infer=same(),
    mindir="SeLU",
    onnx="Selu",
    mindir_attributes=True,
    float_result=True,
    primitive=True,
)
def selu(input_x):
    """Scaled exponential unit: ``1.0507 * (x if x > 0 else 1.67326 * (exp(x) - 1))``,
    which keeps mean and variance.

    Shapes: any -> same.  dtypes: floating.  Source: Klambauer et al. 2017.
    """
    return SELU_SCALE * np.where(input_x > 0, input_x, SELU_ALPHA * np.expm1(np.minimum(input_x, 0)))


@selu.vjp
def selu(ct, out):
    return SELU_SCALE * _elu_grad(ct, out * (1.0 / SELU_SCALE), alpha=SELU_ALPHA)


@selu.samples
def selu(rand):
    yield rand(3, 5, low=-3, high=3)
    yield rand(0)


def _np_sigmoid(x):
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    e = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _np_softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@op(
    elementwise="same",
    infer=same(),
    mindir="Sigmoid",
    onnx="Sigmoid",
    float_result=True,
    method=True,
    fuse="sigmoid",
    primitive=True,
)
def sigmoid(input):
    """Logistic function: ``1 / (1 + exp(-input))``.

    Shapes: any -> same.  dtypes: floating.
    """
    return _np_sigmoid(input)


@sigmoid.vjp
def sigmoid(ct, out):
    return _sigmoid_grad(ct, out)


@sigmoid.samples
def sigmoid(rand):
    yield rand(3, 5, low=-5, high=5)
    yield rand(37, low=-200, high=200), dict(_grad=False)
    yield rand(0)


@op(elementwise="same", infer=same(), fuse="sigmoid_grad")
def _sigmoid_grad(dy, y):
    """Gradient of sigmoid from its result: ``dy * y * (1 - y)``.

    Shapes: dy, y equal -> same.  dtypes: floating.
    """
    return dy * y * (1 - y)


@_sigmoid_grad.vjp
def _sigmoid_grad(ct, dy, y):
    return _sigmoid_grad(ct, y), ct * dy * (1.0 - 2.0 * y)


@_sigmoid_grad.samples
def _sigmoid_grad(rand):
    yield rand(3, 5), rand(3, 5)
    yield rand(0), rand(0)


@op(elementwise="same", infer=same(), float_result=True)
def logsigmoid(x):
    """Logarithm of the logistic function: ``-log(1 + exp(-x))``.

    Shapes: any -> same.  dtypes: floating.
    """
    return -_np_softplus(-x)


@logsigmoid.vjp
def logsigmoid(ct, x):
    return ct * sigmoid(-x)


@logsigmoid.samples
def logsigmoid(rand):
    yield rand(3, 5, low=-5, high=5)
    yield rand(9, low=-200, high=200), dict(_grad=False)


@logsigmoid.fuse
def logsigmoid(p, x):
    return p.step("neg", p.step("softplus", p.step("neg", x)))


@op(elementwise="same", infer=same(), float_result=True, mindir="SiLU", cost=4, fuse="silu")
def silu(input):
    """Sigmoid linear unit (swish): ``input * sigmoid(input)``.

    Shapes: any -> same.  dtypes: floating.
    """
    return input * _np_sigmoid(input)


@silu.vjp
def silu(ct, input):
    return _silu_grad(ct, input)


@silu.samples
def silu(rand):
    yield rand(3, 5, low=-5, high=5)
    yield rand(41, low=-100, high=100), dict(_grad=False)
    yield rand(0)


@op(elementwise="same", infer=same(), cost=6, fuse="silu_grad")
def _silu_grad(dy, x):
    """Gradient of silu: ``dy * s * (1 + x * (1 - s))`` with ``s = sigmoid(x)``.

    Shapes: dy, x equal -> same.  dtypes: floating.
    """
    s = _np_sigmoid(x)
    return dy * s * (1 + x * (1 - s))


@_silu_grad.vjp
def _silu_grad(ct, dy, x):
    s = sigmoid(x)
    return _silu_grad(ct, x), ct * dy * s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s))


@_silu_grad.samples
def _silu_grad(rand):
    yield rand(3, 5), rand(3, 5, low=-5, high=5)


@op(
    elementwise="same",
    infer=same(),
    mindir="Mish",
    onnx="Mish",
    mindir_attributes=True,
    float_result=True,
    fuse="mish",
    primitive=True,
)
def mish(x):
    """Self regularized unit: ``x * tanh(log(1 + exp(x)))``.

    Shapes: any -> same.  dtypes: floating.  Source: Misra 2019.
    """
    return x * np.tanh(_np_softplus(x))


@mish.vjp
def mish(ct, x):
    t = _math.tanh(softplus(x))
    return ct * (t + x * (1.0 - t * t) * sigmoid(x))


@mish.samples
def mish(rand):
    yield rand(3, 5, low=-5, high=5)
    yield rand(0)


@op(
    elementwise="same",
    infer=same(),
    mindir="Softplus",
    mindir_attributes=True,
    float_result=True,
    precision="wide",
)
def _softplus(input, *, beta: "float" = 1.0, threshold: "float" = 20.0):
    """Smooth rectifier: ``log(1 + exp(beta * input)) / beta``; `input` itself where
    ``beta * input > threshold``.

    Shapes: any -> same.  dtypes: floating.
    """
    return np.where(input * beta > threshold, input, _np_softplus(input * beta) / beta)


@_softplus.vjp
def _softplus(ct, input, *, beta, threshold):
    return _softplus_grad(ct, input, beta=beta, threshold=threshold)


@_softplus.samples
def _softplus(rand):
    yield rand(3, 5, low=-5, high=5)
    yield rand(3, 5, low=-5, high=5), dict(beta=2.0, threshold=3.0)
    yield rand(29, low=-300, high=300), dict(_grad=False)
    yield rand(0)


@_softplus.fuse
def _softplus(p, x, *, beta, threshold):
    scaled = p.step("mul", x, p.constant(beta))
    smooth = p.step("mul", p.step("softplus", scaled), p.constant(1 / beta))
    return p.step("select", p.step("less", p.constant(threshold), scaled), x, smooth)


@op(elementwise="same", infer=same())
def _softplus_grad(dy, x, *, beta: "float" = 1.0, threshold: "float" = 20.0):
    """Gradient of softplus: ``dy * sigmoid(beta * x)``, ``dy`` in the linear part.

    Shapes: dy, x equal -> same.  dtypes: floating.
    """
    return np.where(x * beta > threshold, dy, dy * _np_sigmoid(x * beta))


@_softplus_grad.vjp
def _softplus_grad(ct, dy, x, *, beta, threshold):
    curve = beta * _sigmoid_grad(ct * dy, sigmoid(x * beta)) * (x * beta <= threshold)
    return _softplus_grad(ct, x, beta=beta, threshold=threshold), curve


@_softplus_grad.samples
def _softplus_grad(rand):
    yield rand(3, 5), rand(3, 5, low=-5, high=5), dict(beta=1.5, threshold=2.0)


@_softplus_grad.fuse
def _softplus_grad(p, dy, x, *, beta, threshold):
    scaled = p.step("mul", x, p.constant(beta))
    smooth = p.step("mul", dy, p.step("sigmoid", scaled))
    return p.step("select", p.step("less", p.constant(threshold), scaled), dy, smooth)


def softplus(input, beta=1, threshold=20):
    """Smooth rectifier: ``log(1 + exp(beta * input)) / beta``; `input` itself where
    ``beta * input > threshold``.

    Shapes: any -> same.  dtypes: floating.
    """
    return _softplus(input, beta=float(beta), threshold=float(threshold))


@op(
    elementwise="same",
    infer=same(),
    mindir="Softsign",
    onnx="Softsign",
    mindir_attributes=True,
    float_result=True,
    primitive=True,
)
def softsign(x):
    """``x / (1 + |x|)``.

    Shapes: any -> same.  dtypes: floating.
    """
    return x / (1 + np.abs(x))


@softsign.vjp
def softsign(ct, x):
    return ct / _math.square(1.0 + _math.abs(x))


@softsign.samples
def softsign(rand):
    yield rand(3, 5)
    yield rand(0)


def tanhshrink(input):
    """``input - tanh(input)``.

    Shapes: any -> same.  dtypes: floating.
    """
    return input - _math.tanh(input)


def glu(x, axis=-1):
    """Gated linear unit: the first half of `x` along `axis` times the sigmoid of the second half.

    Shapes: x [..., 2n, ...] -> [..., n, ...].  dtypes: floating.  Source: Dauphin et al. 2016.
    """
    first, second = _halves("glu", x, axis)
    return first * sigmoid(second)


def swiglu(input, dim=-1):
    """Swish gated unit: silu of the first half of `input` along `dim` times the second half.

    Shapes: input [..., 2n, ...] -> [..., n, ...].  dtypes: floating.
    """
    first, second = _halves("swiglu", input, dim)
    return silu(first) * second


def _halves(name, x, axis):
    if not -x.ndim <= axis < x.ndim:
        raise errors.value_error(f"{name}: axis {axis} is out of range for rank {x.ndim}")
    size = x.shape[axis]
    if size % 2:
        raise errors.value_error(f"{name}: size along axis {axis} must be even, got shape {x.shape}")
    before = (slice(None),) * (axis % x.ndim)
    return x[before + (slice(0, size // 2),)], x[before + (slice(size // 2, size),)]


__all__ = [
    "celu", "elu", "glu", "logsigmoid", "mish", "selu", "sigmoid", "silu", "softplus", "softsign",
    "swiglu", "tanhshrink",
]  # fmt: skip
