"""Average and power-average pooling over one to three spatial dimensions."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.nn_ops.pool import _pool_arguments
from mycelia.engine.ops.nn_ops.pool_geometry import (
    _attributes,
    _check_size,
    _np_first,
    _np_restored,
    _positions,
    _shaped,
    _split_shape,
)


def _np_mix(x, matrices):
    """Each spatial dimension multiplied by its matrix [positions, size]; weights of 0 take no part."""
    for d, matrix in enumerate(matrices):
        finite = np.isfinite(x)
        y = _np_weighted(np.where(finite, x, 0), matrix, 2 + d)
        if not finite.all():
            for value, places in ((np.nan, np.isnan(x)), (np.inf, x == np.inf), (-np.inf, x == -np.inf)):
                y[_np_weighted(places.astype(np.float32), matrix, 2 + d) > 0] += value
        x = y
    return np.ascontiguousarray(x)


def _np_weighted(x, matrix, axis):
    return np.moveaxis(np.tensordot(x, matrix.astype(x.dtype), (axis, 1)), -1, axis)


def _np_average_matrices(size, kernel, stride, pad, ceil, count_include_pad, divisor):
    """For each dimension, weights [positions, size] whose product over dimensions averages a window."""
    positions = _positions(size, kernel, stride, pad, (1,) * len(size), ceil)
    matrices = []
    for d, n in enumerate(size):
        begin = np.arange(positions[d]) * stride[d] - pad[d]
        end = np.minimum(begin + kernel[d], n + pad[len(size) + d])
        counted = end - begin if count_include_pad else np.minimum(end, n) - np.maximum(begin, 0)
        if divisor:
            counted = np.full_like(begin, divisor if d == 0 else 1)
        column = np.arange(n)
        inside = (column >= begin[:, None]) & (column < end[:, None])
        matrices.append(inside / np.maximum(counted, 1)[:, None])
    return matrices


def _average_attributes(rank, kernel, stride, pad):
    return _attributes(rank, kernel, stride, pad, (1,))[:3]


def _average_positions(size, kernel, stride, pad, ceil):
    return _positions(size, kernel, stride, pad, (1,) * len(size), ceil)


@op(name="avg_pool", batch=_batch.joined(0), layout=_layout.formatted((0,), (0,)))
def _avg_pool(
    x,
    *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), ceil: "bool" = False,
    count_include_pad: "bool" = True, divisor: "int" = 0, data_format: "NCHW|NHWC" = "NCHW",
):  # fmt: skip
    """Mean of each window: its sum over `divisor`, or, if that is 0, over its elements.

    `count_include_pad` says whether padding counts as elements. What a window has behind the end padding
    (`ceil`) is never counted.
    Shapes: x [N, C, *size] ("NHWC": [N, *size, C]) -> [N, C, *positions] (or with C last).
    dtypes: floating.
    Errors: ValueError if a window does not fit, the padding is not smaller than the window or `divisor` is
    negative.
    """
    x = _np_first(x, data_format)
    how = _average_attributes(x.ndim - 2, kernel, stride, pad)
    y = _np_mix(x, _np_average_matrices(x.shape[2:], *how, ceil, count_include_pad, divisor))
    return _np_restored(y, data_format)


@_avg_pool.infer
def _avg_pool(x, *, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    need_floating(x=x)
    if divisor < 0:
        raise errors.value_error("avg_pool", f"divisor must be 0, for none, or larger, but got {divisor}")
    how = _average_attributes(x.rank - 2, kernel, stride, pad)
    batch, channels, size = _split_shape(x.shape, data_format)
    return TensorType(x.dtype, _shaped(batch, channels, _average_positions(size, *how, ceil), data_format))


@_avg_pool.vjp
def _avg_pool(ct, x_shape, *, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    return _avg_pool_grad(
        ct, size=_split_shape(x_shape, data_format)[2], kernel=kernel, stride=stride, pad=pad, ceil=ceil,
        count_include_pad=count_include_pad, divisor=divisor, data_format=data_format,
    )  # fmt: skip


@_avg_pool.samples
def _avg_pool(rand):
    yield rand(2, 3, 6, 8), dict(kernel=(2, 2), stride=(2, 2))
    yield rand(1, 2, 7, 6), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    yield rand(1, 2, 7, 6), dict(kernel=(3, 3), stride=(2, 2), pad=(0, 1, 1, 0), count_include_pad=False)
    yield rand(1, 2, 5, 7), dict(kernel=(3, 2), stride=(2, 3), pad=(1, 0, 1, 0), ceil=True)
    yield rand(1, 1, 5, 5), dict(kernel=(2, 2), stride=(2, 2), ceil=True, count_include_pad=False)
    yield rand(1, 1, 5, 5), dict(kernel=(2, 3), stride=(1, 1), divisor=5)
    yield rand(2, 2, 7), dict(kernel=(3,), stride=(2,), pad=(1, 1))
    yield rand(1, 1, 4, 4, 5), dict(kernel=(2, 2, 3), stride=(2, 1, 2), pad=(1, 0, 1, 0, 1, 1))
    yield rand(1, 1, 5, 5), dict(kernel=(1, 2), stride=(3, 4))
    yield rand(0, 2, 4, 4), dict(kernel=(2, 2), stride=(2, 2))
    yield rand(2, 3, 34, 37), dict(kernel=(2, 2), stride=(2, 2), _grad=False)
    last = dict(data_format="NHWC")
    yield rand(2, 6, 8, 3), dict(kernel=(2, 2), stride=(2, 2), **last)
    yield (
        rand(1, 7, 6, 2),
        dict(kernel=(3, 3), stride=(2, 2), pad=(0, 1, 1, 0), count_include_pad=False, **last),
    )
    yield rand(1, 5, 7, 2), dict(kernel=(3, 2), stride=(2, 3), pad=(1, 0, 1, 0), ceil=True, **last)
    yield rand(1, 5, 5, 1), dict(kernel=(2, 3), stride=(1, 1), divisor=5, **last)
    yield rand(2, 7, 2), dict(kernel=(3,), stride=(2,), pad=(1, 1), **last)
    yield rand(0, 4, 4, 2), dict(kernel=(2, 2), stride=(2, 2), **last)
    yield rand(1, 8, 9, 37), dict(kernel=(3, 3), pad=(1, 1, 1, 1), _grad=False, **last)
    yield rand(2, 7, 7, 48), dict(kernel=(7, 7), _grad=False, **last)


@op(name="avg_pool_grad", batch=_batch.joined(0), layout=_layout.formatted((0,), (0,)))
def _avg_pool_grad(
    dy,
    *, size: "ints", kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), ceil: "bool" = False,
    count_include_pad: "bool" = True, divisor: "int" = 0, data_format: "NCHW|NHWC" = "NCHW",
):  # fmt: skip
    """Gradient of `avg_pool` for data of spatial `size`: each dy spread evenly over its window.

    Shapes: dy [N, C, *positions] ("NHWC": [N, *positions, C]) -> [N, C, *size] (or with C last).
    dtypes: floating.
    """
    dy = _np_first(dy, data_format)
    how = _average_attributes(dy.ndim - 2, kernel, stride, pad)
    matrices = _np_average_matrices(size, *how, ceil, count_include_pad, divisor)
    return _np_restored(_np_mix(dy, [m.T for m in matrices]), data_format)


@_avg_pool_grad.infer
def _avg_pool_grad(dy, *, size, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    _check_size(size, dy.rank - 2)
    expected = _average_positions(size, *_average_attributes(dy.rank - 2, kernel, stride, pad), ceil)
    batch, channels, positions = _split_shape(dy.shape, data_format)
    if -1 not in positions and positions != expected:
        raise ValueError(f"dy must have positions {expected} for size {size}, got shape {dy.shape}")
    return TensorType(dy.dtype, _shaped(batch, channels, size, data_format))


@_avg_pool_grad.vjp
def _avg_pool_grad(ct, *, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    return _avg_pool(
        ct, kernel=kernel, stride=stride, pad=pad, ceil=ceil, count_include_pad=count_include_pad,
        divisor=divisor, data_format=data_format,
    )  # fmt: skip


@_avg_pool_grad.samples
def _avg_pool_grad(rand):
    yield rand(2, 2, 3, 4), dict(size=(6, 8), kernel=(2, 2), stride=(2, 2))
    yield rand(1, 2, 4, 3), dict(size=(7, 6), kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    uneven = dict(size=(7, 6), kernel=(3, 3), stride=(2, 2), pad=(0, 1, 1, 0), count_include_pad=False)
    yield rand(1, 2, 3, 3), uneven
    yield rand(1, 1, 3, 3), dict(size=(5, 7), kernel=(3, 2), stride=(2, 3), pad=(1, 0, 1, 0), ceil=True)
    yield rand(1, 1, 4, 3), dict(size=(5, 5), kernel=(2, 3), divisor=5)
    yield rand(1, 1, 4), dict(size=(7,), kernel=(3,), stride=(2,), pad=(1, 1))
    yield rand(0, 1, 2, 2), dict(size=(4, 4), kernel=(2, 2), stride=(2, 2))
    last = dict(data_format="NHWC")
    yield rand(2, 3, 4, 2), dict(size=(6, 8), kernel=(2, 2), stride=(2, 2), **last)
    yield rand(1, 3, 3, 2), dict(**uneven, **last)
    yield rand(1, 4, 3, 1), dict(size=(5, 5), kernel=(2, 3), divisor=5, **last)
    yield rand(1, 4, 1), dict(size=(7,), kernel=(3,), stride=(2,), pad=(1, 1), **last)
    yield rand(2, 1, 1, 37), dict(size=(7, 7), kernel=(7, 7), **last)
    yield rand(0, 2, 2, 1), dict(size=(4, 4), kernel=(2, 2), stride=(2, 2), **last)


def avg_pool(x, kernel, stride, pad, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """Means of windows over one to three dimensions with explicit `pad` (all begins, then all ends).

    What the nn layers and the public functions share; see the op `avg_pool` for what is counted.
    """
    return _avg_pool(
        x, kernel=kernel, stride=stride, pad=pad, ceil=ceil_mode, count_include_pad=count_include_pad,
        divisor=divisor_override or 0,
    )  # fmt: skip


def avg_pool1d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean of each window of a sequence.

    Shapes: input_x [N, C, L] -> [N, C, positions].  dtypes: floating.
    Errors: ValueError if the padding is not smaller than the window.
    """
    how = _pool_arguments("avg_pool1d", input_x, 1, kernel_size, stride, padding)
    return avg_pool(input_x, *how, ceil_mode, count_include_pad)


