"""Values of event files: scalars, images, histograms and tensors as messages of `mindspore.irpb`."""

from __future__ import annotations

import struct

import numpy as np

from mycelia.engine.base.wire import field
from mycelia.train.summary.events import double, png, single, text

# DataType of the graph schema by dtype name.
DATA_TYPES = {
    "Bool": 1, "Int8": 2, "Int16": 3, "Int32": 4, "Int64": 5, "UInt8": 6, "UInt16": 7, "UInt32": 8,
    "UInt64": 9, "Float16": 10, "Float32": 11, "Float64": 12, "BFloat16": 46,
}  # fmt: skip
_IMAGES_PER_ROW = 8
_SMALL_BUCKET, _BUCKET = struct.Struct("<BBBdBdBB"), struct.Struct("<BBBdBdBBB")


def scalar(array: np.ndarray) -> bytes:
    """The first element as a float."""
    return single(3, float(array.reshape(-1)[0]))


def canvas(batch: np.ndarray) -> np.ndarray | None:
    """The images [N, C, H, W] side by side as [H, W, 3] of uint8; None when C is neither 1 nor 3.

    uint8 stays; values within 0..1 become 0..255; others are spread over that range.
    """
    n, channels, height, width = batch.shape
    if channels not in (1, 3):
        return None
    if batch.dtype != np.uint8:
        values = batch.astype(np.float64)
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if low < 0 or high > 1:
            values = (values - low) / (high - low + 1)
        batch = (values * 255).astype(np.uint8)
    columns = min(n, _IMAGES_PER_ROW)
    rows = -(-n // _IMAGES_PER_ROW)
    if n < rows * columns:  # places without an image are black
        batch = np.concatenate([batch, np.zeros((rows * columns - n, *batch.shape[1:]), np.uint8)])
    grid = batch.reshape(rows, columns, channels, height, width).transpose(0, 3, 1, 4, 2)
    placed = grid.reshape(rows * height, columns * width, channels)
    return placed if channels == 3 else np.repeat(placed, 3, axis=2)


def image(array: np.ndarray) -> bytes | None:
    """A batch as one PNG; None when it is none of images."""
    pixels = canvas(array)
    if pixels is None:
        return None
    height, width, colors = pixels.shape
    return field(4, field(1, height) + field(2, width) + field(3, colors) + field(4, png(pixels)))


def bucket_count(n: int) -> int:
    """How many buckets a histogram of n finite values has."""
    if n == 0:
        return 1
    if n <= 5:
        return 2
    if n <= 10:
        return 3
    return n // 10 + 1 if n <= 880 else 90


def _bucket(left: float, width: float, count: int) -> bytes:
    """A bucket's field, its size, and its three fields with their keys; most counts have one or two bytes."""
    if count < 1 << 7:
        return _SMALL_BUCKET.pack(10, 20, 9, left, 17, width, 24, count)
    if count < 1 << 14:
        return _BUCKET.pack(10, 21, 9, left, 17, width, 24, count & 0x7F | 0x80, count >> 7)
    return field(1, double(1, left) + double(2, width) + field(3, count))


def histogram(array: np.ndarray) -> bytes:
    """Buckets of equal width over the finite values, and what there is besides.

    The edges have the dtype of the values, so those of integers are whole; what lies outside is not counted.
    """
    finite_places = np.isfinite(array)
    odd = array.size - int(np.count_nonzero(finite_places))
    finite = array[finite_places] if odd else array.reshape(-1)
    low, high, total = 0.0, 0.0, 0.0
    buckets = []
    if finite.size:
        low, high, total = float(finite.min()), float(finite.max()), finite.sum(dtype=np.float64)
        left, right = (low, high) if low < high else (low - 0.5, high + 0.5)
        bounds = np.linspace(left, right, bucket_count(finite.size) + 1, dtype=array.dtype)
        counts, edges = np.histogram(finite, bins=bounds)
        buckets = [
            _bucket(left, width, count)
            for left, width, count in zip(edges[:-1].tolist(), np.diff(edges).tolist(), counts.tolist())
        ]
    rest = (
        field(2, int(np.isnan(array).sum()) if odd else 0)
        + field(3, int(np.isposinf(array).sum()) if odd else 0)
        + field(4, int(np.isneginf(array).sum()) if odd else 0)
        + double(5, high)
        + double(6, low)
        + double(7, float(total))
        + field(8, int(array.size))
    )
    return field(9, b"".join(buckets) + rest)


def tensor_message(array: np.ndarray, dtype_name: str) -> bytes:
    """A TensorProto; its values are floats whatever the dtype."""
    dims = b"".join(field(1, int(d)) for d in array.shape)
    return dims + field(2, DATA_TYPES.get(dtype_name, 0)) + field(3, array.astype("<f4").tobytes())


def tensor(array: np.ndarray, dtype_name: str) -> bytes:
    """All elements with their shape and dtype."""
    return field(8, tensor_message(array, dtype_name))


def value(tag: str, content: bytes) -> bytes:
    """One Value of a Summary."""
    return field(1, text(1, tag) + content)
