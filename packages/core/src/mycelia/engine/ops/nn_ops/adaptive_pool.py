"""Adaptive pooling: windows that cover the data evenly, as many as the result is to have elements.

Layout and indices are those of `pool.py`: x [N, C, *spatial], flat spatial indices.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import int32, int64
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.engine.ops.nn_ops.average_pool import _np_mix
from mycelia.engine.ops.nn_ops.pool import _np_argmax, _np_max, _pool_scatter, _pool_take
from mycelia.engine.ops.nn_ops.pool_geometry import _check_size


def _adaptive_windows(n, positions):
    """Begin and end of each adaptive window: ``floor(i * n / positions)``,
    ``ceil((i + 1) * n / positions)``.
    """
    i = np.arange(positions)
    return i * n // positions, -(-(i + 1) * n // positions)


def _np_adaptive_taps(size, positions):
    """The same for adaptive windows; taps behind a window's end are -1."""
    taps = []
    for n, p in zip(size, positions, strict=True):
        begin, end = _adaptive_windows(n, p)
        index = begin[:, None] + np.arange(max((end - begin).max(initial=0), 1))
        taps.append(np.where(index < end[:, None], index, -1))
    return taps


def _np_adaptive_matrices(size, positions):
    """For each dimension, weights [positions, size] of the mean over its adaptive windows."""
    matrices = []
    for n, p in zip(size, positions, strict=True):
        begin, end = _adaptive_windows(n, p)
        column = np.arange(n)
        inside = (column >= begin[:, None]) & (column < end[:, None])
        matrices.append(inside / np.maximum(end - begin, 1)[:, None])
    return matrices


@op(name="adaptive_max_pool", batch=_batch.joined(0), exact=True)
def _adaptive_max_pool(x, *, size: "ints"):
    """Largest element of each of `size` windows that cover the data evenly, see `adaptive_avg_pool`.

    Shapes: x [N, C, *spatial] -> [N, C, *size].  dtypes: floating, integers.
    """
    return _np_max(x, _np_adaptive_taps(x.shape[2:], size))


@_adaptive_max_pool.infer
def _adaptive_max_pool(x, *, size):
    _check_size(size, x.rank - 2, x.shape[2:])
    return TensorType(x.dtype, (*x.shape[:2], *size))


@_adaptive_max_pool.vjp
def _adaptive_max_pool(ct, x, *, size):
    return _pool_scatter(ct, _adaptive_max_pool_index(x, size=size), size=x.shape[2:])


@_adaptive_max_pool.samples
def _adaptive_max_pool(rand):
    yield rand.distinct(2, 2, 7, 5), dict(size=(3, 2))
    yield rand.distinct(1, 2, 2, 3), dict(size=(4, 3))  # more windows than elements
    yield rand.distinct(1, 2, 6), dict(size=(4,))
    yield rand.distinct(1, 1, 3, 4, 5), dict(size=(2, 4, 1))
    yield rand(0, 2, 4, 4), dict(size=(2, 2))


@op(name="adaptive_max_pool_index", nondiff=True, batch=_batch.joined(0))
def _adaptive_max_pool_index(x, *, size: "ints"):
    """Flat spatial index of each adaptive window's first largest element.

    Shapes: x [N, C, *spatial] -> int64 [N, C, *size].
    """
    return _np_argmax(x, _np_adaptive_taps(x.shape[2:], size))


@_adaptive_max_pool_index.infer
def _adaptive_max_pool_index(x, *, size):
    _check_size(size, x.rank - 2, x.shape[2:])
    return TensorType(int64, (*x.shape[:2], *size))


@_adaptive_max_pool_index.samples
def _adaptive_max_pool_index(rand):
    yield rand.distinct(2, 2, 7, 5), dict(size=(3, 2))
    yield rand.distinct(1, 2, 2, 3), dict(size=(4, 3))
    yield rand.distinct(1, 1, 3, 4, 5), dict(size=(2, 4, 1))


