"""Windows of images as columns of a matrix, and their sums back in place."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size, spread


def _np_windows(x, kernel, stride, pad, dilation):
    """Columns of a zero-padded array: [N, C, *spatial] -> [N, C, *kernel, *positions]."""
    rank = len(kernel)
    size = output_size(x.shape[2:], kernel, stride, pad, dilation)
    if any(pad):
        x = np.pad(x, [(0, 0), (0, 0), *zip(pad[:rank], pad[rank:], strict=True)])
    steps = x.strides[2:]
    strides = (*x.strides[:2], *(s * d for s, d in zip(steps, dilation, strict=True)),
               *(s * d for s, d in zip(steps, stride, strict=True)))  # fmt: skip
    view = np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *kernel, *size), strides, writeable=False)
    return np.ascontiguousarray(view)


def _np_add_windows(columns, size, stride, pad, dilation):
    """Transpose of `_np_windows`: every column element is added where it came from; -> [N, C, *size]."""
    rank = len(size)
    kernel, positions = columns.shape[2 : 2 + rank], columns.shape[2 + rank :]
    padded = tuple(n + pad[d] + pad[rank + d] for d, n in enumerate(size))
    out = np.zeros((*columns.shape[:2], *padded), columns.dtype)
    for tap in np.ndindex(*kernel):
        where = tuple(
            slice(t * dl, t * dl + (p - 1) * s + 1 if p else t * dl, s)
            for t, dl, p, s in zip(tap, dilation, positions, stride, strict=True)
        )
        out[(..., *where)] += columns[(slice(None), slice(None), *tap)]
    inside = tuple(slice(pad[d], pad[d] + n) for d, n in enumerate(size))
    return np.ascontiguousarray(out[(..., *inside)])


@op(name="im2col", batch=_batch.joined(0), cost=0)
def _im2col(x, *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,)):
    """All windows of the zero-padded x as columns.

    Shapes: x [N, C, *size] -> [N, C * prod(kernel), prod(positions)], positions as in `conv`.  dtypes: any.
    """
    kernel, stride, pad, dilation = full_attributes(x.ndim - 2, kernel, stride, pad, dilation)
    columns = _np_windows(x, kernel, stride, pad, dilation)
    taps, positions = math.prod(kernel), int(np.prod(columns.shape[x.ndim :]))
    return columns.reshape(x.shape[0], x.shape[1] * taps, positions)


@_im2col.infer
def _im2col(x, *, kernel, stride, pad, dilation):
    kernel, stride, pad, dilation = full_attributes(x.rank - 2, kernel, stride, pad, dilation)
    size = output_size(x.shape[2:], kernel, stride, pad, dilation)
    taps = math.prod(kernel)
    channels = -1 if x.shape[1] < 0 else x.shape[1] * taps
    return TensorType(x.dtype, (x.shape[0], channels, -1 if min(size) < 0 else math.prod(size)))


@_im2col.vjp
def _im2col(ct, x_shape, *, kernel, stride, pad, dilation):
    return _col2im(ct, size=x_shape[2:], kernel=kernel, stride=stride, pad=pad, dilation=dilation)


@_im2col.samples
def _im2col(rand):
    yield rand(2, 2, 4, 3), dict(kernel=(2, 2))
    yield rand(1, 2, 5, 5), dict(kernel=(3, 2), stride=(2, 1), pad=(1, 0, 0, 1), dilation=(1, 2))
    yield rand(1, 2, 6), dict(kernel=(2,), stride=(3,), _dtypes=("int32",))
    yield rand(1, 1, 3, 3, 2), dict(kernel=(2, 1, 2))
    yield rand(0, 2, 4, 3), dict(kernel=(2, 2))


@op(name="col2im", batch=_batch.joined(0), cost=0)
def _col2im(
    x, *, size: "ints", kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,)
):
    """Sum of columns at the places `im2col` took them from.

    Shapes: x [N, C * prod(kernel), prod(positions)] -> [N, C, *size].  dtypes: any.
    Errors: ValueError if `im2col` over `size` would not give x's shape.
    """
    kernel, stride, pad, dilation = full_attributes(len(size), kernel, stride, pad, dilation)
    positions = output_size(size, kernel, stride, pad, dilation)
    columns = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), *kernel, *positions)
    return _np_add_windows(columns, tuple(size), stride, pad, dilation)


@_col2im.infer
def _col2im(x, *, size, kernel, stride, pad, dilation):
    kernel, stride, pad, dilation = full_attributes(len(size), kernel, stride, pad, dilation)
    taps, positions = math.prod(kernel), math.prod(output_size(size, kernel, stride, pad, dilation))
    if x.rank != 3 or x.shape[1] % taps or x.shape[2] not in (-1, positions):
        raise ValueError(
            f"x must be [N, C * {taps}, {positions}] for size {size} and kernel {kernel}, got {x.shape}"
        )
    return TensorType(x.dtype, (x.shape[0], x.shape[1] // taps, *size))


@_col2im.vjp
def _col2im(ct, *, size, kernel, stride, pad, dilation):
    return _im2col(ct, kernel=kernel, stride=stride, pad=pad, dilation=dilation)


@_col2im.samples
def _col2im(rand):
    yield rand(2, 8, 6), dict(size=(4, 3), kernel=(2, 2))
    yield rand(1, 12, 4), dict(size=(5, 5), kernel=(3, 2), stride=(2, 2), pad=(1, 0, 0, 1), dilation=(1, 2))
    yield rand(1, 4, 2), dict(size=(6,), kernel=(2,), stride=(3,))
    yield rand(0, 4, 6), dict(size=(4, 3), kernel=(2, 2))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding windows of a batch of images as columns.

    Shapes: input [N, C, H, W] -> [N, C * KH * KW, positions].  dtypes: any.
    Errors: ValueError if the rank is not 4.
    """
    if input.ndim != 4:
        raise errors.value_error(f"For 'unfold', input must have rank 4, got shape {input.shape}")
    return _im2col(
        input,
        kernel=spread("kernel_size", kernel_size, 2, 1, "unfold"),
        stride=spread("stride", stride, 2, 1, "unfold"),
        pad=spread("padding", padding, 2, 0, "unfold") * 2,
        dilation=spread("dilation", dilation, 2, 1, "unfold"),
    )


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum of columns at the places `unfold` takes them from.

    `output_size` is a pair of ints or a tensor of two.
    Shapes: input [N, C * KH * KW, positions] or [N, C, KH * KW, positions] -> [N, C, *output_size].
    Errors: ValueError if the number of columns does not fit.
    """
    if input.ndim not in (3, 4):
        raise errors.value_error(f"For 'fold', input must have rank 3 or 4, got shape {input.shape}")
    if not isinstance(output_size, (int, tuple, list)):
        output_size = tuple(int(n) for n in output_size.asnumpy())
    if input.ndim == 4:
        input = _shape.reshape(input, (input.shape[0], input.shape[1] * input.shape[2], input.shape[3]))
    if isinstance(output_size, (tuple, list)) and any(n < 0 for n in output_size):
        raise errors.value_error(
            f"For 'fold', the value of 'output_size' must not be negative, but got {tuple(output_size)}"
        )
    return _col2im(
        input,
        size=spread("output_size", output_size, 2, 1, "fold"),
        kernel=spread("kernel_size", kernel_size, 2, 1, "fold"),
        stride=spread("stride", stride, 2, 1, "fold"),
        pad=spread("padding", padding, 2, 0, "fold") * 2,
        dilation=spread("dilation", dilation, 2, 1, "fold"),
    )


__all__ = ["fold", "unfold"]
