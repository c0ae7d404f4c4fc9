"""Values of event files: scalars, images, histograms and tensors as messages of `mindspore.irpb`."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base.wire import field
from mycelia.io.irpb import DATA_TYPES
from mycelia.train.summary.events import text


def encoded(items: list[tuple[str, str, float | np.ndarray]]) -> list[bytes | None]:
    """Messages of (tag, plugin, content), all in one call: a Summary with this one value each.

    "scalar": a number, as float32.  "image": the images [N, C, H, W] side by side as one PNG; uint8 stays,
    values within 0..1 become 0..255, others are spread over that range; None where C is not 1 or 3.
    "histogram": buckets of equal width over the finite values, and what there is besides; the edges have the
    dtype of the values, so those of integers are whole; booleans count as integers, float16 as float32.
    Errors: TypeError for other contents.
    """
    return _data.summary_values(items)


def tensor_message(array: np.ndarray, dtype_name: str) -> bytes:
    """A TensorProto; its values are floats whatever the dtype."""
    dims = b"".join(field(1, int(d)) for d in array.shape)
    numbers = array.astype("<f4", copy=False).tobytes()
    return dims + field(2, DATA_TYPES.get(dtype_name, 0)) + field(3, numbers)


def tensor(array: np.ndarray, dtype_name: str) -> bytes:
    """All elements with their shape and dtype."""
    return field(8, tensor_message(array, dtype_name))


def value(tag: str, content: bytes) -> bytes:
    """One Value of a Summary."""
    return field(1, text(1, tag) + content)
