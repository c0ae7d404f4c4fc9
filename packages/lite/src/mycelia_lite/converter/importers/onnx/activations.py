"""ONNX activations, softmax and clipping."""

from __future__ import annotations

import math

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    cast,
    is_number,
    known,
    operator,
    plain,
    positive_axis,
    scalar,
    shape_of,
)


def _same(a: float, b: float) -> bool:
    """Whether two attributes, which files hold as float32, are equal."""
    return np.float32(a) == np.float32(b)


for _name, _op in {
    "Relu": ops.relu, "Sigmoid": ops.sigmoid, "Tanh": ops.tanh, "Softsign": ops.softsign, "Mish": ops.mish,
    "HardSwish": ops.hardswish,
}.items():  # fmt: skip
    plain(_name, _op)


@operator("LeakyRelu")
def _leaky_relu(call, x):
    alpha = call.get("alpha", 0.01)
    if 0 <= alpha <= 1:
        return ops.leaky_relu(x, alpha)
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(x, scalar(alpha, x)), x)


@operator("PRelu")
def _prelu(call, x, slope):
    """The slope broadcasts to x; before version 7 one of rank 1 is that of the channels."""
    if call.version < 7 and slope.ndim == 1 and x.ndim > 1 and shape_of(slope) != (1,):
        slope = along(slope, 1, x.ndim)
    shape = shape_of(slope)
    channels = x.ndim > 1 and len(shape) == x.ndim - 1 and set(shape[1:]) <= {1}
    if channels and shape[0] == shape_of(x)[1] and x.dtype in (ms.float32, ms.float16):
        return ops.prelu(x, ops.reshape(slope, (shape[0],)))
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(x, slope), x)


@operator("Elu")
def _elu(call, x):
    alpha = call.get("alpha", 1.0)
    if alpha == 1:
        return ops.elu(x, 1.0)
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(ops.expm1(x), scalar(alpha, x)), x)


@operator("Celu")
def _celu(call, x):
    alpha = call.get("alpha", 1.0)
    return ops.celu(x, alpha)


@operator("Selu")
def _selu(call, x):
    """gamma * (alpha * (e^x - 1)) below 0, gamma * x above."""
    alpha = call.get("alpha", 1.67326319217681884765625)
    gamma = call.get("gamma", 1.05070102214813232421875)
    below = ops.mul(ops.expm1(ops.minimum(x, scalar(0, x))), scalar(alpha, x))
    return ops.mul(ops.where(ops.greater(x, scalar(0, x)), x, below), scalar(gamma, x))


@operator("ThresholdedRelu")
def _thresholded_relu(call, x):
    alpha = scalar(call.get("alpha", 1.0), x)
    return ops.where(ops.greater(x, alpha), x, scalar(0, x))


@operator("HardSigmoid")
def _hard_sigmoid(call, x):
    """max(0, min(1, alpha x + beta)); core's op is the one with alpha 1/6 and beta 1/2."""
    alpha, beta = call.get("alpha", 0.2), call.get("beta", 0.5)
    if _same(alpha, 1 / 6) and beta == 0.5:
        return ops.hardsigmoid(x)
    y = ops.add(ops.mul(x, scalar(alpha, x)), scalar(beta, x))
    return ops.maximum(ops.minimum(y, scalar(1, x)), scalar(0, x))


@operator("Gelu")
def _gelu(call, x):
    return ops.gelu(x, call.choice("approximate", "none", ("none", "tanh")))


@operator("Swish")
def _swish(call, x):
    alpha = call.get("alpha", 1.0)
    return ops.silu(x) if alpha == 1 else ops.mul(x, ops.sigmoid(ops.mul(x, scalar(alpha, x))))


@operator("Softplus")
def _softplus(call, x):
    """log(1 + e^x), without overflow."""
    tail = ops.log1p(ops.exp(ops.neg(ops.abs(x))))
    return ops.add(ops.maximum(x, scalar(0, x)), tail)


@operator("Shrink")
def _shrink(call, x):
    bias, lambd = call.get("bias", 0.0), call.get("lambd", 0.5)
    below = ops.where(ops.less(x, scalar(-lambd, x)), ops.add(x, scalar(bias, x)), scalar(0, x))
    return ops.where(ops.greater(x, scalar(lambd, x)), ops.sub(x, scalar(bias, x)), below)


def _rows(call: Call, x, function):
    """`function` along the axis; before version 13 all axes from it on count as one."""
    if call.version >= 13:
        return function(x, positive_axis(call, call.get("axis", -1), x.ndim))
    axis = call.get("axis", 1)
    axis = axis if axis == x.ndim else positive_axis(call, axis, x.ndim)
    if axis == x.ndim - 1:
        return function(x, axis)
    shape = shape_of(x)
    rows = ops.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    return ops.reshape(function(rows, 1), shape)


@operator("Softmax")
def _softmax(call, x):
    return _rows(call, x, lambda rows, axis: ops.softmax(rows, axis))


@operator("LogSoftmax")
def _log_softmax(call, x):
    return _rows(call, x, lambda rows, axis: ops.log_softmax(rows, axis))


@operator("Hardmax")
def _hardmax(call, x):
    """1 at the first largest element along the axis, 0 elsewhere."""

    def largest(rows, axis):
        n = shape_of(rows)[axis]
        call.fixed = is_number(n)
        counted = ms.Tensor(np.arange(n)) if is_number(n) else run_time.counted(run_time.sizes(rows)[axis])
        places = along(counted, axis, rows.ndim)
        return cast(ops.equal(ops.expand_dims(ops.argmax(rows, axis), axis), places), x.dtype)

    return _rows(call, x, largest)


@operator("Clip")
def _clip(call, x, low=None, high=None):
    """min(max(x, low), high)."""
    if call.version < 11:
        low, high = (
            None if bound is None else scalar(bound, x) for bound in (call.get("min"), call.get("max"))
        )
    ends = [None if bound is None else known(bound) for bound in (low, high)]
    if x.dtype.is_floating and all(e is not None and e.size == 1 for e in ends):
        if (ends[0].item(), ends[1].item()) == (0, 6):
            return ops.relu6(x)
    for bound, op in ((low, ops.maximum), (high, ops.minimum)):
        if bound is not None:
            x = op(x, ops.reshape(bound, ()))
    return x
