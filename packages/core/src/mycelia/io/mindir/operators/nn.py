"""Activations, convolutions, pooling, normalization, recurrent layers, losses, images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine import ops
from mycelia.engine.ops.nn_ops.average_pool import _avg_pool
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_infer, _batch_norm_train
from mycelia.engine.ops.nn_ops.conv import _conv, _conv_input_grad
from mycelia.engine.ops.nn_ops.conv_geometry import same_pads
from mycelia.engine.ops.nn_ops.cross_entropy import _softmax_cross_entropy
from mycelia.engine.ops.nn_ops.lrn import _l2_normalize
from mycelia.engine.ops.nn_ops.norm import _layer_norm
from mycelia.engine.ops.nn_ops.pool import _max_pool
from mycelia.engine.ops.nn_ops.rnn import _lstm_layer
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.operators.arguments import (
    REDUCTIONS,
    as_dtype,
    channels_first,
    image_sizes,
    ints,
    is_channels_last,
    one_axis,
    pad_mode_text,
    text,
)
from mycelia.io.mindir.operators.table import operator

# ---- activations -------------------------------------------------------------------------------


@operator
def GeLU(x):
    return ops.gelu(x, approximate="tanh")


@operator
def GeluExt(x, approximate=0):
    return ops.gelu(x, approximate=text(approximate, ("none", "tanh")))


@operator
def Softmax(x, *, axis=-1):
    axes = ints(axis)
    if len(axes) == 1:
        return ops.softmax(x, axes[0])
    e = ops.exp(x - ops.amax(x, axes, True))
    return e / ops.sum(e, axes, True)


@operator
def LogSoftmaxExt(x, dim=None, dtype=None):
    if dtype is not None:
        x = ops.cast(x, as_dtype(dtype))
    return ops.log_softmax(x, -1 if dim is None else dim)


@operator
def Elu(x, *, alpha=1.0):
    return ops.elu(x, alpha)


operator(Elu, "EluExt")


@operator
def LeakyReLU(x, *, negative_slope=0.01):
    return ops.leaky_relu(x, alpha=negative_slope)


operator(LeakyReLU, "LeakyReLUExt")


@operator
def Softplus(x):
    return ops.softplus(x)


@operator
def SoftplusExt(x, beta=1, threshold=20):
    return ops.softplus(x, beta, threshold)


@operator
def Hardtanh(x, min_val=-1, max_val=1):
    return ops.hardtanh(x, min_val, max_val)


@operator
def Threshold(x, threshold, value):
    return ops.threshold(x, thr=threshold, value=value)


@operator
def LogSigmoid(x):
    y = ops.logsigmoid(x)
    return y, y  # the second is a buffer for the gradient


@operator
def Dropout(x, *, keep_prob=0.5, Seed0=0, Seed1=0):
    y = ops.dropout(x, p=1 - keep_prob, training=True)
    return y, ops.cast(ops.not_equal(y, 0), x.dtype)


# ---- convolutions ------------------------------------------------------------------------------


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


# ---- pooling -----------------------------------------------------------------------------------


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


# ---- normalization -----------------------------------------------------------------------------


@operator
def BatchNorm(
    x, scale, bias, mean, variance, *, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW"
):
    layout = dict(epsilon=epsilon, data_format="NHWC" if is_channels_last(data_format) else "NCHW")
    if not is_training:
        return _batch_norm_infer(x, scale, bias, mean, variance, **layout), scale, bias, mean, variance
    y, batch_mean, inv_std = _batch_norm_train(mean, variance, x, scale, bias, momentum=momentum, **layout)
    return y, batch_mean, inv_std, batch_mean, inv_std


@operator
def BatchNormExt(x, weight=None, bias=None, mean=None, variance=None, training=False, momentum=0.1, eps=1e-5):
    y = ops.batch_norm(x, mean, variance, weight, bias, training, momentum, eps)
    return y, mean, variance


@operator
def LayerNorm(x, gamma, beta, *, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
    axes = dict(begin_norm_axis=begin_norm_axis, begin_params_axis=begin_params_axis)
    y, mean, inverse = _layer_norm(x, gamma, beta, **axes, epsilon=epsilon)
    return y, mean, 1 / ops.square(inverse) - epsilon  # the variance


@operator
def L2Normalize(x, *, axis=0, epsilon=1e-4):
    return _l2_normalize(x, axis=ints(axis), epsilon=epsilon)


@operator
def LayerNormExt(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return (ops.layer_norm(x, ints(normalized_shape), weight, bias, eps),)


@operator
def GroupNorm(x, num_groups, weight=None, bias=None, eps=1e-5):
    return (ops.group_norm(x, num_groups, weight, bias, eps),)


@operator
def RmsNorm(x, gamma, *, epsilon=1e-6):
    return ops.rms_norm(x, gamma, epsilon)


# ---- recurrent ---------------------------------------------------------------------------------


@operator
def LSTM(
    x, h0, c0, weights, *, input_size, hidden_size, num_layers=1, has_bias=True, bidirectional=False,
    dropout=0.0, proj_size=0,
):  # fmt: skip
    """One layer, one direction: x [T, B, I], states [1, B, H], weights [n, 1, 1] packed
    as W_ih, W_hh, b_ih + b_hh.
    """
    if num_layers != 1 or bidirectional or proj_size:
        raise ValueError("LSTM with several layers, two directions or a projection is not supported")
    flat = ops.reshape(weights, (-1,))
    rows = 4 * hidden_size
    w_ih = ops.reshape(ops.narrow(flat, 0, 0, rows * input_size), (rows, input_size))
    w_hh = ops.reshape(ops.narrow(flat, 0, rows * input_size, rows * hidden_size), (rows, hidden_size))
    bias = ops.narrow(flat, 0, rows * (input_size + hidden_size), rows) if has_bias else None
    y, h, c, *_ = _lstm_layer(x, ops.squeeze(h0, 0), ops.squeeze(c0, 0), w_ih, w_hh, bias)
    scratch = ops.zeros((1, 1), x.dtype)  # two outputs that only MindSpore's gradient uses
    return y, ops.expand_dims(h, 0), ops.expand_dims(c, 0), scratch, scratch


# ---- losses ------------------------------------------------------------------------------------


@operator
def MSELossExt(x, target, reduction=1):
    return ops.mse_loss(x, target, text(reduction, REDUCTIONS))


@operator
def L1LossExt(x, target, reduction=1):
    return ops.l1_loss(x, target, text(reduction, REDUCTIONS))


@operator
def SmoothL1Loss(x, target, *, beta=1.0, reduction=2):
    return ops.smooth_l1_loss(x, target, beta, text(reduction, REDUCTIONS))


@operator
def BinaryCrossEntropy(x, target, weight=None, *, reduction=1):
    return ops.binary_cross_entropy(x, target, weight, text(reduction, REDUCTIONS))


@operator
def BCEWithLogitsLoss(x, target, weight=None, pos_weight=None, *, reduction=1):
    return ops.binary_cross_entropy_with_logits(x, target, weight, pos_weight, text(reduction, REDUCTIONS))


@operator
def SoftmaxCrossEntropyWithLogits(logits, labels):
    return _softmax_cross_entropy(logits, labels)


@operator
def SparseSoftmaxCrossEntropyWithLogits(logits, labels, *, is_grad=False):
    if is_grad:
        depth = logits.shape[-1]
        return (ops.softmax(logits, -1) - ops.cast(ops.one_hot(labels, depth), logits.dtype)) / labels.size
    return ops.cross_entropy(logits, labels)


@operator
def NLLLoss(log_probabilities, labels, weight, *, reduction=1, ignore_index=-100):
    loss = ops.nll_loss(log_probabilities, labels, weight, ignore_index, text(reduction, REDUCTIONS))
    return loss, ops.sum(ops.gather(weight, labels, 0))


# ---- images -----------------------------------------------------------------------------------


def _source_positions(n: int, count: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Where `count` samples of an axis of size n lie on it."""
    i = np.arange(count, dtype=np.float64)
    if align_corners:
        return i * ((n - 1) / (count - 1) if count > 1 else 0)
    return (i + 0.5) * n / count - 0.5 if half_pixel_centers else i * n / count


