"""Maximum pooling over one to three spatial dimensions, unpooling, and what all poolings share.

One op serves every rank; layout is channels first, x [N, C, *spatial], and for what the compiler makes of the
ops with `data_format` also channels last. Paddings of the ops are explicit (all begins, then all ends).
Indices of maxima count positions of the unpadded spatial dimensions, flattened. Averages are in
`average_pool.py`, windows that are given by their number in `adaptive_pool.py`.
"""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32, int64
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.engine.ops.nn_ops.pool_geometry import (
    _attributes,
    _np_first,
    _np_restored,
    _np_taps,
    _positions,
    _restored,
    _shaped,
    _split_shape,
    _turned,
)


def _np_argmax(x, taps):
    """Flat spatial index of each window's first largest element, -1 for a window of nothing but padding."""
    size, rank = x.shape[2:], len(taps)
    flat, inside = 0, True
    for d, index in enumerate(taps):
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = index.shape
        index = index.reshape(shape)
        flat = flat * size[d] + np.clip(index, 0, max(size[d] - 1, 0))
        inside = inside & (index >= 0) & (index < size[d])
    positions = tuple(index.shape[0] for index in taps)
    flat, inside = (np.broadcast_to(a, (*positions, *(t.shape[1] for t in taps))) for a in (flat, inside))
    flat, inside = flat.reshape(*positions, -1), inside.reshape(*positions, -1)
    if x.size == 0:
        return np.zeros((*x.shape[:2], *positions), np.int64)
    values = x.reshape(*x.shape[:2], -1)[:, :, flat]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    best = np.where(inside & (values == values), values, lowest).argmax(-1)
    # A window of nothing but the lowest value: its first element inside the data.
    inside = np.broadcast_to(inside, values.shape)
    best = np.where(np.take_along_axis(inside, best[..., None], -1)[..., 0], best, inside.argmax(-1))
    index = np.take_along_axis(np.broadcast_to(flat, values.shape), best[..., None], -1)[..., 0]
    return np.where(inside.any(-1), index, -1)


def _np_max(x, taps):
    """Largest element of each window: NaN is never the largest, a window of nothing else gives -inf."""
    index = _np_argmax(x, taps)
    y = _np_take(x, np.maximum(index, 0)) if x.size else np.zeros(index.shape, x.dtype)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.where((index >= 0) & (y == y), y, np.array(lowest, x.dtype))


def _np_take(x, index):
    """x at flat spatial indices, plane by plane."""
    planes = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    flat = index.reshape(*index.shape[:2], math.prod(index.shape[2:]))
    return np.take_along_axis(planes, flat, -1).reshape(index.shape)


def _np_scatter(ct, index, size):
    """Sum of ct at flat spatial indices, plane by plane; -> [N, C, *size]."""
    out = np.zeros((*ct.shape[:2], math.prod(size)), ct.dtype)
    if ct.size:
        plane = np.arange(ct.shape[0] * ct.shape[1]).repeat(ct[0, 0].size)
        np.add.at(out.reshape(-1, out.shape[-1]), (plane, index.reshape(-1)), ct.reshape(-1))
    return out.reshape(*ct.shape[:2], *size)


@op(name="pool_take", batch=_batch.joined(0, 1), exact=True)
def _pool_take(x, index):
    """Elements of each plane at flat spatial indices.

    Shapes: x [N, C, *size], index [N, C, *positions] -> index's.  dtypes: x any, index integers.
    """
    return _np_take(x, index)


@_pool_take.infer
def _pool_take(x, index):
    if x.rank < 3 or index.rank < 3 or x.shape[:2] != index.shape[:2]:
        raise ValueError(
            f"x and index must agree in their first two extents, got {x.shape} and {index.shape}"
        )
    return TensorType(x.dtype, index.shape)


@_pool_take.vjp
def _pool_take(ct, x_shape, index):
    return _pool_scatter(ct, index, size=x_shape[2:]), None


