"""Functions of `mint.nn.functional` that move a window over sequences, images and volumes.

All but the transposed convolution take inputs with and without a batch dimension, as torch's do.
"""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.nn_ops import adaptive_pool as _adaptive_pool
from mycelia.engine.ops.nn_ops import average_pool as _average_pool
from mycelia.engine.ops.nn_ops import conv as _conv
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.engine.ops.nn_ops import pool as _pool
from mycelia.nn.pooling import batched

# ---------------------------------------------------------------------------------------------- convolution


def _convolve(owner, rank, input, weight, bias, stride, padding, dilation, groups):
    stride = _conv_geometry.spread("stride", stride, rank, 1, owner)
    dilation = _conv_geometry.spread("dilation", dilation, rank, 1, owner)
    if weight.ndim != rank + 2:
        raise errors.value_error(
            owner, f"weight must have rank {rank + 2}, but its shape is {list(weight.shape)}"
        )
    if isinstance(padding, str):
        pads = named_pads(owner, padding, tuple(weight.shape[2:]), stride, dilation)
    else:
        pads = _conv_geometry.spread("padding", padding, rank, 0, owner) * 2

    def compute(x):
        return _conv._conv(x, weight, bias, stride=stride, pad=pads, dilation=dilation, group=groups)

    return batched(owner, rank, compute, input)


def named_pads(owner: str, padding: str, kernel, stride, dilation) -> tuple[int, ...]:
    """All begins, then all ends, for padding 'valid' or 'same'; the odd one of 'same' is at the end.

    Errors: ValueError for another name, and for 'same' with a stride other than 1.
    """
    if padding not in ("same", "valid"):
        raise errors.one_of(padding, ["same", "valid"], subject=owner, what="padding")
    if padding == "valid":
        return (0,) * (2 * len(kernel))
    if any(s != 1 for s in stride):
        raise errors.value_error(owner, f"padding='same' needs stride 1, but stride is {stride}")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over one spatial dimension, see `conv2d`.

    Shapes: input [N, C, L] or [C, L], weight [O, C / groups, K], bias [O] -> [N, O, positions].
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution (cross-correlation) of images with a bank of filters.

    `padding`: one int, one a dimension, 'valid' (none) or 'same' (the size stays; stride 1 only).
    Shapes: input [N, C, H, W] or [C, H, W], weight [O, C / groups, KH, KW], bias [O] -> [N, O, *positions].
    dtypes: floating.  Errors: ValueError for sizes that do not fit, TypeError for what is not an int.
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution over three spatial dimensions, see `conv2d`.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], weight [O, C / groups, KD, KH, KW], bias [O] ->
    [N, O, *positions].
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The gradient of a convolution with respect to its input, as a function of images.

    Shapes: input [N, C, H, W] or [C, H, W], weight [C, O / groups, KH, KW], bias [O] -> [N, O, *sizes].
    """

    def compute(x):
        return ops.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation)

    return batched("conv_transpose2d", 2, compute, input)


# --------------------------------------------------------------------------------------------------- pooling


def _windows(owner, rank, kernel_size, stride, padding):
    """Kernel, stride (the kernel if there is none) and pads: all begins, then all ends."""
    kernel = _conv_geometry.spread("kernel_size", kernel_size, rank, 1, owner)
    stride = (
        kernel if stride is None or stride == () else _conv_geometry.spread("stride", stride, rank, 1, owner)
    )
    pads = _conv_geometry.spread("padding", padding, rank, 0, owner) * 2
    if any(2 * p > k for p, k in zip(pads, kernel)):
        raise errors.value_error(
            owner, f"padding must be at most half of kernel_size {kernel}, but is {padding}"
        )
    return kernel, stride, pads


def _average(owner, rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor=None):
    how = _windows(owner, rank, kernel_size, stride, padding)
    if divisor is not None and divisor == 0:
        raise errors.value_error(owner, "divisor_override must not be 0")

    def compute(x):
        return _average_pool.avg_pool(x, *how, ceil_mode, count_include_pad, divisor)

    return batched(owner, rank, compute, input)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean of each window of a sequence.

    Shapes: input [N, C, L] or [C, L] -> [..., positions].  dtypes: floating.
    Errors: ValueError if the padding exceeds half the window.
    """
    return _average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Mean of each window of an image, or its sum divided by `divisor_override`.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *positions].  dtypes: floating.
    Errors: ValueError if a padding exceeds half the window.
    """
    how = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _average("avg_pool2d", 2, input, *how)


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Mean of each window of a volume, or its sum divided by `divisor_override`.

    Shapes: input [N, C, D, H, W] or [C, D, H, W] -> [..., *positions].  dtypes: floating.
    Errors: ValueError if a padding exceeds half the window.
    """
    how = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _average("avg_pool3d", 3, input, *how)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest element of each window of an image.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *positions], with `return_indices` also the int64 places
    in H * W.  Errors: ValueError if a padding exceeds half the window.
    """
    kernel, stride, pads = _windows("max_pool2d", 2, kernel_size, stride, padding)

    def compute(x):
        return _pool.max_pool(x, kernel, stride, pads, dilation, ceil_mode, return_indices, "max_pool2d")

    return batched("max_pool2d", 2, compute, input)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts maxima of an image back to their places `indices` (in H * W of the result); 0 elsewhere.

    Shapes: input, indices [N, C, H, W] or [C, H, W] -> [..., *sizes].
    """
    return ops.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def _adaptive(owner, rank, input, output_size, average, return_indices=False):
    if average:
        pool = _adaptive_pool._mean_windows
    else:
        pool = _adaptive_pool._max_windows_indexed if return_indices else _adaptive_pool._max_windows
    return _adaptive_pool._adaptive(owner, rank, input, output_size, pool)


def adaptive_avg_pool1d(input, output_size):
    """Mean of each of `output_size` windows that cover a sequence evenly.

    Shapes: input [N, C, L] or [C, L] -> [..., output_size].
    """
    return _adaptive("adaptive_avg_pool1d", 1, input, output_size, True)


def adaptive_avg_pool2d(input, output_size):
    """Mean of each of the windows that cover an image evenly; None in `output_size` keeps an extent.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *output_size].
    """
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size, True)


def adaptive_avg_pool3d(input, output_size):
    """Mean of each of the windows that cover a volume evenly; None in `output_size` keeps an extent.

    Shapes: input [N, C, D, H, W] or [C, D, H, W] -> [..., *output_size].
    """
    return _adaptive("adaptive_avg_pool3d", 3, input, output_size, True)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest element of each of `output_size` windows that cover a sequence evenly, and its int64 place.

    Shapes: input [N, C, L] or [C, L] -> [..., output_size].
    """
    return _adaptive("adaptive_max_pool1d", 1, input, output_size, False, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest element of each of the windows that cover an image evenly, and its int64 place in H * W.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *output_size].
    """
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, False, return_indices)


# ------------------------------------------------------------------------------- columns, sizes and channels


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding windows of images as columns.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., C * KH * KW, positions].
    """
    return batched("unfold", 2, lambda x: ops.unfold(x, kernel_size, dilation, padding, stride), input)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum of columns at the places `unfold` takes them from.

    Shapes: input [N, C * KH * KW, positions] or [C * KH * KW, positions] -> [..., C, *output_size].
    """
    return batched(
        "fold", 1, lambda x: ops.fold(x, output_size, kernel_size, dilation, padding, stride), input
    )


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """Resize the spatial dimensions to `size`, or by `scale_factor`.

    Shapes: [N, C, *spatial] -> [N, C, *size].  Errors: ValueError for a rank, mode or size that does not fit.
    """
    return ops.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate` under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)