def _nearest(x: Tensor, size: tuple, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    for axis, count in zip(range(x.ndim - len(size), x.ndim), size):
        positions = _source_positions(x.shape[axis], count, align_corners, half_pixel_centers)
        shift = 0.5 if align_corners or half_pixel_centers else 0.0
        index = np.clip(np.floor(positions + shift), 0, x.shape[axis] - 1)
        x = ops.index_select(x, axis, Tensor(index.astype(np.int32)))
    return x


def _linear(x: Tensor, size: tuple, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    """Each of the last two axes is multiplied by the matrix of its weights."""
    for axis, count in zip((-2, -1), size):
        n = x.shape[axis]
        positions = np.clip(_source_positions(n, count, align_corners, half_pixel_centers), 0, n - 1)
        low = np.floor(positions).astype(int)
        high, weight = np.minimum(low + 1, n - 1), positions - low
        matrix = np.zeros((count, n))
        np.add.at(matrix, (np.arange(count), low), 1 - weight)
        np.add.at(matrix, (np.arange(count), high), weight)
        mix = Tensor(matrix.astype(np.float32), x.dtype)
        x = ops.matmul(mix, x) if axis == -2 else ops.matmul(x, ops.transpose(mix, (1, 0)))
    return x


@operator
def ResizeBilinearV2(x, size, *, align_corners=False, half_pixel_centers=False):
    return _linear(x, ints(size), align_corners, half_pixel_centers)


@operator
def ResizeBilinear(x, *, size, align_corners=False, half_pixel_centers=False):
    return _linear(x, ints(size), align_corners, half_pixel_centers)


@operator
def ResizeNearestNeighbor(x, *, size, align_corners=False, half_pixel_centers=False):
    return _nearest(x, ints(size), align_corners, half_pixel_centers)


@operator
def ResizeNearestNeighborV2(x, size, *, align_corners=False, half_pixel_centers=False):
    return _nearest(x, ints(size), align_corners, half_pixel_centers)


def _scaled(x: Tensor, output_size: Any, scales: Any) -> tuple[int, ...]:
    if output_size is not None:
        return ints(output_size)
    return tuple(int(n * s) for n, s in zip(x.shape[2:], scales))


@operator
def UpsampleBilinear2D(x, output_size=None, scales=None, align_corners=False):
    return _linear(x, _scaled(x, output_size, scales), align_corners, not align_corners)


@operator
def UpsampleNearest2D(x, output_size=None, scales=None):
    return _nearest(x, _scaled(x, output_size, scales), False, False)


operator(UpsampleNearest2D, "UpsampleNearest1D")
operator(UpsampleNearest2D, "UpsampleNearest3D")
