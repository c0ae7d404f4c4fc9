"""Images in another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.engine import ops
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.operators.arguments import ints
from mycelia.io.mindir.operators.table import operator


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
