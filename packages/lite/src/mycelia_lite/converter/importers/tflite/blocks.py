"""Operators of TensorFlow Lite that move blocks of pixels to channels or images, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    integers,
    is_number,
    known_shape,
    need_known,
    shape_of,
)
from mycelia_lite.converter.importers.tflite.arrays import cut
from mycelia_lite.converter.importers.tflite.calls import Call, operator, rank_of


@operator("SPACE_TO_DEPTH")
def _space_to_depth(call, x):
    size = call.get("SpaceToDepthOptions", "block_size")
    n, h, w, c = _image(call, x)
    if size < 1 or h % size or w % size:
        raise call.option("block_size", size, f"does not divide images of {h} times {w} pixels")
    turned = ops.transpose(ops.reshape(x, (n, h // size, size, w // size, size, c)), (0, 1, 3, 2, 4, 5))
    return ops.reshape(turned, (n, h // size, w // size, size * size * c))


@operator("DEPTH_TO_SPACE")
def _depth_to_space(call, x):
    size = call.get("DepthToSpaceOptions", "block_size")
    n, h, w, c = _image(call, x)
    if size < 1 or c % (size * size):
        raise call.option("block_size", size, f"does not divide {c} channels")
    turned = ops.transpose(ops.reshape(x, (n, h, w, size, size, c // size**2)), (0, 1, 3, 2, 4, 5))
    return ops.reshape(turned, (n, h * size, w * size, c // size**2))


def _image(call: Call, x: Any) -> tuple:
    if rank_of(x) != 4:
        raise call.fail(f"images of {rank_of(x)} axes, 4 are needed")
    return known_shape(call, x, (1, 2, 3))


def _blocks(call: Call, x: Any, block: Any, rows: Any, name: str) -> tuple[list[int], np.ndarray]:
    sizes = integers(call, block, "block_shape")
    borders = need_known(call, rows, name)
    if (
        borders.shape != (len(sizes), 2)
        or len(sizes) >= rank_of(x)
        or min(sizes, default=1) < 1
        or borders.min(initial=0) < 0
    ):
        raise call.fail(f"blocks {sizes} and {name} {borders.tolist()} of {list(shape_of(x))}")
    return sizes, borders.astype(int)


@operator("SPACE_TO_BATCH_ND")
def _space_to_batch(call, x, block, pads):
    """Elements at the same place in each block become an image of their own."""
    sizes, rows = _blocks(call, x, block, pads, "paddings")
    m, rank = len(sizes), rank_of(x)
    both = [n for row in reversed([(0, 0), *rows.tolist(), *[(0, 0)] * (rank - 1 - m)]) for n in row]
    x = ops.pad(x, both) if rows.any() else x
    n, *rest = known_shape(call, x, range(1, rank))
    if any(s % b for s, b in zip(rest, sizes)):
        raise call.fail(f"blocks {sizes} of {rest}")
    split = [v for s, b in zip(rest, sizes) for v in (s // b, b)]
    x = ops.reshape(x, (n, *split, *rest[m:]))
    order = [*(2 + 2 * i for i in range(m)), 0, *(1 + 2 * i for i in range(m)), *range(1 + 2 * m, rank + m)]
    batch = n * math.prod(sizes) if is_number(n) else -1
    return ops.reshape(
        ops.transpose(x, tuple(order)), (batch, *(s // b for s, b in zip(rest, sizes)), *rest[m:])
    )


@operator("BATCH_TO_SPACE_ND")
def _batch_to_space(call, x, block, crops):
    sizes, rows = _blocks(call, x, block, crops, "crops")
    m, rank = len(sizes), rank_of(x)
    n, *rest = known_shape(call, x, range(1, rank))
    count = math.prod(sizes)
    if is_number(n) and n % count:
        raise call.fail(f"blocks {sizes} of {n} images")
    batch = n // count if is_number(n) else -1
    x = ops.reshape(x, (*sizes, batch, *rest))
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, rank + m)]
    x = ops.reshape(ops.transpose(x, tuple(order)), (batch, *(s * b for s, b in zip(rest, sizes)), *rest[m:]))
    if not rows.any():
        return x
    ends = [s * b - int(r[1]) for s, b, r in zip(rest, sizes, rows)]
    begin = [0, *(int(r[0]) for r in rows), *[0] * (rank - 1 - m)]
    size = [shape_of(x)[0], *(e - b for e, b in zip(ends, begin[1:])), *rest[m:]]
    if min(size[1:]) < 0:
        raise call.fail(f"crops {rows.tolist()} of {list(shape_of(x))}")
    return cut(x, begin, [1] * rank, size)


@operator("DILATE")
def _dilate(call, x, steps, fill):
    """x with its elements `steps` apart along each axis, and `fill` between them."""
    steps, shape = integers(call, steps, "dilations"), list(known_shape(call, x))
    if len(steps) != len(shape) or min(steps, default=1) < 1:
        raise call.fail(f"dilations {steps} of {shape}")
    value = need_known(call, fill, "padding_value").reshape(()).item()
    for axis, step in enumerate(steps):
        n = shape[axis]
        if step == 1 or n < 2:
            continue
        wide = ops.expand_dims(x, axis + 1)
        behind = [0] * (2 * (wide.ndim - axis - 2)) + [0, step - 1]
        wide = ops.pad(wide, behind, "constant", value)
        joined = ops.reshape(wide, (*shape[:axis], n * step, *shape[axis + 1 :]))
        shape[axis] = (n - 1) * step + 1
        x = joined[(slice(None),) * axis + (slice(0, shape[axis]),)]
    return x
