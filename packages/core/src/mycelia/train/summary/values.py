"""Values of event files: scalars, images, histograms and tensors as messages of `mindspore.irpb`."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base.wire import field
from mycelia.train.summary.events import double, png, single, text

# DataType of the graph schema by dtype name.
DATA_TYPES = {
    "Bool": 1, "Int8": 2, "Int16": 3, "Int32": 4, "Int64": 5, "UInt8": 6, "UInt16": 7, "UInt32": 8,
    "UInt64": 9, "Float16": 10, "Float32": 11, "Float64": 12, "BFloat16": 46,
}  # fmt: skip
_IMAGES_PER_ROW = 8


def scalar(array: np.ndarray) -> bytes:
    """The first element as a float."""
    return single(3, float(array.reshape(-1)[0]))


def canvas(batch: np.ndarray) -> np.ndarray | None:
    """The images [N, C, H, W] side by side as [H, W, C] of uint8; None when C is neither 1 nor 3.

    uint8 stays; values within 0..1 become 0..255; others are spread over that range.
    """
    n, channels, height, width = batch.shape
    if channels not in (1, 3):
        return None
    if batch.dtype != np.uint8:
        # What is a float already, and within the range, needs no wider one: no pixel rounds another way.
        values = batch if batch.dtype == np.float32 else batch.astype(np.float64)
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if low < 0 or high > 1:
            low, values = np.float64(low), values.astype(np.float64)
            values = (values - low) / (high - low + 1)
        values = values.astype(np.float64)
        values *= 255
        batch = values.astype(np.uint8)
    columns = min(n, _IMAGES_PER_ROW)
    rows = -(-n // _IMAGES_PER_ROW)
    if n < rows * columns:  # places without an image are black
        batch = np.concatenate([batch, np.zeros((rows * columns - n, *batch.shape[1:]), np.uint8)])
    grid = batch.reshape(rows, columns, channels, height, width).transpose(0, 3, 1, 4, 2)
    return grid.reshape(rows * height, columns * width, channels)


def image(array: np.ndarray) -> bytes | None:
    """A batch as one PNG; None when it is none of images.

    The message says three colours whatever the PNG has, as MindSpore's does.
    """
    pixels = canvas(array)
    if pixels is None:
        return None
    height, width, _ = pixels.shape
    return field(4, field(1, height) + field(2, width) + field(3, 3) + field(4, png(pixels)))


def bucket_count(n: int) -> int:
    """How many buckets a histogram of n finite values has."""
    if n == 0:
        return 1
    if n <= 5:
        return 2
    if n <= 10:
        return 3
    return n // 10 + 1 if n <= 880 else 90


def _edges(left: float, right: float, count: int, dtype) -> np.ndarray:
    """Edges [count + 1] of buckets of equal width, rounded to the dtype: integers downwards."""
    edges = np.arange(count + 1) * ((right - left) / count) + left
    edges[-1] = right
    return (np.floor(edges) if dtype.kind in "iu" else edges).astype(dtype)


def histogram(array: np.ndarray) -> bytes:
    """Buckets of equal width over the finite values, and what there is besides.

    The edges have the dtype of the values, so those of integers are whole; what lies outside is not counted.
    Booleans count as integers, float16 as float32.
    """
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    array = np.ascontiguousarray(array)
    finite, nan, positive, negative, low, high, total = _data.extent(array)
    found = b""
    if finite:
        left, right = (low, high) if low < high else (low - 0.5, high + 0.5)
        found = _data.buckets(array, _edges(left, right, bucket_count(finite), array.dtype))
    rest = (
        field(2, nan) + field(3, positive) + field(4, negative)
        + double(5, high) + double(6, low) + double(7, total) + field(8, array.size)
    )  # fmt: skip
    return field(9, found + rest)


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
