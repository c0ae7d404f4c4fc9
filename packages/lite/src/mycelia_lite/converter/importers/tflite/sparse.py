"""Sparse weights as dense ones: axes in an order of their own, each dense or with the indices it has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def dense(sparsity: Any, shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    """The tensor of this shape; blocks are axes behind those of the tensor.

    Errors: ValueError where the description does not fit the shape or the values.
    """
    rank = len(shape)
    order, blocks, levels = sparsity.traversal_order, sparsity.block_map, sparsity.dim_metadata
    if len(levels) != rank + len(blocks) or sorted(order) != list(range(len(levels))):
        raise ValueError(
            f"{len(levels)} levels in the order {order} for {rank} axes and {len(blocks)} blocks"
        )
    if any(not 0 <= b < rank for b in blocks):
        raise ValueError(f"blocks {blocks} of {rank} axes")
    sizes = list(shape)
    block_sizes = []
    for position, axis in enumerate(blocks):
        level = levels[order.index(rank + position)]
        size = level.dense_size
        if level.format.name != "DENSE" or size < 1 or sizes[axis] % size:
            raise ValueError(f"blocks of {size} along an axis of {sizes[axis]}")
        sizes[axis] //= size
        block_sizes.append(size)
    sizes += block_sizes
    # Each level turns the places so far into the places of its elements.
    places = np.zeros(1, np.int64)  # in the tensor whose axes are in `order`
    for level, axis in zip(levels, order):
        size = sizes[axis]
        if getattr(level.format, "name", "") == "DENSE":
            if level.dense_size != size:
                raise ValueError(f"a dense level of {level.dense_size} for an axis of {size}")
            if places.size * size > values.size:
                raise ValueError(f"more than the {values.size} values that are there are needed")
            places = (places[:, None] * size + np.arange(size)).reshape(-1)
            continue
        if getattr(level.format, "name", "") != "SPARSE_CSR":
            raise ValueError(f"a level of the format {level.format}")
        segments, indices = _numbers(level.array_segments), _numbers(level.array_indices)
        if segments.size != places.size + 1 or segments[0] or segments[-1] != indices.size:
            raise ValueError(f"{segments.size} segments for {places.size} rows and {indices.size} indices")
        counts = np.diff(segments)
        if (counts < 0).any() or (indices.size and not 0 <= indices.min() <= indices.max() < size):
            raise ValueError(f"segments or indices that do not fit an axis of {size}")
        places = np.repeat(places, counts) * size + indices
    if places.size != values.size:
        raise ValueError(f"{values.size} values for {places.size} places")
    made = np.zeros(math.prod(sizes), values.dtype)
    made[places] = values
    made = made.reshape([sizes[a] for a in order]).transpose(np.argsort(order))
    # A block goes behind the axis that it divides.
    axes = []
    for axis in range(rank):
        axes += [axis, *(rank + i for i, b in enumerate(blocks) if b == axis)]
    return made.transpose(axes).reshape(shape)


def _numbers(vector: Any) -> np.ndarray:
    if vector is None:
        raise ValueError("a sparse level without segments or indices")
    if vector.kind == "Uint8Vector":
        return np.frombuffer(vector.values, np.uint8).astype(np.int64)
    return np.asarray(vector.values, np.int64)
