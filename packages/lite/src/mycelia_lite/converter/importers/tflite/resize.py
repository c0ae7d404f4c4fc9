"""Resizing of images in TensorFlow Lite: along each axis a product with a matrix, or a gather."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import known_shape, need_known, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, operator


def sizes_of(call: Call, table: str, x: Any, size: Any) -> tuple[list[int], list[int], bool, bool]:
    """Height and width before and after, and whether corners and half pixels are aligned."""
    if len(shape_of(x)) != 4:
        raise call.fail(f"images of {len(shape_of(x))} axes, 4 are needed")
    wanted = need_known(call, size, "size").reshape(-1).tolist()
    if len(wanted) != 2 or min(wanted) < 1 or max(wanted) > 1 << 16:
        raise call.fail(f"a size of {wanted}", Code.GRAPH_FILE_ERROR)
    corners, halves = call.get(table, "align_corners"), call.get(table, "half_pixel_centers")
    shape = known_shape(call, x, (1, 2, 3))
    if min(shape[1:3]) < 1:
        raise call.fail("images without elements")
    return list(shape[1:3]), wanted, corners, halves


def bilinear_sizes(call: Call, x: Any, size: Any) -> tuple[list[int], list[int], bool, bool]:
    """`sizes_of` of RESIZE_BILINEAR. Errors: ConversionError for both ways of alignment at once."""
    found = sizes_of(call, "ResizeBilinearOptions", x, size)
    call.get("ResizeBilinearOptions", "new_height")  # of files older than the input `size`
    call.get("ResizeBilinearOptions", "new_width")
    if found[2] and found[3]:
        raise call.fail("align_corners and half_pixel_centers at once", Code.INVALID_OP_ATTR)
    return found


def neighbours(n: int, out: int, corners: bool, halves: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of `out` places the elements before and behind it, and how far it is behind the first.

    Before the first element, which is both then, it is less than 0.
    """
    places = np.arange(out, dtype=np.float32)
    scale = _scale(n, out, corners)
    places = (places + np.float32(0.5)) * scale - np.float32(0.5) if halves else places * scale
    low = np.maximum(np.floor(places), 0).astype(np.int64)
    high = np.minimum(np.ceil(places), n - 1).astype(np.int64)
    low = np.minimum(low, n - 1)
    return low, high, (places - low).astype(np.float32)


def _scale(n: int, out: int, corners: bool) -> np.float32:
    if corners and out > 1:
        return np.float32(n - 1) / np.float32(out - 1)
    return np.float32(n) / np.float32(out)


@operator("RESIZE_BILINEAR")
def _bilinear(call, x, size):
    before, after, corners, halves = bilinear_sizes(call, x, size)
    for axis, (n, out) in enumerate(zip(before, after), 1):
        if n == out:
            continue
        low, high, part = neighbours(n, out, corners, halves)
        part = np.clip(part, 0, None)
        matrix = np.zeros((out, n), np.float32)
        np.add.at(matrix, (np.arange(out), low), 1 - part)
        np.add.at(matrix, (np.arange(out), high), part)
        x = _along(x, axis, matrix)
    return x


def _along(x: Any, axis: int, matrix: np.ndarray) -> Any:
    """Images with rows (axis 1) or columns (axis 2) multiplied by a matrix [out, n]."""
    n, h, w, c = shape_of(x)
    weights = ms.Tensor(matrix)
    if axis == 2:
        return ops.matmul(weights, x)
    flat = ops.matmul(weights, ops.reshape(x, (n, h, w * c)))
    return ops.reshape(flat, (n, matrix.shape[0], w, c))


@operator("RESIZE_NEAREST_NEIGHBOR")
def _nearest(call, x, size):
    before, after, corners, halves = sizes_of(call, "ResizeNearestNeighborOptions", x, size)
    for axis, (n, out) in enumerate(zip(before, after), 1):
        places = np.arange(out, dtype=np.float32) + np.float32(0.5 if halves else 0)
        places = places * _scale(n, out, corners)
        places = np.floor(places + np.float32(0.5)) if corners else np.floor(places)
        places = np.clip(places, 0, n - 1).astype(np.int64)
        if n != out or (places != np.arange(n)).any():
            x = ops.gather(x, ms.Tensor(places), axis)
    return x
