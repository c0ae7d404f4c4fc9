"""Operators of the domain com.microsoft, which onnxruntime's tools write into models."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    known,
    operator,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.norms import normalized
from mycelia_lite.converter.importers.onnx.quantized import dynamic, integer_product, rounded, to_8_bits
from mycelia_lite.converter.importers.onnx.recurrent import lstm

DOMAIN = "com.microsoft"


def _own(*names: str):
    return operator(*(f"{DOMAIN}.{name}" for name in names))


@_own("DynamicQuantizeLSTM")
def _dynamic_lstm(
    call, x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None,
    w_scale=None, w_zero=None, r_scale=None, r_zero=None,
):  # fmt: skip
    """An LSTM whose weights [D, inputs, 4H] are 8-bit integers.

    The data, all of them together, and at each step the states are rounded to 8 bits as by
    DynamicQuantizeLinear. Products are summed in float32, which is exact to 2^-24 of the sum.
    """
    weights = []
    for value, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero)):
        if scale is None:
            raise call.fail("a scale of the weights is missing")
        if (of_weights := known(scale)) is not None and known(value) is not None:
            call.scales = [*call.scales, *of_weights.reshape(-1, 1)]  # each direction becomes an LSTM
        wide = cast(value, ms.int32)
        if zero is not None:
            wide = ops.sub(wide, cast(_each_direction(zero), ms.int32))
        weights.append(ops.transpose(ops.mul(cast(wide, ms.float32), _each_direction(scale)), (0, 2, 1)))
    return lstm(call, x, *weights, b, lengths, h, c, peepholes, rounded=to_8_bits)


def _each_direction(parameter: Any) -> Any:
    """One number a direction [D], or one for each gate [D, 4H], to broadcast to [D, inputs, 4H]."""
    shape = shape_of(parameter)
    return ops.reshape(parameter, (shape[0], 1, shape[1] if len(shape) == 2 else 1))


@_own("Gelu")
def _gelu(call, x):
    return ops.gelu(x, "none")


@_own("FastGelu")
def _fast_gelu(call, x, bias=None):
    return ops.gelu(x if bias is None else ops.add(x, bias), "tanh")


@_own("BiasGelu")
def _bias_gelu(call, x, bias):
    return ops.gelu(ops.add(x, bias), "none")


@_own("QuickGelu")
def _quick_gelu(call, x):
    return ops.mul(x, ops.sigmoid(ops.mul(x, scalar(call.get("alpha", 1.702), x))))


@_own("FusedMatMul")
def _fused_matmul(call, a, b):
    if call.get("transBatchA", 0) or call.get("transBatchB", 0):
        raise call.attribute("transBatchA", "batches that are turned are not imported")
    turned = []
    for x, name in ((a, "transA"), (b, "transB")):
        swap = call.get(name, 0) and x.ndim >= 2
        turned.append(ops.swapaxes(x, -1, -2) if swap else x)
    y = ops.matmul(*turned)
    alpha = call.get("alpha", 1.0)
    return y if alpha == 1 else ops.mul(y, scalar(alpha, y))


@_own("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_norm(call, x, skip, gamma, *more):
    """The norm of x + skip + bias; the last result is that sum."""
    simple = call.kind.endswith("SkipSimplifiedLayerNormalization")
    beta, bias = (None, *more, None)[:2] if simple else (*more, None, None)[:2]
    total = ops.add(x, skip)
    if bias is not None:
        total = ops.add(total, bias)
    wide = cast(total, ms.float32)
    epsilon = call.get("epsilon", 1e-5 if simple else 1e-12)
    axes = (x.ndim - 1,)
    if simple:
        mean = ops.mean(ops.square(wide), axes, True)
        y = ops.mul(wide, ops.rsqrt(ops.add(mean, scalar(epsilon, wide))))
    else:
        y, *_ = normalized(wide, axes, epsilon)
    y = ops.mul(cast(y, x.dtype), gamma)
    y = y if beta is None else ops.add(y, beta)
    if call.wants(1) or call.wants(2):
        raise call.fail("the mean and deviation of a norm are not imported")
    return y, None, None, total


@_own("QLinearAdd", "QLinearMul")
def _quantized_binary(call, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero=None):
    left, right = _float(a, a_scale, a_zero), _float(b, b_scale, b_zero)
    y = (ops.add if call.kind.endswith("Add") else ops.mul)(left, right)
    return _quantized(y, y_scale, y_zero, a.dtype)


@_own("QLinearSigmoid", "QLinearLeakyRelu")
def _quantized_unary(call, x, x_scale, x_zero, y_scale, y_zero=None):
    wide = _float(x, x_scale, x_zero)
    if call.kind.endswith("Sigmoid"):
        y = ops.sigmoid(wide)
    else:
        y = ops.where(wide < 0, ops.mul(wide, scalar(call.get("alpha", 0.01), wide)), wide)
    return _quantized(y, y_scale, y_zero, x.dtype)


def _float(x: Any, scale: Any, zero: Any) -> Any:
    wide = cast(x, ms.int32)
    if zero is not None:
        wide = ops.sub(wide, cast(ops.reshape(zero, ()), ms.int32))
    return ops.mul(cast(wide, ms.float32), ops.reshape(scale, ()))


def _quantized(y: Any, scale: Any, zero: Any, dtype: Any) -> Any:
    return rounded(ops.div(y, ops.reshape(scale, ())), None if zero is None else ops.reshape(zero, ()), dtype)


@_own("MatMulIntegerToFloat")
def _integer_product(call, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    y = cast(integer_product(call, a, b, a_zero, b_zero), ms.float32)
    y = ops.mul(y, ops.mul(a_scale, b_scale))
    return y if bias is None else ops.add(y, bias)


@_own("DynamicQuantizeMatMul")
def _dynamic_product(call, a, b, b_scale, b_zero=None, bias=None):
    q, scale, zero = dynamic(a)
    y = cast(integer_product(call, q, b, zero, b_zero), ms.float32)
    y = ops.mul(y, ops.mul(scale, b_scale))
    return y if bias is None else ops.add(y, bias)