def avg_pool2d(
    input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0
):
    """Mean of each window of an image.

    `padding`: an int or (top, bottom, left, right); `divisor_override` other than 0
    replaces the window's count.
    Shapes: input_x [N, C, H, W] -> [N, C, *positions].  dtypes: floating.
    Errors: ValueError if a padding is not smaller than the window.
    """
    how = _pool_arguments("avg_pool2d", input_x, 2, kernel_size, stride, padding, full_padding=True)
    return avg_pool(input_x, *how, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0
):
    """Mean of each window of a volume; `padding`: an int or (front, back, top, bottom, left, right).

    Shapes: input_x [N, C, D, H, W] -> [N, C, *positions].  dtypes: floating.
    """
    how = _pool_arguments("avg_pool3d", input_x, 3, kernel_size, stride, padding, full_padding=True)
    return avg_pool(input_x, *how, ceil_mode, count_include_pad, divisor_override)


def _power_average(owner, x, norm_type, kernel, stride, ceil_mode):
    if not isinstance(norm_type, (int, float)) or norm_type == 0:
        raise errors.value_error(
            f"For '{owner}', 'norm_type' must be a number other than 0, got {norm_type!r}"
        )
    rank = len(kernel)
    mean = avg_pool(x**norm_type, kernel, stride, (0,) * (2 * rank), ceil_mode)
    return (mean * float(math.prod(kernel))) ** (1.0 / norm_type)


def lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Power average of each window: ``(sum of x ** norm_type) ** (1 / norm_type)``.

    Windows that `ceil_mode` cuts are scaled up to full windows.
    Shapes: x [N, C, L] or [C, L] -> [..., positions].
    """
    batch = x if x.ndim == 3 else _shape.reshape(x, (1, *x.shape))
    kernel, stride, _ = _pool_arguments("lp_pool1d", batch, 1, kernel_size, stride, 0)
    y = _power_average("lp_pool1d", batch, norm_type, kernel, stride, ceil_mode)
    return y if x.ndim == 3 else _shape.reshape(y, y.shape[1:])


def lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Power average of each window of an image, see `lp_pool1d`.

    Shapes: x [N, C, H, W] -> [N, C, *positions].
    """
    kernel, stride, _ = _pool_arguments("lp_pool2d", x, 2, kernel_size, stride, 0)
    return _power_average("lp_pool2d", x, norm_type, kernel, stride, ceil_mode)


__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d"]
