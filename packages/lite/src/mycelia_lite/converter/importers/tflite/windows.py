"""Convolutions and pools of TensorFlow Lite, with the channels last and two spatial dimensions."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.nodes import NodeCall
from mycelia_lite.converter.importers.onnx.calls import is_number, known_shape, need_known, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, activated, operator, to_first, to_last
from mycelia_lite.converter.importers.tflite.quantized import averaged, finished, is_quantized

_conv_op, _conv_input_grad, _max_pool_op, _avg_pool_op = map(
    find, ("conv", "conv_input_grad", "max_pool", "avg_pool")
)


def _images(call: Call, *values: Any) -> None:
    for value in values:
        if len(shape_of(value)) != 4:
            raise call.fail(f"a tensor of {len(shape_of(value))} axes, 4 are needed")


def positive(call: Call, table: str, *names: str) -> tuple[int, ...]:
    values = tuple(call.get(table, name) for name in names)
    for name, value in zip(names, values):
        if value < 1:
            raise call.option(name, value, "must be at least 1")
    return values


def _pads(call: Call, table: str, x: Any, spans: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Begins, then ends. Of SAME padding the end has one more where it does not divide."""
    padding = call.name_of(table, "padding")
    if padding == "VALID":
        return (0, 0, 0, 0)
    return same_pads(call, shape_of(x)[1:3], spans, strides)


