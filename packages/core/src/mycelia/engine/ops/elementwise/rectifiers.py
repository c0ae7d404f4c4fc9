"""Activation functions made of straight pieces: the ReLU family, the hard forms, shrinking, thresholds."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.infer import need_floating, same
from mycelia.engine.ops.reductions import reduce as _reduce


def _store(target, value):
    """Writes `value` into the tensor `target` and returns it: the `inplace` variants."""
    assign(target, value)
    return target


@op(elementwise="same", infer=same(), mindir="ReLU", onnx="Relu", fuse="relu", exact=True)
def _relu(input):
    """Rectified linear unit: ``max(input, 0)``.

    Shapes: any -> same.  dtypes: real.
    """
    return np.maximum(input, input.dtype.type(0))


@_relu.vjp
def _relu(ct, out):
    return _relu_grad(ct, out)


@_relu.samples
def _relu(rand):
    yield rand(3, 5)
    yield rand(1)
    yield rand(0, 4)
    yield rand.ints(-5, 5, (7,)), dict(_grad=False)
    yield rand(257, low=-1e30, high=1e30), dict(_grad=False)


@op(elementwise="same", infer=same(), fuse="relu_grad", exact=True)
def _relu_grad(dy, y):
    """Gradient of relu: ``dy`` where the result `y` is positive, else 0.

    Shapes: dy, y equal -> same.  dtypes: real.
    """
    return np.where(y > 0, dy, np.zeros_like(dy))


@_relu_grad.vjp
def _relu_grad(ct, y):
    return _relu_grad(ct, y), None


@_relu_grad.samples
def _relu_grad(rand):
    yield rand(4, 5), rand.distinct(4, 5) + np.float32(0.03)  # not at the kink
    yield rand(0), rand(0)
    yield rand(131), rand.distinct(131) + np.float32(0.03)


def relu(input, inplace=False):
    """Rectified linear unit: ``max(input, 0)``; with `inplace` the result replaces the value of `input`.

    Shapes: any -> same.  dtypes: real.
    """
    return _store(input, _relu(input)) if inplace else _relu(input)


def _clip(x, low, high):
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))


@op(elementwise="same", infer=same(), mindir="ReLU6", fuse="relu6", primitive=True, exact=True)
def relu6(x):
    """Rectified linear unit cut at six: ``min(max(x, 0), 6)``.

    Shapes: any -> same.  dtypes: real.
    """
    return _clip(x, 0, 6)


ABOVE_SIX = float(np.nextafter(np.float32(6), np.float32(7)))  # relu6 has slope one at six itself


@relu6.vjp
def relu6(ct, x):
    return _hardtanh_grad(ct, x, min_val=0.0, max_val=ABOVE_SIX)


@relu6.samples
def relu6(rand):
    yield rand(5, 7, low=-3, high=9)
    yield rand(1)
    yield rand(0, 2)


@op(elementwise="same", infer=same())
def _hardtanh(input, *, min_val: "float" = -1.0, max_val: "float" = 1.0):
    """Clip to an interval: ``min(max(input, min_val), max_val)``.

    Shapes: any -> same.  dtypes: real.
    """
    return _clip(input, min_val, max_val)


@_hardtanh.vjp
def _hardtanh(ct, input, *, min_val, max_val):
    return _hardtanh_grad(ct, input, min_val=min_val, max_val=max_val)


@_hardtanh.samples
def _hardtanh(rand):
    yield rand(4, 5, low=-3, high=3)
    yield rand(11, low=-3, high=3), dict(min_val=-0.5, max_val=2.0)
    yield rand(35), dict(max_val=math.nan, _grad=False)
    yield rand(0)


@_hardtanh.fuse
def _hardtanh(p, x, *, min_val, max_val):
    return _clipping.clip_step(p, x, min_val, max_val)


@op(elementwise="same", infer=same())
def _hardtanh_grad(dy, x, *, min_val: "float" = -1.0, max_val: "float" = 1.0):
    """Gradient of a clip: ``dy`` where `x` lies inside the open interval, else 0.

    Shapes: dy, x equal -> same.  dtypes: real.
    """
    return np.where((x > min_val) & (x < max_val), dy, np.zeros_like(dy))


@_hardtanh_grad.vjp
def _hardtanh_grad(ct, x, *, min_val, max_val):
    return _hardtanh_grad(ct, x, min_val=min_val, max_val=max_val), None


@_hardtanh_grad.samples
def _hardtanh_grad(rand):
    yield rand(4, 5), rand(4, 5, low=-3, high=3), dict(min_val=-1.0, max_val=1.5)


@_hardtanh_grad.fuse
def _hardtanh_grad(p, dy, x, *, min_val, max_val):
    low, high = p.constant(min_val), p.constant(max_val)
    inside = p.step("and", p.step("less", low, x), p.step("less", x, high))
    return p.step("select", inside, dy, p.constant(0.0))


def hardtanh(input, min_val=-1.0, max_val=1.0):
    """Clip to an interval: ``min(max(input, min_val), max_val)``.

    Shapes: any -> same.  dtypes: real.  Errors: ValueError if `min_val` is not below `max_val`.
    """
    if min_val >= max_val:
        raise errors.value_error(f"hardtanh: min_val must be below max_val, got {min_val} and {max_val}")
    return _hardtanh(input, min_val=float(min_val), max_val=float(max_val))


@op(elementwise="same", infer=same(), float_result=True, onnx="LeakyRelu")
def leaky_relu(input, *, alpha: "float" = 0.2):
    """Rectifier with a slope for negative values: ``input if input > 0 else alpha * input``.

    Shapes: any -> same.  dtypes: floating.
    """
    return np.where(input > 0, input, input * alpha)


@leaky_relu.vjp
def leaky_relu(ct, input, *, alpha):
    return _leaky_relu_grad(ct, input, alpha=alpha)


@leaky_relu.samples
def leaky_relu(rand):
    yield rand(3, 5)
    yield rand(17), dict(alpha=0.01)
    yield rand(0, 3)
    yield rand(1), dict(alpha=-0.5)


@leaky_relu.fuse
def leaky_relu(p, x, *, alpha):
    return p.step("leaky_relu", x, p.constant(alpha))


@op(elementwise="same", infer=same())
def _leaky_relu_grad(dy, x, *, alpha: "float" = 0.2):
    """Gradient of leaky_relu: ``dy`` where `x` is positive, else ``alpha * dy``.

    Shapes: dy, x equal -> same.  dtypes: floating.
    """
    return np.where(x > 0, dy, dy * alpha)


@_leaky_relu_grad.vjp
def _leaky_relu_grad(ct, x, *, alpha):
    return _leaky_relu_grad(ct, x, alpha=alpha), None


@_leaky_relu_grad.samples
def _leaky_relu_grad(rand):
    yield rand(3, 5), rand.distinct(3, 5) + np.float32(0.03), dict(alpha=0.1)


@_leaky_relu_grad.fuse
def _leaky_relu_grad(p, dy, x, *, alpha):
    return p.step("leaky_relu_grad", dy, x, p.constant(alpha))


def _over_channels(rank, channels):
    """Shape that lets a vector over axis 1 (or one number) broadcast against a tensor of `rank`."""
    if channels == 1:
        return (1,) * rank
    return (1, channels) + (1,) * (rank - 2) if rank > 1 else (channels,)


@op(mindir="PReLU", batch=_batch.joined(0), precision="short", primitive=True)
def prelu(input, weight):
    """Rectifier whose slope for negative values is learned, one a channel:
    ``max(input, 0) + weight * min(input, 0)``.

    Shapes: input [N, C, ...] or any, weight [C] or [1] -> input's.  dtypes: floating.
    Errors: ValueError if `weight` has neither one nor C elements.  Source: He et al. 2015.
    """
    slope = weight.reshape(_over_channels(input.ndim, weight.size))
    return np.where(input > 0, input, input * slope)


@prelu.infer
def prelu(input, weight):
    need_floating(input=input)
    channels = input.shape[1] if input.rank > 1 else 1
    if weight.rank != 1 or (weight.shape[0] not in (1, -1, channels) and channels != -1):
        raise ValueError(
            f"weight must be [1] or [{channels}] for an input of shape {input.shape}, got {weight.shape}"
        )
    return input


@prelu.vjp
def prelu(ct, input, weight):
    slope = reshape(weight, _over_channels(input.ndim, weight.size))
    d_slope = ct * _clipping.minimum(input, 0.0)
    others = tuple(a for a in range(input.ndim) if weight.size == 1 or a != 1)
    return ct * _masks.where(input > 0, 1.0, slope), reshape(_reduce.sum(d_slope, others), weight.shape)


@prelu.samples
def prelu(rand):
    yield rand(2, 3, 4), rand(3)
    yield rand(2, 3), rand(1)
    yield rand(5), rand(1)
    yield rand(), rand(1)
    yield rand(0, 2), rand(2)


@op(elementwise="same", infer=same(), mindir="HSigmoid", fuse="hardsigmoid", primitive=True)
def hardsigmoid(input):
    """Piecewise linear sigmoid: ``min(max(input / 6 + 1 / 2, 0), 1)``.

    Shapes: any -> same.  dtypes: real; of integers the fraction is cut off.
    """
    return np.clip((input + 3) / 6, 0, 1).astype(input.dtype)


@hardsigmoid.vjp
def hardsigmoid(ct, input):
    return _hardtanh_grad(ct, input, min_val=-3.0, max_val=3.0) * (1.0 / 6.0)


@hardsigmoid.samples
def hardsigmoid(rand):
    yield rand(3, 5, low=-6, high=6)
    yield rand.ints(-9, 9, (3, 5)), dict(_grad=False)
    yield rand(0)


@op(elementwise="same", infer=same(), mindir="HSwish", fuse="hardswish", primitive=True)
def hardswish(input):
    """Piecewise quadratic swish: ``input * min(max(input + 3, 0), 6) / 6``.

    Shapes: any -> same.  dtypes: real; of integers the fraction is cut off.  Source: Howard et al. 2019.
    """
    return (input * np.clip(input + 3, 0, 6) / 6).astype(input.dtype)


@hardswish.vjp
def hardswish(ct, input):
    return _hardswish_grad(ct, input)


@hardswish.samples
def hardswish(rand):
    yield rand(3, 5, low=-6, high=6)
    yield rand.ints(-9, 9, (3, 5)), dict(_grad=False)
    yield rand(0)


@op(elementwise="same", infer=same(), fuse="hardswish_grad")
def _hardswish_grad(dy, x):
    """Gradient of hardswish: ``dy * (x / 3 + 1 / 2)`` for -3 < x < 3, 0 below, ``dy`` above.

    Shapes: dy, x equal -> same.  dtypes: floating.
    """
    return np.where(x <= -3, 0, np.where(x >= 3, dy, dy * (x / 3 + 0.5))).astype(dy.dtype)


@_hardswish_grad.vjp
def _hardswish_grad(ct, dy, x):
    return _hardswish_grad(ct, x), _hardtanh_grad(ct * dy, x, min_val=-3.0, max_val=3.0) * (1.0 / 3.0)


@_hardswish_grad.samples
def _hardswish_grad(rand):
    yield rand(3, 5), rand(3, 5, low=-6, high=6)


# ------------------------------------------------------------------------ shrinking and thresholds


@op(elementwise="same", infer=same(), mindir="HShrink")
def hardshrink(input, *, lambd: "float" = 0.5):
    """Zero near the origin: `input` where ``|input| > lambd``, else 0.

    Shapes: any -> same.  dtypes: floating.
    """
    return np.where(np.abs(input) > lambd, input, np.zeros_like(input))


@hardshrink.vjp
def hardshrink(ct, input, *, lambd):
    return ct * (_math.abs(input) > lambd)


@hardshrink.samples
def hardshrink(rand):
    yield rand(3, 5, low=-2, high=2)
    yield rand(7), dict(lambd=0.1)
    yield rand(0)


@op(elementwise="same", infer=same(), mindir="SoftShrink")
def softshrink(input, *, lambd: "float" = 0.5):
    """Shrink towards zero: ``input - lambd`` above `lambd`, ``input + lambd`` below ``-lambd``, else 0.

    Shapes: any -> same.  dtypes: floating.
    """
    return np.where(
        input > lambd, input - lambd, np.where(input < -lambd, input + lambd, np.zeros_like(input))
    )


@softshrink.vjp
def softshrink(ct, input, *, lambd):
    return ct * (_math.abs(input) > lambd)


@softshrink.samples
def softshrink(rand):
    yield rand(3, 5, low=-2, high=2)
    yield rand(7), dict(lambd=0.1)
    yield rand(0)


@op(elementwise="same", infer=same())
def threshold(input, *, thr: "float", value: "float"):
    """`input` where it exceeds `thr`, else `value`.

    Shapes: any -> same.  dtypes: real.
    """
    return np.where(input > thr, input, np.full_like(input, value))


@threshold.vjp
def threshold(ct, input, *, thr, value):
    return ct * (input > thr)


@threshold.samples
def threshold(rand):
    yield rand(3, 5), dict(thr=0.1, value=7.0)
    yield rand(0), dict(thr=0.1, value=7.0)


__all__ = [
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "prelu", "relu", "relu6",
    "softshrink", "threshold",
]  # fmt: skip
