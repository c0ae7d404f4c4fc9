"""Values of event files: scalars, images, histograms and tensors as messages of `mindspore.irpb`."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base.wire import field
from mycelia.train.summary.events import png, single, text

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
        kept = batch if batch.dtype in (np.float32, np.float64) else batch.astype(np.float64)
        return _data.mosaic(np.ascontiguousarray(kept), _IMAGES_PER_ROW)
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


def histogram(array: np.ndarray) -> bytes:
    """Buckets of equal width over the finite values, and what there is besides.

    The edges have the dtype of the values, so those of integers are whole; what lies outside is not counted.
    Booleans count as integers, float16 as float32.
    """
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    return field(9, _data.histogram_message(np.ascontiguousarray(array)))


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