def same_pads(
    call: NodeCall, sizes: Sequence[Any], spans: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """SAME padding of images of these sizes, begins, then ends."""
    call.same = True
    begin, end = [], []
    for n, span, stride in zip(sizes, spans, strides):
        if stride == 1:
            total = span - 1
        elif not is_number(n):
            raise call.fail("SAME padding of an open size with a stride: give inputShape")
        else:
            total = max((-(-n // stride) - 1) * stride + span - n, 0)
        begin.append(total // 2)
        end.append(total - total // 2)
    return (*begin, *end)


def _places(call: Call, table: str, x: Any, kernel: Sequence[int]) -> dict[str, Any]:
    """Strides, dilations and pads of a convolution."""
    strides = positive(call, table, "stride_h", "stride_w")
    dilations = positive(call, table, "dilation_h_factor", "dilation_w_factor")
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    call.get(table, "quantized_bias_type") if table == "Conv2DOptions" else None
    return dict(stride=strides, pad=_pads(call, table, x, spans, strides), dilation=dilations)


def _convolved(call: Call, table: str, x: Any, weight: Any, bias: Any, group: int) -> Any:
    """`weight` [O, I / group, h, w]."""
    places = _places(call, table, x, known_shape(call, weight)[2:])
    return finished(call, table, to_last(_conv_op(to_first(x), weight, bias, group=group, **places)))


@operator("CONV_2D")
def _conv(call, x, weight, bias=None):
    """Weights are [O, h, w, I / group]."""
    _images(call, x, weight)
    channels, per_group = shape_of(x)[3], shape_of(weight)[3]
    if not is_number(channels) or not per_group or channels % per_group:
        raise call.fail(f"weights for {per_group} channels, but the images have {channels}")
    if call.exact is not None:
        return call.exact(
            x, weight, bias, **_places(call, "Conv2DOptions", x, known_shape(call, weight)[1:3])
        )
    turned = ops.transpose(weight, (0, 3, 1, 2))
    return _convolved(call, "Conv2DOptions", x, turned, bias, channels // per_group)


@operator("DEPTHWISE_CONV_2D")
def _depthwise(call, x, weight, bias=None):
    """Weights are [1, h, w, I * multiplier]; the option depth_multiplier follows from them."""
    _images(call, x, weight)
    call.get("DepthwiseConv2DOptions", "depth_multiplier")
    channels, (one, _, _, outputs) = shape_of(x)[3], shape_of(weight)
    if one != 1 or not is_number(channels) or not channels or outputs % channels:
        raise call.fail(f"weights {list(shape_of(weight))} for {channels} channels")
    turned = ops.transpose(weight, (3, 0, 1, 2))
    return _convolved(call, "DepthwiseConv2DOptions", x, turned, bias, channels)


@operator("TRANSPOSE_CONV", sizes=(0,))
def _transpose_conv(call, size, weight, x, bias=None):
    """Weights are [O, h, w, I]; the sizes of the result are an input."""
    table = "TransposeConvOptions"
    _images(call, x, weight)
    strides = positive(call, table, "stride_h", "stride_w")
    call.get(table, "quantized_bias_type")
    wanted = need_known(call, size, "output_shape").reshape(-1).tolist()
    if len(wanted) != 4 or wanted[3] != shape_of(weight)[0] or min(wanted) < 1:
        raise call.fail(f"a result of shape {wanted} of weights {list(shape_of(weight))}")
    same = call.name_of(table, "padding") == "SAME"
    y = _transposed(call, x, weight, wanted[1:3], strides, same)
    return finished(call, table, y if bias is None else ops.add(y, bias))


def _transposed(
    call: Call, x: Any, weight: Any, size: Sequence[int], strides: Sequence[int], same: bool
) -> Any:
    sizes, kernel = known_shape(call, x, (1, 2, 3))[1:3], known_shape(call, weight)[1:3]
    if known_shape(call, x, (3,))[3] != known_shape(call, weight)[3]:
        raise call.fail(f"weights {list(shape_of(weight))} for images {list(shape_of(x))}")
    turned = ops.transpose(weight, (3, 0, 1, 2))
    y = _conv_input_grad(
        to_first(x), turned, size=tuple(size), stride=tuple(strides),
        pad=transposed_pads(call, sizes, kernel, strides, size, same), dilation=(1, 1), group=1,
    )  # fmt: skip
    return to_last(y)


def transposed_pads(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], size: Sequence[int],
    same: bool,
) -> tuple[int, ...]:  # fmt: skip
    """The pads, begins, then ends, of a transposed convolution of `sizes` positions that makes `size`."""
    begin, end = [], []
    for n, k, stride, out in zip(sizes, kernel, strides, size):
        covered = (n - 1) * stride + k
        least = -(-out // stride) if same else -(-(out - k + 1) // stride)
        if least != n:
            raise call.fail(f"a result of {out} positions, which {n} windows do not make")
        begin.append(max(covered - out, 0) // 2 if same else 0)
        end.append(max(covered - out - begin[-1], 0))
    return (*begin, *end)


@operator("CUSTOM.Convolution2DTransposeBias")
def _transpose_conv_of_mediapipe(call, x, weight, bias):
    """Its options are a struct of C: padding (1 SAME, 2 VALID), width and height of the stride."""
    _images(call, x, weight)
    if len(call.custom) < 12:
        raise call.fail("its options are too short", Code.INVALID_OP_ATTR)
    padding, width, height = struct.unpack_from("<iii", call.custom)
    if padding not in (1, 2) or min(width, height) < 1:
        raise call.fail(f"padding {padding}, strides {height} and {width}", Code.INVALID_OP_ATTR)
    sizes, kernel = known_shape(call, x, (1, 2))[1:3], shape_of(weight)[1:3]
    size = [n * s if padding == 1 else (n - 1) * s + k for n, s, k in zip(sizes, (height, width), kernel)]
    return ops.add(_transposed(call, x, weight, size, (height, width), padding == 1), bias)


def _window(call: Call, x: Any) -> dict[str, Any]:
    table = "Pool2DOptions"
    _images(call, x)
    kernel = positive(call, table, "filter_height", "filter_width")
    strides = positive(call, table, "stride_h", "stride_w")
    pads = _pads(call, table, x, kernel, strides)
    return dict(kernel=kernel, stride=strides, pad=pads, ceil=False)


@operator("MAX_POOL_2D")
def _max_pool(call, x):
    y = to_last(_max_pool_op(to_first(x), **_window(call, x), dilation=(1, 1)))
    return activated(call, "Pool2DOptions", y)


@operator("AVERAGE_POOL_2D", raw=True)
def _average_pool(call, x):
    """Means leave the padding out."""

    def mean(x: Any) -> Any:
        return to_last(_avg_pool_op(to_first(x), **_window(call, x), count_include_pad=False))

    if is_quantized(call.inputs[0]):
        return averaged(call, "Pool2DOptions", x, mean)
    return activated(call, "Pool2DOptions", mean(x))


@operator("L2_POOL_2D")
def _l2_pool(call, x):
    y = _avg_pool_op(to_first(ops.square(x)), **_window(call, x), count_include_pad=False)
    return activated(call, "Pool2DOptions", ops.sqrt(to_last(y)))
