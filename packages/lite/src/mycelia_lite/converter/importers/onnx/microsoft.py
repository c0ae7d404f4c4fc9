"""Operators of the domain com.microsoft, which onnxruntime's tools write into models."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    OPERATORS,
    cast,
    known,
    operator,
    positive_axis,
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
    """Steps of the result, rounded as onnxruntime does: halves are frequent."""
    one = scalar(1.0, a_scale)
    numbers = [
        scalar(0.0, a_scale) if z is None else cast(ops.reshape(z, ()), ms.float32)
        for z in (a_zero, b_zero, y_zero)
    ]
    scales = [ops.reshape(s, ()) for s in (a_scale, b_scale, y_scale)]
    if call.kind.endswith("Mul"):
        product = ops.mul(ops.sub(cast(a, ms.float32), numbers[0]), ops.sub(cast(b, ms.float32), numbers[1]))
        factor = ops.div(ops.mul(scales[0], scales[1]), scales[2])
        return _quantized(ops.add(ops.mul(product, factor), numbers[2]), one, None, a.dtype)
    first, second = (ops.div(s, scales[2]) for s in scales[:2])
    start = ops.sub(numbers[2], _multiplied(first, numbers[0], ops.mul(second, numbers[1])))
    total = _multiplied(cast(a, ms.float32), first, _multiplied(cast(b, ms.float32), second, start))
    return _quantized(total, one, None, a.dtype)


def _multiplied(x: Any, y: Any, z: Any) -> Any:
    """x y + z of float32, rounded once."""
    return cast(ops.add(ops.mul(*(cast(v, ms.float64) for v in (x, y))), cast(z, ms.float64)), ms.float32)


@_own("QLinearSigmoid", "QLinearLeakyRelu")
def _quantized_unary(call, x, x_scale, x_zero, y_scale, y_zero=None):
    wide = _float(x, x_scale, x_zero)
    if call.kind.endswith("Sigmoid"):
        y = ops.sigmoid(wide)
    else:
        y = ops.where(wide < 0, ops.mul(wide, scalar(call.get("alpha", 0.01), wide)), wide)
    return _quantized(y, y_scale, y_zero, x.dtype)


@_own("QGemm")
def _quantized_gemm(call, a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None):
    """alpha (a b + c), c in steps of the product; without a scale of the result numbers."""
    if a.ndim != 2 or b.ndim != 2:
        raise call.misfit(f"a and b must have 2 axes, but have {a.ndim} and {b.ndim}")
    turned = call.get("transA", 0), call.get("transB", 0)
    if turned[1] and len(shape_of(b_zero)) == 1 and shape_of(b_zero) != (1,):
        b = ops.sub(cast(b, ms.int32), ops.expand_dims(cast(b_zero, ms.int32), 1))
        b_zero = None
    a, b = (ops.transpose(v, (1, 0)) if turn else v for v, turn in zip((a, b), turned))
    sums = integer_product(call, a, b, a_zero, b_zero)
    sums = sums if c is None else ops.add(sums, cast(c, ms.int32))
    factor = ops.mul(ops.mul(a_scale, b_scale), scalar(call.get("alpha", 1.0), a_scale))
    if y_scale is None:
        return ops.mul(cast(sums, ms.float32), factor)
    y = ops.mul(cast(sums, ms.float32), ops.div(factor, ops.reshape(y_scale, ())))
    return rounded(y, None if y_zero is None else ops.reshape(y_zero, ()), a.dtype)


@_own("QLinearSoftmax")
def _quantized_softmax(call, x, x_scale, x_zero, y_scale, y_zero=None):
    axis = positive_axis(call, call.get("axis", -1), x.ndim)
    if call.get("opset", 13) < 13 and axis != x.ndim - 1:
        raise call.attribute("opset", "before 13 the softmax is imported along the last axis")
    return _quantized(ops.softmax(_float(x, x_scale, x_zero), axis), y_scale, y_zero, x.dtype)


@_own("QLinearGlobalAveragePool", "QLinearAveragePool")
def _quantized_mean(call, x, x_scale, x_zero, y_scale, y_zero=None):
    if call.get("channels_last", 0):
        raise call.attribute("channels_last", "channels behind the batch are imported")
    mean = OPERATORS[call.kind.rpartition(".")[2].removeprefix("QLinear")].function
    return _quantized(mean(call, _float(x, x_scale, x_zero)), y_scale, y_zero, x.dtype)


@_own("QLinearConcat")
def _quantized_concat(call, y_scale, y_zero, *parts):
    if not parts or len(parts) % 3:
        raise call.fail(f"{len(parts)} inputs, three for each part are needed")
    wide = [_float(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    axis = positive_axis(call, call.need("axis"), wide[0].ndim)
    return _quantized(ops.concat(wide, axis), y_scale, y_zero, y_zero.dtype)


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