def _even_window(data, positions):
    """The window of adaptive pooling of images, if it is the same everywhere; else None."""
    if not (_layout.is_image(data) and _layout.is_image(positions)):
        return None
    (h, w), (rows, columns) = data.type.shape[2:], positions.type.shape[2:]
    if 0 in (h, w, rows, columns) or h % rows or w % columns:
        return None
    return h // rows, w // columns


@op(
    name="adaptive_avg_pool",
    batch=_batch.joined(0),
    layout=_layout.where(
        lambda node: _even_window(node.inputs[0], node.outputs[0]), _layout.images((0,), (0,))
    ),
)
def _adaptive_avg_pool(x, *, size: "ints"):
    """Mean of each of `size` windows that cover the data evenly.

    Window i of p over n elements: ``floor(i * n / p)`` up to, not including, ``ceil((i + 1) * n / p)``.
    Shapes: x [N, C, *spatial] -> [N, C, *size].  dtypes: floating.
    """
    return _np_mix(x, _np_adaptive_matrices(x.shape[2:], size))


@_adaptive_avg_pool.infer
def _adaptive_avg_pool(x, *, size):
    need_floating(x=x)
    _check_size(size, x.rank - 2, x.shape[2:])
    return TensorType(x.dtype, (*x.shape[:2], *size))


@_adaptive_avg_pool.vjp
def _adaptive_avg_pool(ct, x_shape, *, size):
    return _adaptive_avg_pool_grad(ct, size=x_shape[2:])


@_adaptive_avg_pool.samples
def _adaptive_avg_pool(rand):
    yield rand(2, 2, 7, 5), dict(size=(3, 2))
    yield rand(2, 3, 4, 6), dict(size=(1, 1))
    yield rand(1, 2, 2, 3), dict(size=(4, 3))  # more windows than elements
    yield rand(1, 2, 6), dict(size=(4,))
    yield rand(1, 1, 3, 4, 5), dict(size=(2, 4, 1))
    yield rand(0, 2, 4, 4), dict(size=(2, 2))


@_adaptive_avg_pool.layout
def _adaptive_avg_pool(rewriter, node):
    kernel = _even_window(node.inputs[0], node.outputs[0])
    how = dict(kernel=kernel, stride=kernel, data_format="NHWC")
    return rewriter.emit("avg_pool", [rewriter.last(node.inputs[0])], how, rewriter.types)


@op(
    name="adaptive_avg_pool_grad",
    batch=_batch.joined(0),
    layout=_layout.where(
        lambda node: _even_window(node.outputs[0], node.inputs[0]), _layout.images((0,), (0,))
    ),
)
def _adaptive_avg_pool_grad(dy, *, size: "ints"):
    """Gradient of `adaptive_avg_pool` for data of spatial `size`.

    Shapes: dy [N, C, *positions] -> [N, C, *size].  dtypes: floating.
    """
    return _np_mix(dy, [m.T for m in _np_adaptive_matrices(size, dy.shape[2:])])


@_adaptive_avg_pool_grad.infer
def _adaptive_avg_pool_grad(dy, *, size):
    _check_size(size, dy.rank - 2)
    return TensorType(dy.dtype, (*dy.shape[:2], *size))


@_adaptive_avg_pool_grad.vjp
def _adaptive_avg_pool_grad(ct, dy_shape, *, size):
    return _adaptive_avg_pool(ct, size=dy_shape[2:])


@_adaptive_avg_pool_grad.samples
def _adaptive_avg_pool_grad(rand):
    yield rand(2, 2, 3, 2), dict(size=(7, 5))
    yield rand(2, 3, 1, 1), dict(size=(4, 6))
    yield rand(1, 2, 4, 3), dict(size=(2, 3))
    yield rand(1, 2, 4), dict(size=(6,))
    yield rand(0, 2, 2, 2), dict(size=(4, 4))


@_adaptive_avg_pool_grad.layout
def _adaptive_avg_pool_grad(rewriter, node):
    kernel = _even_window(node.outputs[0], node.inputs[0])
    how = dict(size=node.outputs[0].type.shape[2:], kernel=kernel, stride=kernel, data_format="NHWC")
    return rewriter.emit("avg_pool_grad", [rewriter.last(node.inputs[0])], how, rewriter.types)


