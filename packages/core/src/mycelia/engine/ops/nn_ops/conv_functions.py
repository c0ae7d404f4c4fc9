"""Convolutions and transposed convolutions with the signatures of MindSpore."""

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.nn_ops.conv import _conv, _conv_input_grad
from mycelia.engine.ops.nn_ops.conv_geometry import explicit_pads, spread


def _convolution(owner, x, weight, bias, stride, pad_mode, padding, dilation, groups):
    rank = {"conv1d": 1, "conv2d": 2, "conv3d": 3}[owner]
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise errors.value_error(
            f"For '{owner}', input and weight must have rank {rank + 2}, got {x.shape} and {weight.shape}"
        )
    stride = spread("stride", stride, rank, 1, owner)
    dilation = spread("dilation", dilation, rank, 1, owner)
    if isinstance(padding, (tuple, list)) and len(padding) not in (1, rank):
        raise errors.value_error(
            f"For '{owner}', 'padding' must be an int or a tuple of {rank} ints, got {padding!r}"
        )
    pad = explicit_pads(owner, pad_mode, padding, x.shape[2:], weight.shape[2:], stride, dilation)
    return _conv(x, weight, bias, stride=stride, pad=pad, dilation=dilation, group=groups)


def conv1d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution over one spatial dimension, see `conv2d`.

    Shapes: input [N, C, L], weight [O, C / groups, K], bias [O] -> [N, O, positions].
    """
    return _convolution("conv1d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution (cross-correlation) of images with a bank of filters.

    `pad_mode`: 'valid' (no padding), 'same' (``ceil(size / stride)`` positions) or 'pad' (`padding` on both
    sides, an int or one int a dimension).
    Shapes: input [N, C, H, W], weight [O, C / groups, KH, KW], bias [O] -> [N, O, *positions].
    dtypes: floating.
    Errors: ValueError for wrong channels, groups, pad mode or window sizes; TypeError for what is not an int.
    """
    return _convolution("conv2d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution over three spatial dimensions, see `conv2d`.

    Shapes: input [N, C, D, H, W], weight [O, C / groups, KD, KH, KW], bias [O] -> [N, O, *positions].
    """
    return _convolution("conv3d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv_transpose(
    input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, group=1, output_padding=0
):
    """Transposed convolution over one to three dimensions with the pad modes of the nn layers.

    Output sizes: 'same' ``size * stride``; 'valid' ``size * stride + max(span - stride, 0)``; 'pad'
    ``(size - 1) * stride + span - paddings + output_padding``, where ``span = dilation * (kernel - 1) + 1``.
    `padding`: an int, one int a dimension, or begin and end for each dimension.
    Shapes: input [N, C, *size], weight [C, O / group, *kernel], bias [O] -> [N, O, *sizes].
    Errors: ValueError for wrong channels, groups or pad mode, `output_padding` without pad mode 'pad'.
    """
    owner, rank = "conv_transpose", input.ndim - 2
    kernel = weight.shape[2:]
    stride = spread("stride", stride, rank, 1, owner)
    dilation = spread("dilation", dilation, rank, 1, owner)
    extra = spread("output_padding", output_padding, rank, 0, owner)
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    if pad_mode != "pad" and any(extra):
        raise errors.value_error(
            f"For '{owner}', 'output_padding' must be zero when 'pad_mode' is {pad_mode!r}, got {extra}"
        )
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise errors.value_error(
            f"For '{owner}', 'output_padding' {extra} must be less than stride {stride} or dilation"
        )
    if pad_mode == "pad":
        pad = explicit_pads(owner, "pad", padding, input.shape[2:], kernel, stride, dilation)
        size = tuple(
            (n - 1) * stride[d] + span[d] - pad[d] - pad[rank + d] + extra[d]
            for d, n in enumerate(input.shape[2:])
        )
        if min(size) < 1:
            raise errors.value_error(
                f"For '{owner}', input {input.shape} with padding {pad} gives no output: size {size}"
            )
    else:
        size = tuple(
            n * s + (max(p - s, 0) if pad_mode == "valid" else 0)
            for n, s, p in zip(input.shape[2:], stride, span, strict=True)
        )
        pad = explicit_pads(owner, pad_mode, padding, size, kernel, stride, dilation)
    y = _conv_input_grad(input, weight, size=size, stride=stride, pad=pad, dilation=dilation, group=group)
    return y if bias is None else y + _shape.reshape(bias, (1, bias.size) + (1,) * rank)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution of images with explicit padding, see `conv_transpose` with pad mode 'pad'.

    Shapes: input [N, C, H, W], weight [C, O / groups, KH, KW], bias [O] -> [N, O, *sizes].
    """
    if input.ndim != 4:
        raise errors.value_error(f"For 'conv_transpose2d', input must have rank 4, got shape {input.shape}")
    return conv_transpose(input, weight, bias, stride, "pad", padding, dilation, groups, output_padding)


def conv3d_transpose(
    inputs, weight, pad_mode="valid", padding=0, stride=1, dilation=1, group=1, output_padding=0
):
    """Transposed convolution over three dimensions, see `conv_transpose`.

    Shapes: inputs [N, C, D, H, W], weight [C, O / group, KD, KH, KW] -> [N, O, *sizes].
    """
    if inputs.ndim != 5:
        raise errors.value_error(f"For 'conv3d_transpose', inputs must have rank 5, got shape {inputs.shape}")
    return conv_transpose(inputs, weight, None, stride, pad_mode, padding, dilation, group, output_padding)


__all__ = ["conv1d", "conv2d", "conv3d", "conv3d_transpose", "conv_transpose2d"]
