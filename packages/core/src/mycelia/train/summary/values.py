"""Values of event files: scalars, images, histograms and tensors as messages of `mindspore.irpb`."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base.wire import field
from mycelia.train.summary.events import text

# DataType of the graph schema by dtype name.
DATA_TYPES = {
    "Bool": 1, "Int8": 2, "Int16": 3, "Int32": 4, "Int64": 5, "UInt8": 6, "UInt16": 7, "UInt32": 8,
    "UInt64": 9, "Float16": 10, "Float32": 11, "Float64": 12, "BFloat16": 46,
}  # fmt: skip


def encoded(items: list[tuple[str, str, np.ndarray]]) -> list[bytes | None]:
    """Messages of (tag, plugin, array), all in one call: a Summary with this one value each.

    "scalar": the first element as a float32.  "image": the images [N, C, H, W] side by side as one PNG; uint8
    stays, values within 0..1 become 0..255, others are spread over that range; None where C is not 1 or 3.
    "histogram": buckets of equal width over the finite values, and what there is besides; the edges have the
    dtype of the values, so those of integers are whole; booleans count as integers, float16 as float32.
    """
    plain = [(tag, plugin, _PLAIN[plugin](array)) for tag, plugin, array in items]
    if any(content is None for *_, content in plain):
        found = iter(_data.summary_values([item for item in plain if item[2] is not None]))
        return [None if content is None else next(found) for *_, content in plain]
    return _data.summary_values(plain)


def _plain_image(batch: np.ndarray) -> np.ndarray | None:
    if batch.shape[1] not in (1, 3):
        return None
    known = batch.dtype in (np.float32, np.float64, np.uint8)
    return np.ascontiguousarray(batch if known else batch.astype(np.float64))


def _plain_numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    elif array.dtype == np.float16:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array)


_PLAIN = {"scalar": lambda array: float(array.flat[0]), "image": _plain_image, "histogram": _plain_numbers}


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