@_pool_take.samples
def _pool_take(rand):
    yield rand(2, 3, 4, 5), rand.ints(0, 20, (2, 3, 2, 2), dtype="int64")
    yield rand(1, 2, 6), rand.ints(0, 6, (1, 2, 7), dtype="int32")
    yield rand(0, 2, 6), rand.ints(0, 6, (0, 2, 7), dtype="int64")


@op(name="pool_scatter", batch=_batch.joined(0, 1))
def _pool_scatter(x, index, *, size: "ints"):
    """Sum of elements at flat spatial indices of new planes, zero elsewhere.

    Shapes: x and index [N, C, *positions] -> [N, C, *size].  dtypes: x any, index integers.
    """
    return _np_scatter(x, index, size)


@_pool_scatter.infer
def _pool_scatter(x, index, *, size):
    if x.shape != index.shape:
        raise ValueError(f"x and index must have the same shape, got {x.shape} and {index.shape}")
    return TensorType(x.dtype, (*x.shape[:2], *size))


@_pool_scatter.vjp
def _pool_scatter(ct, index, *, size):
    return _pool_take(ct, index), None


@_pool_scatter.samples
def _pool_scatter(rand):
    yield rand(2, 3, 2, 2), rand.ints(0, 20, (2, 3, 2, 2), dtype="int64"), dict(size=(4, 5))
    yield rand(1, 2, 7), rand.ints(0, 6, (1, 2, 7), dtype="int32"), dict(size=(6,))
    yield rand(0, 2, 7), rand.ints(0, 6, (0, 2, 7), dtype="int64"), dict(size=(6,))


def _infer_max(x, kernel, stride, pad, dilation, ceil, data_format="NCHW"):
    if x.dtype.is_bool or x.dtype.is_complex:
        raise errors.dtype_error(f"x must hold integer or floating numbers, but is {x.dtype.name}")
    kernel, stride, pad, dilation = _attributes(x.rank - 2, kernel, stride, pad, dilation)
    batch, channels, size = _split_shape(x.shape, data_format)
    return _shaped(batch, channels, _positions(size, kernel, stride, pad, dilation, ceil), data_format)


def _max_taps(x, kernel, stride, pad, dilation, ceil):
    return _np_taps(x.shape[2:], *_attributes(x.ndim - 2, kernel, stride, pad, dilation), ceil)


def _max_samples(rand):
    """Inputs and attributes for the ops on regular maximum windows."""
    yield rand.distinct(2, 3, 6, 8), dict(kernel=(2, 2), stride=(2, 2), pad=(0,))
    yield rand.distinct(1, 2, 7, 6), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    yield rand.distinct(1, 2, 5, 7), dict(kernel=(3, 2), stride=(2, 3), pad=(1, 0, 0, 1), ceil=True)
    yield rand.distinct(1, 1, 7, 7), dict(kernel=(2, 3), stride=(1, 2), dilation=(2, 2))
    yield rand.distinct(2, 2, 9), dict(kernel=(3,), stride=(2,), pad=(1, 1))
    yield rand.distinct(1, 1, 4, 4, 5), dict(kernel=(2, 2, 3), stride=(2, 1, 2), pad=(1, 0, 1, 0, 1, 1))
    yield rand.distinct(1, 1, 5, 5), dict(kernel=(1, 2), stride=(3, 4))  # stride beyond the window
    yield rand.distinct(1, 1, 1, 1), dict(kernel=(1, 1))
    yield rand(0, 2, 4, 4), dict(kernel=(2, 2), stride=(2, 2))
    yield rand.distinct(2, 3, 34, 37), dict(kernel=(2, 2), stride=(2, 2), _grad=False)
    yield rand.distinct(2, 3, 34, 37), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1), _grad=False)


