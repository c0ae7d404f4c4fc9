"""Operators of TensorFlow for images and layers, and those that TensorFlow Lite has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import (
    along,
    integers,
    is_number,
    known,
    known_shape,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.tensorflow.calls import Call, channels_first, operator, spatial
from mycelia_lite.converter.importers.tflite.calls import to_first, to_last
from mycelia_lite.converter.importers.tflite.windows import same_pads

_conv_op, _conv_input_grad, _max_pool_op, _avg_pool_op = map(
    find, ("conv", "conv_input_grad", "max_pool", "avg_pool")
)


@operator("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault", sizes=(0,))
def _identity(call, x):
    """A placeholder with a default stands for its default."""
    call.get("shape")
    return x


@operator("CheckNumerics")
def _check_numerics(call, x):
    return x


@operator("IdentityN", sizes=range(1 << 10))
def _identities(call, *values):
    return values


# ---- convolutions and pools


def _pads(
    call: Call, x: Any, first: bool, spans: Sequence[int], strides: Sequence[int]
) -> tuple[int, int, int, int]:
    """Begins, then ends, of rows and columns."""
    padding = call.choice("padding", "", "SAME", "VALID", "EXPLICIT")
    given = call.get("explicit_paddings", [])
    if padding == "SAME":
        sizes = shape_of(x)[2:] if first else shape_of(x)[1:3]
        return same_pads(call, sizes, spans, strides)
    if padding == "VALID":
        return (0, 0, 0, 0)
    rows = [tuple(given[i : i + 2]) for i in range(0, len(given), 2)]
    inner = rows[2:] if first else rows[1:3]
    if len(given) != 8 or any(map(any, (rows[0], rows[1 if first else 3]))) or min(given) < 0:
        raise call.option("explicit_paddings", given, "must pad rows and columns only")
    return (inner[0][0], inner[1][0], inner[0][1], inner[1][1])


def _convolved(call: Call, x: Any, weight: Any, group: int) -> Any:
    """`weight` [O, I / group, h, w]."""
    first = channels_first(call, x)
    strides = spatial(call.need("strides", list), first, call, "strides")
    dilations = spatial(call.get("dilations", [1, 1, 1, 1]) or [1, 1, 1, 1], first, call, "dilations")
    spans = [(k - 1) * d + 1 for k, d in zip(known_shape(call, weight)[2:], dilations)]
    pads = _pads(call, x, first, spans, strides)
    y = _conv_op(
        x if first else to_first(x), weight, None, stride=strides, pad=pads, dilation=dilations, group=group
    )
    return y if first else to_last(y)


def _channels(call: Call, x: Any) -> int:
    axis = 1 if channels_first(call, x) else 3
    return known_shape(call, x, (axis,))[axis]


@operator("Conv2D")
def _conv(call, x, weight):
    """Weights are [h, w, I / group, O]."""
    channels, (_, _, per_group, _) = _channels(call, x), known_shape(call, weight)
    if not per_group or channels % per_group:
        raise call.fail(f"weights for {per_group} channels, but the images have {channels}")
    return _convolved(call, x, ops.transpose(weight, (3, 2, 0, 1)), channels // per_group)


@operator("DepthwiseConv2dNative")
def _depthwise(call, x, weight):
    """Weights are [h, w, I, multiplier]."""
    channels, (height, width, inputs, times) = _channels(call, x), known_shape(call, weight)
    if channels != inputs:
        raise call.fail(f"weights for {inputs} channels, but the images have {channels}")
    turned = ops.reshape(ops.transpose(weight, (2, 3, 0, 1)), (inputs * times, 1, height, width))
    return _convolved(call, x, turned, channels)


@operator("Conv2DBackpropInput", sizes=(0,))
def _conv_input(call, size, weight, y):
    """The transposed convolution: weights are [h, w, O, I], the sizes of the result an input."""
    first = channels_first(call, y)
    wanted = integers(call, size, "input_sizes")
    strides = spatial(call.need("strides", list), first, call, "strides")
    dilations = spatial(call.get("dilations", [1, 1, 1, 1]) or [1, 1, 1, 1], first, call, "dilations")
    height, width, outputs, inputs = known_shape(call, weight)
    sizes, axis = (wanted[2:], 1) if first else (wanted[1:3], 3)
    if len(wanted) not in (2, 4) or len(wanted) == 4 and wanted[axis] != outputs:
        raise call.fail(f"a result of shape {wanted} of weights {[height, width, outputs, inputs]}")
    sizes = wanted if len(wanted) == 2 else sizes
    if not all(map(is_number, sizes)):
        raise call.fail("a result of open size: give inputShape")
    spans = [(k - 1) * d + 1 for k, d in zip((height, width), dilations)]
    same = call.choice("padding", "", "SAME", "VALID") == "SAME"
    call.get("explicit_paddings", [])
    begin, end = [], []
    given = shape_of(y)[2:] if first else shape_of(y)[1:3]
    for n, span, stride, out in zip(given, spans, strides, sizes):
        least = -(-out // stride) if same else -(-(out - span + 1) // stride)
        if not is_number(n) or least != n:
            raise call.fail(f"a result of {out} positions, which {n} windows do not make")
        covered = (n - 1) * stride + span
        begin.append(max(covered - out, 0) // 2 if same else 0)
        end.append(max(covered - out - begin[-1], 0))
    if known_shape(call, y, (axis,))[axis] != inputs:
        raise call.fail(f"weights for {inputs} channels, but the images have {shape_of(y)[axis]}")
    x = _conv_input_grad(
        y if first else to_first(y), ops.transpose(weight, (3, 2, 0, 1)), size=tuple(sizes), stride=strides,
        pad=(*begin, *end), dilation=dilations, group=1,
    )  # fmt: skip
    return x if first else to_last(x)


def _pooled(call: Call, op: Any, x: Any, **more: Any) -> Any:
    first = channels_first(call, x)
    kernel, strides = (spatial(call.need(name, list), first, call, name) for name in ("ksize", "strides"))
    pads = _pads(call, x, first, kernel, strides)
    y = op(x if first else to_first(x), kernel=kernel, stride=strides, pad=pads, ceil=False, **more)
    return y if first else to_last(y)


@operator("MaxPool")
def _max_pool(call, x):
    return _pooled(call, _max_pool_op, x, dilation=(1, 1))


@operator("AvgPool")
def _avg_pool(call, x):
    """Means leave the padding out."""
    return _pooled(call, _avg_pool_op, x, count_include_pad=False)


# ---- layers


@operator("BiasAdd")
def _bias_add(call, x, bias):
    first = call.choice("data_format", "NHWC", "NHWC", "NCHW") == "NCHW"
    rank = len(shape_of(x))
    return ops.add(x, along(bias, 1, rank) if first and rank > 2 else bias)


@operator("BiasAddV1")
def _old_bias_add(call, x, bias):
    return ops.add(x, bias)


@operator("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(call, x, scale, offset, mean, variance):
    """Only the first result: the others are for training."""
    if call.get("is_training", True):
        raise call.option("is_training", True, "only inference is imported")
    call.get("exponential_avg_factor")
    epsilon, first = call.get("epsilon", 1e-4), channels_first(call, x)
    y = ops.batch_norm(x if first else to_first(x), mean, variance, scale, offset, False, 0.1, float(epsilon))
    return (y if first else to_last(y), *[None] * (5 if call.kind == "FusedBatchNormV3" else 4))


@operator("MatMul")
def _matmul(call, a, b):
    if len(shape_of(a)) != 2 or len(shape_of(b)) != 2:
        raise call.fail(f"a product of {list(shape_of(a))} and {list(shape_of(b))}")
    a = ops.transpose(a, (1, 0)) if call.get("transpose_a", False) else a
    turned = call.get("transpose_b", False)
    if known(b) is not None:
        return ops.dense(a, b if turned else ops.transpose(b, (1, 0)), None)
    return ops.matmul(a, ops.transpose(b, (1, 0)) if turned else b)


@operator("Einsum")
def _einsum(call, *operands):
    return ops.einsum(call.need("equation", str), *operands)


# ---- elementwise


_ELEMENTWISE = {
    "Softplus": ops.softplus, "Softsign": ops.softsign, "Selu": ops.selu, "Erf": ops.erf,
    "Reciprocal": ops.reciprocal, "Inv": ops.reciprocal, "Log1p": ops.log1p, "Expm1": ops.expm1,
    "IsNan": ops.isnan, "IsInf": ops.isinf, "IsFinite": ops.isfinite, "Tan": ops.tan, "Asin": ops.asin,
    "Acos": ops.acos, "Atan": ops.atan, "Sinh": ops.sinh, "Cosh": ops.cosh, "Asinh": ops.asinh,
    "Acosh": ops.acosh, "Atanh": ops.atanh,
}  # fmt: skip


def _elementwise(name: str, op: Any) -> None:
    operator(name)(lambda call, x: op(x))


for _name, _op in _ELEMENTWISE.items():
    _elementwise(_name, _op)


_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277,
)  # fmt: skip


@operator("Erfc")
def _erfc(call, x):
    """Right to 1.2e-7 of itself everywhere: Chebyshev's approximation of Numerical Recipes, 6.2."""
    size = ops.abs(x)
    t = ops.reciprocal(ops.add(ops.mul(size, scalar(0.5, x)), scalar(1, x)))
    power = scalar(_ERFC[-1], x)
    for factor in reversed(_ERFC[:-1]):
        power = ops.add(ops.mul(power, t), scalar(factor, x))
    tail = ops.mul(t, ops.exp(ops.sub(power, ops.square(x))))
    return ops.where(ops.less(x, scalar(0, x)), ops.sub(scalar(2, x), tail), tail)


@operator("DivNoNan")
def _div_no_nan(call, a, b):
    """0 where b is 0."""
    zero = ops.equal(b, scalar(0, b))
    return ops.where(zero, scalar(0, a), ops.div(a, ops.where(zero, scalar(1, b), b)))


@operator("OnesLike")
def _ones_like(call, x):
    return ops.ones_like(x)


@operator("ClipByValue")
def _clip(call, x, low, high):
    return ops.minimum(ops.maximum(x, low), high)


@operator("L2Loss")
def _l2_loss(call, x):
    return ops.mul(ops.sum(ops.square(x)), scalar(0.5, x))
