"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine import ops
from mycelia.engine.ops.nn_ops.average_pool import _avg_pool
from mycelia.engine.ops.nn_ops.conv import _conv, _conv_input_grad
from mycelia.engine.ops.nn_ops.conv_geometry import same_pads
from mycelia.engine.ops.nn_ops.pool import _max_pool
from mycelia.io.mindir.operators.arguments import (
    channels_first,
    image_sizes,
    ints,
    is_channels_last,
    one_axis,
    pad_mode_text,
)
from mycelia.io.mindir.operators.table import operator


def _convolution(x, w, rank, stride, pad, dilation, group, pad_mode, data_format):
    kernel, mode = w.shape[2:], pad_mode_text(pad_mode)
    strides, dilations = image_sizes(stride, rank), image_sizes(dilation, rank)

    def apply(data):
        pads = _explicit_pads(mode, pad, data.shape[2:], kernel, strides, dilations)
        return _conv(data, w, stride=strides, pad=pads, dilation=dilations, group=group)

    return channels_first(apply, x, data_format)


def _explicit_pads(
    mode: str, pad: Any, size: Sequence, kernel: Sequence, stride: Sequence, dilation: Sequence
) -> tuple:
    """All begins, then all ends. `pad`: one number, one a dimension, or begin and end of each."""
    if mode == "same":
        return same_pads(size, kernel, stride, dilation)
    rank = len(kernel)
    if mode != "pad":
        return (0,) * (2 * rank)
    pads = ints(pad)
    if len(pads) <= rank:
        return image_sizes(pads, rank) * 2
    return pads[0::2] + pads[1::2]


@operator
def Conv2D(x, w, *, stride=1, dilation=1, pad=0, pad_mode="valid", group=1, data_format="NCHW"):
    if is_channels_last(data_format):
        w = ops.transpose(w, (0, 3, 1, 2))
    return _convolution(x, w, 2, stride, pad, dilation, group, pad_mode, data_format)


@operator
def DepthwiseConv2dNative(x, w, *, stride=1, dilation=1, pad=0, pad_mode="valid", data_format="NCHW"):
    w = ops.reshape(ops.swapaxes(w, 0, 1), (-1, 1, *w.shape[2:]))
    return _convolution(x, w, 2, stride, pad, dilation, x.shape[1], pad_mode, data_format)


@operator
def Conv3D(x, w, *, strides=1, dilations=1, pad=0, pad_mode="valid", group=1, data_format="NCDHW"):
    return _convolution(x, w, 3, strides, pad, dilations, group, pad_mode, data_format)


def _convolution_with_bias(name: str, function: str, rank: int, padding_mode: bool) -> None:
    def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        mode, pads = (pad_mode_text(padding), 0) if padding_mode else ("pad", image_sizes(padding, rank))
        arguments = (image_sizes(stride, rank), mode, pads, image_sizes(dilation, rank), groups)
        return getattr(ops, function)(x, weight, bias, *arguments)

    operator(convolution, name)


for _rank in (1, 2, 3):
    _convolution_with_bias(f"Conv{_rank}DExt", f"conv{_rank}d", _rank, False)
    _convolution_with_bias(f"Conv{_rank}DPadding", f"conv{_rank}d", _rank, True)


@operator
def Conv2DTranspose(dy, w, input_sizes=None, *, stride=1, dilation=1, pad_list=0, pad_mode="valid", group=1):
    """The gradient of a convolution in its input: what `nn.Conv2dTranspose` computes."""
    strides, dilations, kernel = image_sizes(stride), image_sizes(dilation), w.shape[2:]
    mode = pad_mode_text(pad_mode)
    spans = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(dy.shape[2:], strides, kernel, dilations)]
    if input_sizes is not None:
        size = ints(input_sizes)[-2:]
    elif mode == "same":
        size = tuple(n * s for n, s in zip(dy.shape[2:], strides))
    else:
        pads = _explicit_pads(mode, pad_list, (), kernel, strides, dilations)
        size = tuple(span - b - e for span, b, e in zip(spans, pads[:2], pads[2:]))
    pads = _explicit_pads(mode, pad_list, size, kernel, strides, dilations)
    return _conv_input_grad(dy, w, size=size, stride=strides, pad=pads, dilation=dilations, group=group)