def _max_last_samples(rand):
    """The same for channels last."""
    last = dict(data_format="NHWC")
    yield rand.distinct(2, 6, 8, 3), dict(kernel=(2, 2), stride=(2, 2), pad=(0,), **last)
    yield rand.distinct(1, 7, 6, 2), dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1), **last)
    yield rand.distinct(1, 5, 7, 2), dict(kernel=(3, 2), stride=(2, 3), pad=(1, 0, 0, 1), ceil=True, **last)
    yield rand.distinct(1, 7, 7, 1), dict(kernel=(2, 3), stride=(1, 2), dilation=(2, 2), **last)
    yield rand.distinct(2, 9, 2), dict(kernel=(3,), stride=(2,), pad=(1, 1), **last)
    yield rand.distinct(1, 5, 5, 1), dict(kernel=(1, 2), stride=(3, 4), **last)
    yield rand(0, 4, 4, 2), dict(kernel=(2, 2), stride=(2, 2), **last)
    large = dict(pad=(1, 1, 1, 1), _grad=False, **last)
    yield rand.distinct(2, 15, 16, 37), dict(kernel=(3, 3), stride=(2, 2), **large)
    yield rand.distinct(1, 9, 8, 48), dict(kernel=(3, 3), stride=(1, 1), **large)


@op(name="max_pool", batch=_batch.joined(0), layout=_layout.formatted((0,), (0,)), exact=True)
def _max_pool(
    x,
    *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,),
    ceil: "bool" = False, data_format: "NCHW|NHWC" = "NCHW",
):  # fmt: skip
    """Largest element of each window; NaN is never the largest, padding never wins.

    Shapes: x [N, C, *size] ("NHWC": [N, *size, C]) -> [N, C, *positions] (or with C last).
    dtypes: floating, integers.
    Errors: ValueError if a window does not fit or the padding is not smaller than the window.
    """
    x = _np_first(x, data_format)
    return _np_restored(_np_max(x, _max_taps(x, kernel, stride, pad, dilation, ceil)), data_format)


@_max_pool.infer
def _max_pool(x, *, kernel, stride, pad, dilation, ceil, data_format):
    return TensorType(x.dtype, _infer_max(x, kernel, stride, pad, dilation, ceil, data_format))


@_max_pool.vjp
def _max_pool(ct, x, *, kernel, stride, pad, dilation, ceil, data_format):
    how = dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, ceil=ceil, data_format=data_format)
    return _max_pool_grad(x, ct, **how)


@_max_pool.samples
def _max_pool(rand):
    yield from _max_samples(rand)
    yield from _max_last_samples(rand)
    yield rand.ints(-9, 9, (1, 2, 4, 4)), dict(kernel=(2, 2), stride=(2, 2), _grad=False)


@op(name="max_pool_index", nondiff=True, batch=_batch.joined(0))
def _max_pool_index(
    x,
    *,
    kernel: "ints",
    stride: "ints" = (1,),
    pad: "ints" = (0,),
    dilation: "ints" = (1,),
    ceil: "bool" = False,
):
    """Flat spatial index of each window's first largest element, see `max_pool`.

    Shapes: x [N, C, *size] -> int64 [N, C, *positions].
    """
    return np.maximum(_np_argmax(x, _max_taps(x, kernel, stride, pad, dilation, ceil)), 0)


@_max_pool_index.infer
def _max_pool_index(x, *, kernel, stride, pad, dilation, ceil):
    return TensorType(int64, _infer_max(x, kernel, stride, pad, dilation, ceil))


@_max_pool_index.samples
def _max_pool_index(rand):
    yield from _max_samples(rand)


@op(name="max_pool_grad", batch=_batch.joined(0, 1), layout=_layout.formatted((0, 1), (0,)))
def _max_pool_grad(
    x, dy,
    *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,),
    ceil: "bool" = False, data_format: "NCHW|NHWC" = "NCHW",
):  # fmt: skip
    """Gradient of `max_pool`: dy is added where each window's first largest element lies.

    Shapes: x [N, C, *size], dy [N, C, *positions] ("NHWC": both with C last) -> x's.
    """
    x, dy = _np_first(x, data_format), _np_first(dy, data_format)
    index = _np_argmax(x, _max_taps(x, kernel, stride, pad, dilation, ceil))
    grad = _np_scatter(np.where(index < 0, 0, dy), np.maximum(index, 0), x.shape[2:])
    return _np_restored(grad, data_format)


