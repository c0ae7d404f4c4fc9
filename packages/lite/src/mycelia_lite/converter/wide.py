"""Ops in float64 by ops that the runtime computes in float64: its kernels for them are of float32 alone.

The formulas are those of the ops. What has none here (convolutions, pools) is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.io.compositions import traced
from mycelia.ir import Graph, Node
from mycelia_lite.converter.errors import Code, ConversionError

_FORMULAS: dict[str, Callable] = {}
#: Ops for which there is no formula.
_NONE = {
    "avg_pool", "conv", "conv_input_grad", "conv_transpose", "gru_layer", "lrn", "lstm_layer", "max_pool",
    "max_pool_index", "rnn_layer",
}  # fmt: skip


def formula(function: Callable) -> Callable:
    """Decorator: the op of this name is `function(*tensors, **attributes)`."""
    _FORMULAS[function.__name__.removesuffix("_")] = function
    return function


def composed_wide(node: Node) -> Graph | None:
    """An op in float64 as a graph of others; None for one of another dtype, or of which there is a kernel.

    Errors: ConversionError for an op that cannot be computed in float64.
    """
    types = [None if v is None else v.type for v in node.inputs]
    if not types or types[0] is None or types[0].dtype is not ms.float64:
        return None
    if node.op.name in _NONE:
        raise ConversionError(
            Code.NOT_SUPPORT, f"{node.op.name} in float64 is not computed, only in float32{_place(node)}"
        )
    function = _FORMULAS.get(node.op.name)
    if function is None:
        return None
    return traced(node.op.name, lambda *x: function(*x, **node.attrs), types)


def _place(node: Node) -> str:
    return f" (node '{node.location}')" if node.location else ""


def _number(value: float, x: Any) -> ms.Tensor:
    return ms.Tensor(value, x.dtype)


@formula
def relu(x):
    return ops.maximum(x, _number(0, x))


@formula
def relu6(x):
    return ops.minimum(relu(x), _number(6, x))


@formula
def leaky_relu(x, *, alpha):
    return ops.where(ops.less(x, _number(0, x)), x * alpha, x)


@formula
def elu(x, *, alpha):
    return ops.where(ops.less(x, _number(0, x)), ops.expm1(ops.minimum(x, _number(0, x))) * alpha, x)


@formula
def sigmoid(x):
    return ops.reciprocal(ops.exp(-x) + 1)


@formula
def silu(x):
    return x * sigmoid(x)


@formula
def hardsigmoid(x):
    return relu6(x + 3) / 6


@formula
def hardswish(x):
    return x * relu6(x + 3) / 6


@formula
def gelu(x, *, approximate):
    if approximate == "tanh":
        return x * 0.5 * (ops.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)
    return x * 0.5 * (ops.erf(x * math.sqrt(0.5)) + 1)


@formula
def softmax(x, *, axis):
    parts = ops.exp(x - ops.amax(x, axis, True))
    return parts / ops.sum(parts, axis, True)


@formula
def log_softmax(x, *, axis):
    moved = x - ops.amax(x, axis, True)
    return moved - ops.log(ops.sum(ops.exp(moved), axis, True))


@formula
def mean(x, *, axis, keep_dims):
    total = ops.sum(x, axis, keep_dims)
    ones = ops.ones_like(x)
    return total / ops.sum(ones, axis, keep_dims)


@formula
def isnan(x):
    return ops.logical_not(ops.logical_or(ops.less_equal(x, _number(0, x)), ops.greater(x, _number(0, x))))


@formula
def isfinite(x):
    return ops.less(ops.abs(x), _number(math.inf, x))


@formula
def nan_to_num(x, *, nan, posinf, neginf):
    limits = np.finfo(np.float64)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    y = ops.where(ops.equal(x, _number(math.inf, x)), _number(high, x), x)
    y = ops.where(ops.equal(x, _number(-math.inf, x)), _number(low, x), y)
    return ops.where(isnan(x), _number(nan or 0, x), y)


@formula
def round_(x, *, decimals):
    """Halves go to even numbers."""
    x = x * 10.0**decimals if decimals else x
    down = ops.floor(x)
    rest, odd = x - down, down - ops.floor(down * 0.5) * 2
    up = ops.logical_or(ops.greater(rest, _number(0.5, x)), ops.equal(rest * 2 + odd, _number(2, x)))
    whole = ops.where(isfinite(x), ops.where(up, down + 1, down), x)
    return whole / 10.0**decimals if decimals else whole


@formula
def batch_norm_infer(x, scale, bias, mean, variance, *, epsilon, data_format):
    shape = (-1,) + (1,) * (len(x.shape) - 2) if data_format.startswith("NC") else (-1,)
    factor = scale * ops.rsqrt(variance + epsilon)
    return x * ops.reshape(factor, shape) + ops.reshape(bias - mean * factor, shape)


@formula
def layer_norm(x, gamma, beta, *, begin_norm_axis, begin_params_axis, epsilon):
    """Its second and third results are statistics: the mean and the inverse deviation."""
    rank = len(x.shape)
    axes = tuple(range(begin_norm_axis % rank, rank))
    average = mean(x, axis=axes, keep_dims=True)
    moved = x - average
    inverse = ops.rsqrt(mean(moved * moved, axis=axes, keep_dims=True) + epsilon)
    y = moved * inverse
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta, average, inverse
