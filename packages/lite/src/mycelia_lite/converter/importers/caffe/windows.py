"""Caffe's convolutions, pools and resizes of images [N, C, H, W]."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.caffe.calls import Call, layer
from mycelia_lite.converter.importers.onnx.calls import along, known_shape, shape_of

_conv_op, _conv_input_grad, _max_pool_op, _avg_pool_op = map(
    find, ("conv", "conv_input_grad", "max_pool", "avg_pool")
)


def _pair(call: Call, block: str, name: str, height: str, width: str, default: int) -> tuple[int, int]:
    """A parameter for both directions, one for each in a list, or one for each by name."""
    if call.has(block, height) or call.has(block, width):
        if call.has(block, name):
            raise call.fail(f"both '{name}' and '{height}' or '{width}'", Code.INVALID_OP_ATTR)
        return call.get(block, height), call.get(block, width)
    given = call.get(block, name)
    if not isinstance(given, list):
        return (given, given) if given or call.has(block, name) else (default, default)
    if len(given) > 2:
        raise call.parameter(name, given, "2 spatial dimensions are imported")
    return (given[0], given[-1]) if given else (default, default)


def _images(call: Call, x: Any) -> tuple:
    if len(shape_of(x)) != 4:
        raise call.fail(f"an input of {len(shape_of(x))} axes, 4 are needed")
    return known_shape(call, x, (1, 2, 3))


def _convolution(call: Call, x: Any) -> tuple[Any, Any, dict[str, Any]]:
    """(weights, bias or None, attributes)."""
    block = "convolution_param"
    _images(call, x)
    if call.get(block, "axis") != 1:
        raise call.parameter("axis", call.get(block, "axis"), "only 1 is imported")
    strides = _pair(call, block, "stride", "stride_h", "stride_w", 1)
    pads = _pair(call, block, "pad", "pad_h", "pad_w", 0)
    dilations = call.get(block, "dilation") or [1]
    if len(dilations) > 2:
        raise call.parameter("dilation", dilations, "2 spatial dimensions are imported")
    dilations = (dilations[0], dilations[-1])
    kernel = _pair(call, block, "kernel_size", "kernel_h", "kernel_w", 0)
    if min(*strides, *dilations, *kernel) < 1:
        raise call.fail(f"kernel {kernel}, strides {strides}, dilations {dilations}", Code.INVALID_OP_ATTR)
    biased = call.get(block, "bias_term")
    weight, *bias = call.weights(1 + biased)
    if len(shape_of(weight)) != 4 or shape_of(weight)[2:] != kernel:
        raise call.fail(
            f"weights of shape {list(shape_of(weight))} for a kernel {list(kernel)}", Code.GRAPH_FILE_ERROR
        )
    how = dict(stride=strides, pad=(*pads, *pads), dilation=dilations, group=call.get(block, "group"))
    return weight, ops.reshape(bias[0], (-1,)) if bias else None, how


@layer("Convolution", "DepthwiseConv", "ConvolutionDepthwise", "DepthwiseConvolution")
def _conv(call, x):
    """Weights [O, I / group, h, w]; of a depthwise layer each channel is a group, whatever the text says."""
    weight, bias, how = _convolution(call, x)
    if call.kind != "Convolution":
        how["group"] = shape_of(x)[1]
    outputs = call.get("convolution_param", "num_output")
    if shape_of(weight)[0] != outputs:
        raise call.fail(
            f"weights of shape {list(shape_of(weight))} for {outputs} outputs", Code.GRAPH_FILE_ERROR
        )
    return _conv_op(x, weight, bias, **how)


@layer("Deconvolution")
def _deconv(call, x):
    """Weights [I, O / group, h, w]."""
    weight, bias, how = _convolution(call, x)
    outputs = call.get("convolution_param", "num_output")
    inputs, per_group, *kernel = shape_of(weight)
    if per_group * how["group"] != outputs or inputs != shape_of(x)[1]:
        raise call.fail(
            f"weights of shape {list(shape_of(weight))} for {outputs} outputs", Code.GRAPH_FILE_ERROR
        )
    size = tuple(
        (n - 1) * s + (k - 1) * d + 1 - 2 * p
        for n, s, k, d, p in zip(shape_of(x)[2:], how["stride"], kernel, how["dilation"], how["pad"])
    )
    if min(size) < 1:
        raise call.fail(f"a result of {list(size)} pixels")
    y = _conv_input_grad(x, weight, size=size, **how)
    return y if bias is None else ops.add(y, along(bias, 1, 4))


@layer("Pooling")
def _pooling(call, x):
    """A last window that is not full counts, unless it begins behind the image; means count the padding."""
    block = "pooling_param"
    shape = _images(call, x)
    method = call.choice(block, "pool")
    if method == "STOCHASTIC":
        raise call.parameter("pool", method, "which depends on chance")
    if call.get(block, "global_pooling"):
        return ops.amax(x, (2, 3), True) if method == "MAX" else ops.mean(x, (2, 3), True)
    kernel = _pair(call, block, "kernel_size", "kernel_h", "kernel_w", 0)
    strides = _pair(call, block, "stride", "stride_h", "stride_w", 1)
    pads = _pair(call, block, "pad", "pad_h", "pad_w", 0)
    ceil = call.choice(block, "round_mode") == "CEIL"
    if min(*kernel, *strides) < 1 or any(p >= k for p, k in zip(pads, kernel)):
        raise call.fail(f"kernel {kernel}, strides {strides}, padding {pads}", Code.INVALID_OP_ATTR)
    rows = []
    for n, k, s, p in zip(shape[2:], kernel, strides, pads):
        free = n + 2 * p - k
        if free < 0:
            raise call.fail(f"windows of {k} on {n} pixels with a padding of {p}")
        count = (-(-free // s) if ceil else free // s) + 1
        if p and (count - 1) * s >= n + p:
            count -= 1
        if (count - 1) * s >= n + p:
            raise call.fail(f"windows of {k} with a stride of {s}, of which one lies behind {n} pixels")
        rows.append((p, (count - 1) * s + k - n - p, p))
    if method == "MAX":
        ends = [max(end, 0) for _, end, _ in rows]
        return _max_pool_op(x, kernel, strides, (*pads, *ends), (1, 1), False)
    # Windows end with the padding: what goes beyond is no part of a mean.
    inside = [min(max(end, 0), p) for _, end, p in rows]
    if any(pads) or any(inside):
        x = ops.pad(x, [pads[1], inside[1], pads[0], inside[0]])
    more = any(end > p for _, end, p in rows)
    return _avg_pool_op(x, kernel, strides, (0, 0, 0, 0), more, False)


@layer("Interp")
def _interp(call, x):
    """Bilinear, with corners on corners."""
    block = "interp_param"
    if call.get(block, "pad_beg") or call.get(block, "pad_end"):
        raise call.fail("padding ('pad_beg', 'pad_end')", Code.INVALID_OP_ATTR)
    height, width = call.get(block, "height"), call.get(block, "width")
    zoom, shrink = call.get(block, "zoom_factor"), call.get(block, "shrink_factor")
    if zoom < 1 or shrink < 1:
        raise call.fail(f"zoom_factor {zoom}, shrink_factor {shrink}", Code.INVALID_OP_ATTR)
    sizes = _images(call, x)[2:]
    if call.has(block, "height") and call.has(block, "width"):
        if call.has(block, "zoom_factor") or call.has(block, "shrink_factor"):
            raise call.fail("both a size and a factor", Code.INVALID_OP_ATTR)
        wanted = [height, width]
    else:
        wanted = [(n - 1) // shrink + 1 for n in sizes]
        wanted = [n + (n - 1) * (zoom - 1) for n in wanted]
    if min(wanted) < 1 or max(wanted) > 1 << 16:
        raise call.fail(f"a result of {wanted} pixels", Code.INVALID_OP_ATTR)
    for axis, (n, out) in enumerate(zip(sizes, wanted), 2):
        if n != out:
            x = _mixed(x, axis, n, out)
    return x


def _mixed(x: Any, axis: int, n: int, out: int) -> Any:
    places = np.arange(out) * ((n - 1) / (out - 1) if out > 1 else 0.0)
    matrix = np.clip(1 - np.abs(places[:, None] - np.arange(n)), 0, None).astype(np.float32)
    if axis == 3:
        return ops.matmul(x, ms.Tensor(np.ascontiguousarray(matrix.T)))
    return ops.matmul(ms.Tensor(matrix), x)


@layer("Upsample")
def _upsample(call, x):
    """Each pixel as often as the scale says."""
    block = "upsample_param"
    height, width = _pair(call, block, "scale", "scale_h", "scale_w", 2)
    for name in ("pad_out_h", "pad_out_w", "upsample_h", "upsample_w"):
        if call.get(block, name):
            raise call.parameter(name, call.get(block, name), "which is not imported")
    if min(height, width) < 1 or max(height, width) > 1 << 10:
        raise call.fail(f"scales {height} and {width}", Code.INVALID_OP_ATTR)
    _, _, h, w = _images(call, x)
    return ops.interpolate(x, (h * height, w * width), mode="nearest")