@_max_pool_grad.infer
def _max_pool_grad(x, dy, *, kernel, stride, pad, dilation, ceil, data_format):
    expected = _infer_max(x, kernel, stride, pad, dilation, ceil, data_format)
    if -1 not in (*expected, *dy.shape) and dy.shape != expected:
        raise ValueError(f"dy must have shape {expected} for x of shape {x.shape}, got {dy.shape}")
    return x


@_max_pool_grad.vjp
def _max_pool_grad(ct, x, *, kernel, stride, pad, dilation, ceil, data_format):
    how = dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, ceil=ceil)
    index = _max_pool_index(_turned(x, data_format), **how)
    return None, _restored(_pool_take(_turned(ct, data_format), index), data_format)


@_max_pool_grad.samples
def _max_pool_grad(rand):
    for x, how in (*_max_samples(rand), *_max_last_samples(rand)):
        plain = {name: value for name, value in how.items() if not name.startswith("_")}
        geometry = {"stride": (1,), "pad": (0,), "dilation": (1,), "ceil": False, **plain}
        yield x, rand(*_infer_max(TensorType(float32, x.shape), **geometry)), how


def _pool_arguments(owner, x, rank, kernel_size, stride, padding, full_padding=False):
    """Kernel, stride (the kernel when None) and explicit pads; `full_padding`: tuples hold begin and end."""
    if x.ndim != rank + 2:
        raise errors.value_error(f"For '{owner}', the input must have rank {rank + 2}, got shape {x.shape}")
    kernel = _conv_geometry.spread("kernel_size", kernel_size, rank, 1, owner)
    stride = kernel if stride is None else _conv_geometry.spread("stride", stride, rank, 1, owner)
    if full_padding and isinstance(padding, (tuple, list)) and len(padding) != 1:
        both = _conv_geometry.spread("padding", padding, 2 * rank, 0, owner)
        pad = (*both[0::2], *both[1::2])
    else:
        pad = _conv_geometry.spread("padding", padding, rank, 0, owner) * 2
    return kernel, stride, pad


def max_pool(x, kernel, stride, pad, dilation=1, ceil_mode=False, return_indices=False, owner="max_pool"):
    """Largest elements of windows over one to three dimensions, `pad` explicit (all begins, then all ends).

    What the nn layers and the public functions share.  Returns the values, or values and flat int64 indices.
    """
    how = dict(
        kernel=kernel, stride=stride, pad=pad, ceil=ceil_mode,
        dilation=_conv_geometry.spread("dilation", dilation, x.ndim - 2, 1, owner),
    )  # fmt: skip
    if not return_indices:
        return _max_pool(x, **how)
    index = _max_pool_index(x, **how)
    return _pool_take(x, index), index


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
    """Largest element of each window of an image.

    Shapes: x [N, C, H, W] -> [N, C, *positions], with `return_indices` also int64 indices into H * W.
    Errors: ValueError if a padding exceeds half the window.
    """
    return _public_max_pool(
        "max_pool2d", 2, x, kernel_size, stride, padding, dilation, return_indices, ceil_mode
    )


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest element of each window of a volume, see `max_pool2d`.

    Shapes: x [N, C, D, H, W] -> [N, C, *positions], with `return_indices` also int64 indices into D * H * W.
    """
    return _public_max_pool(
        "max_pool3d", 3, x, kernel_size, stride, padding, dilation, return_indices, ceil_mode
    )


def _public_max_pool(owner, rank, x, kernel_size, stride, padding, dilation, return_indices, ceil_mode):
    kernel, stride, pad = _pool_arguments(owner, x, rank, kernel_size, stride, padding)
    if any(2 * p > k for p, k in zip(pad[:rank], kernel, strict=True)):
        raise errors.value_error(
            f"For '{owner}', 'padding' must be at most half of 'kernel_size' {kernel}, got {padding}"
        )
    return max_pool(x, kernel, stride, pad, dilation, ceil_mode, return_indices, owner)


__all__ = ["max_pool2d", "max_pool3d"]
