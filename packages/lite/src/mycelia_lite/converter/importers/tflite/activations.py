"""Activations, softmax and normalizations of TensorFlow Lite."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import scalar, shape_of
from mycelia_lite.converter.importers.tflite.calls import (
    activated,
    bounded,
    operator,
    relu,
    to_first,
    to_last,
)


def _plain(name, op):
    operator(name)(lambda call, x: op(x))


for _name, _op in {
    "RELU": relu, "RELU6": lambda x: ops.relu6(x) if x.dtype.is_floating else bounded(x, 0, 6),
    "RELU_N1_TO_1": lambda x: bounded(x, -1, 1), "RELU_0_TO_1": lambda x: bounded(x, 0, 1),
    "LOGISTIC": ops.sigmoid, "TANH": ops.tanh, "HARD_SWISH": ops.hardswish, "ELU": lambda x: ops.elu(x, 1.0),
    "LOG_SOFTMAX": lambda x: ops.log_softmax(x, -1),
}.items():  # fmt: skip
    _plain(_name, _op)


@operator("LEAKY_RELU")
def _leaky_relu(call, x):
    alpha = call.get("LeakyReluOptions", "alpha")
    if 0 <= alpha <= 1:
        return ops.leaky_relu(x, alpha)
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(x, scalar(alpha, x)), x)


@operator("PRELU")
def _prelu(call, x, slope):
    """The slope broadcasts to x."""
    shape, given = shape_of(x), shape_of(slope)
    if len(shape) == 4 and given and given[-1] == shape[-1] and set(given[:-1]) <= {1}:
        return to_last(ops.prelu(to_first(x), ops.reshape(slope, (given[-1],))))
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(x, slope), x)


@operator("GELU")
def _gelu(call, x):
    return ops.gelu(x, "tanh" if call.get("GeluOptions", "approximate") else "none")


@operator("SOFTMAX")
def _softmax(call, x):
    """Along the last axis, of x times beta."""
    beta = call.get("SoftmaxOptions", "beta")
    return ops.softmax(x if beta == 1 else ops.mul(x, scalar(beta, x)), -1)


@operator("L2_NORMALIZATION")
def _l2_normalization(call, x):
    """Rows along the last axis over their norm, which counts as 1e-6 at least."""
    norm = ops.sqrt(ops.sum(ops.square(x), (len(shape_of(x)) - 1,), True))
    return activated(call, "L2NormOptions", ops.div(x, ops.maximum(norm, scalar(1e-6, x))))


@operator("LOCAL_RESPONSE_NORMALIZATION")
def _lrn(call, x):
    """x / (bias + alpha * sum of squares of the channels around) ** beta."""
    radius, bias, alpha, beta = (
        call.get("LocalResponseNormalizationOptions", name) for name in ("radius", "bias", "alpha", "beta")
    )
    return to_last(ops.lrn(to_first(x), radius, float(np.float32(bias)), alpha, beta))
