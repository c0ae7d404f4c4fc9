"""Largest elements put back to where they were found."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.nn_ops.pool import _pool_arguments, _pool_take


@op(name="max_unpool", batch=_batch.joined(0, 1))
def _max_unpool(x, index, *, size: "ints"):
    """Elements put at flat spatial indices of new planes, zero elsewhere; of equal indices the last stays.

    Shapes: x and index [N, C, *positions] -> [N, C, *size].  dtypes: x any, index integers.
    Errors: IndexError if an index lies outside the planes.
    """
    plane = math.prod(size)
    if index.size and (index.min() < 0 or index.max() >= plane):
        raise IndexError(
            f"indices must be in [0, {plane}) for size {size}, got {index.min()} to {index.max()}"
        )
    out = np.zeros((*x.shape[:2], plane), x.dtype)
    np.put_along_axis(out, index.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), -1)
    return out.reshape(*x.shape[:2], *size)


@_max_unpool.infer
def _max_unpool(x, index, *, size):
    if x.shape != index.shape:
        raise ValueError(f"x and index must have the same shape, got {x.shape} and {index.shape}")
    return TensorType(x.dtype, (*x.shape[:2], *size))


@_max_unpool.vjp
def _max_unpool(ct, index, *, size):
    return _pool_take(ct, index), None


@_max_unpool.samples
def _max_unpool(rand):
    yield rand(1, 2, 2, 2), np.array([[[[0, 2], [9, 11]], [[5, 3], [8, 14]]]]), dict(size=(4, 4))
    yield rand(2, 1, 3), np.array([[[0, 2, 4]], [[5, 1, 3]]], np.int32), dict(size=(6,))


def _unpool(owner, rank, x, indices, kernel_size, stride, padding, output_size):
    if x.ndim not in (rank + 1, rank + 2):
        raise errors.value_error(
            f"For '{owner}', x must have rank {rank + 1} or {rank + 2}, got shape {x.shape}"
        )
    if x.shape != indices.shape:
        raise errors.value_error(f"For '{owner}', indices must have x's shape {x.shape}, got {indices.shape}")
    batch = x.ndim == rank + 2
    values, index = (x, indices) if batch else (_shape.reshape(t, (1, *t.shape)) for t in (x, indices))
    kernel, stride, pad = _pool_arguments(
        owner, values, rank, kernel_size, None if stride in (None, 0) else stride, padding
    )
    size = tuple((n - 1) * stride[d] - 2 * pad[d] + kernel[d] for d, n in enumerate(values.shape[2:]))
    if output_size:
        wanted = tuple(output_size)[-rank:]
        if len(output_size) not in (rank, x.ndim) or any(
            not n - s <= w <= n + s for w, n, s in zip(wanted, size, stride, strict=True)
        ):
            raise errors.value_error(
                f"For '{owner}', 'output_size' must be {rank} sizes near {size}, got {output_size}"
            )
        size = wanted
    y = _max_unpool(values, index, size=size)
    return y if batch else _shape.reshape(y, y.shape[1:])


def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts maxima of a sequence back where `indices` say, zero elsewhere.

    Shapes: x and indices [N, C, L] or [C, L] -> [..., size],
    size ``(L - 1) * stride - 2 * padding + kernel_size`` or `output_size`.  Errors: ValueError for a size too
    far from that, IndexError for an index outside it.
    """
    return _unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts maxima of an image back where `indices` (into H * W of the result) say, see `max_unpool1d`.

    Shapes: x and indices [N, C, H, W] or [C, H, W] -> [..., *sizes].
    """
    return _unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts maxima of a volume back where `indices` (into D * H * W of the result) say, see `max_unpool1d`.

    Shapes: x and indices [N, C, D, H, W] or [C, D, H, W] -> [..., *sizes].
    """
    return _unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)


__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]