def _adaptive(owner, rank, x, output_size, pool):
    """`pool` on x with or without a batch dimension, None in `output_size` meaning the input's own extent."""
    if x.ndim not in (rank + 1, rank + 2):
        raise errors.value_error(
            f"For '{owner}', the input must have rank {rank + 1} or {rank + 2}, got shape {x.shape}"
        )
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(sizes) != rank:
        raise errors.value_error(
            f"For '{owner}', 'output_size' must be an int or have {rank} entries, got {output_size!r}"
        )
    own = x.shape[-rank:]
    size = _conv_geometry.spread(
        "output_size", tuple(n if s is None else s for s, n in zip(sizes, own, strict=True)), rank, 0, owner
    )
    if x.ndim == rank + 2:
        return pool(x, size)
    result = pool(_shape.reshape(x, (1, *x.shape)), size)
    if isinstance(result, tuple):
        return tuple(_shape.reshape(r, r.shape[1:]) for r in result)
    return _shape.reshape(result, result.shape[1:])


def _adaptive_1d(owner, input, output_size, pool):
    if input.ndim != 3:
        raise errors.value_error(f"For '{owner}', the input must have rank 3, got shape {input.shape}")
    (size,) = _conv_geometry.spread("output_size", output_size, 1, 1, owner)
    if input.shape[-1] % size:
        raise errors.value_error(
            f"For '{owner}', the last extent must be divisible by output size {size}, got {input.shape[-1]}"
        )
    return pool(input, (size,))


def _mean_windows(x, size):
    return _adaptive_avg_pool(x, size=size)


def _max_windows(x, size):
    return _adaptive_max_pool(x, size=size)


def _max_windows_indexed(x, size):
    index = _adaptive_max_pool_index(x, size=size)
    return _pool_take(x, index), index


def adaptive_avg_pool1d(input, output_size):
    """Mean of each of `output_size` equal windows of a sequence.

    Shapes: input [N, C, L] -> [N, C, output_size].
    Errors: ValueError if L is not divisible by `output_size`.
    """
    return _adaptive_1d("adaptive_avg_pool1d", input, output_size, _mean_windows)


def adaptive_avg_pool2d(input, output_size):
    """Mean of windows that cover an image evenly; an entry None of `output_size` keeps the extent.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *output_size].  dtypes: floating.
    """
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size, _mean_windows)


def adaptive_avg_pool3d(input, output_size):
    """Mean of windows that cover a volume evenly, see `adaptive_avg_pool2d`.

    Shapes: input [N, C, D, H, W] or [C, D, H, W] -> [..., *output_size].
    """
    return _adaptive("adaptive_avg_pool3d", 3, input, output_size, _mean_windows)


def adaptive_max_pool1d(input, output_size):
    """Largest element of each of `output_size` equal windows of a sequence.

    Shapes: input [N, C, L] -> [N, C, output_size].
    Errors: ValueError if L is not divisible by `output_size`.
    """
    return _adaptive_1d("adaptive_max_pool1d", input, output_size, _max_windows)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest element of windows that cover an image evenly; `return_indices` adds int64 indices into H * W.

    Shapes: input [N, C, H, W] or [C, H, W] -> [..., *output_size].
    """
    pool = _max_windows_indexed if return_indices else _max_windows
    return _adaptive("adaptive_max_pool2d", 2, input, output_size, pool)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Largest element of windows that cover a volume evenly, with `return_indices` also int32 indices.

    Shapes: input [N, C, D, H, W] or [C, D, H, W] -> [..., *output_size].
    """
    if 0 in input.shape:
        raise errors.runtime_error(
            f"adaptive_max_pool3d: input must not be empty, but its shape is {tuple(input.shape)}"
        )
    if not return_indices:
        return _adaptive("adaptive_max_pool3d", 3, input, output_size, _max_windows)
    y, index = _adaptive("adaptive_max_pool3d", 3, input, output_size, _max_windows_indexed)
    return y, index.astype(int32)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d",
]  # fmt: skip