operator(Conv2DTranspose, "Conv2DBackpropInput")


@operator
def ConvTranspose2D(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    two = image_sizes
    return ops.conv_transpose2d(
        x, w, bias, two(stride), two(padding), two(output_padding), groups, two(dilation)
    )


def _pool(function, rank, x, kernel_size, strides, pad_mode, data_format, pad=0, **options):
    kernel, steps, mode = image_sizes(kernel_size, rank), image_sizes(strides, rank), pad_mode_text(pad_mode)

    def apply(data):
        pads = _explicit_pads(mode, pad, data.shape[2:], kernel, steps, (1,) * rank)
        return function(data, kernel=kernel, stride=steps, pad=pads, **options)

    return channels_first(apply, x, data_format)


@operator
def MaxPool(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    return _pool(_max_pool, 2, x, kernel_size, strides, pad_mode, data_format)


@operator
def AvgPool(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    return _pool(_avg_pool, 2, x, kernel_size, strides, pad_mode, data_format, count_include_pad=False)


@operator
def MaxPool3D(
    x, *, kernel_size=1, strides=1, pad_mode="valid", pad_list=0, ceil_mode=None, data_format="NCDHW"
):
    options = dict(pad=pad_list, ceil=bool(ceil_mode))
    return _pool(_max_pool, 3, x, kernel_size, strides, pad_mode, data_format, **options)


@operator
def AvgPool3D(
    x, *, kernel_size=1, strides=1, pad_mode="valid", pad_list=0, ceil_mode=False, count_include_pad=True,
    divisor_override=0, data_format="NCDHW",
):  # fmt: skip
    include = bool(count_include_pad) and pad_mode_text(pad_mode) == "pad"  # 'same' counts the real elements
    options = dict(pad=pad_list, ceil=bool(ceil_mode), count_include_pad=include, divisor=divisor_override)
    return _pool(_avg_pool, 3, x, kernel_size, strides, pad_mode, data_format, **options)


@operator
def MaxPool3DWithArgmax(x, *, kernel_size, strides, pads=0, dilation=1, ceil_mode=False):
    sizes = (image_sizes(a, 3) for a in (kernel_size, strides, pads, dilation))
    return ops.max_pool3d(x, *sizes, ceil_mode=bool(ceil_mode), return_indices=True)


@operator
def MaxPoolWithMask(x, *, kernel_size, strides=None, pads=0, dilation=1, ceil_mode=False, argmax_type=None):
    steps = kernel_size if strides is None else strides
    sizes = (image_sizes(a) for a in (kernel_size, steps, pads, dilation))
    return ops.max_pool2d(x, *sizes, return_indices=True, ceil_mode=bool(ceil_mode))


operator(MaxPoolWithMask, "MaxPoolWithIndices")
operator(MaxPoolWithMask, "MaxPoolWithArgmaxV2")


@operator
def AvgPool2D(
    x, kernel_size, stride, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    size = image_sizes(kernel_size), image_sizes(stride), image_sizes(padding)
    return ops.avg_pool2d(x, *size, ceil_mode, count_include_pad, divisor_override or 0)


@operator
def AdaptiveAvgPool2D(x, *, output_size):
    return ops.adaptive_avg_pool2d(x, output_size)


operator(lambda x, output_size: ops.adaptive_avg_pool2d(x, output_size), "AdaptiveAvgPool2DExt")
operator(lambda x, output_size: ops.adaptive_avg_pool1d(x, one_axis(output_size)), "AdaptiveAvgPool1D")
operator(lambda x, *, output_size: ops.adaptive_avg_pool3d(x, output_size), "AdaptiveAvgPool3D")


@operator
def AdaptiveMaxPool2D(x, *, output_size):
    return ops.adaptive_max_pool2d(x, output_size, True)
