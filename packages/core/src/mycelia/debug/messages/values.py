"""Arrays as messages `TensorProto`, in chunks, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from mycelia.debug.messages.debugger_pb2 import TensorProto

CHUNK = 1 << 20  # bytes of content in a message
NUMBERS = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "complex64": 43, "complex128": 44,
}  # fmt: skip
_NAMES = {number: name for name, number in NUMBERS.items()}


def to_messages(array: np.ndarray, **head: str) -> Iterator[TensorProto]:
    """The messages of `array`, the last of them finished. `head`: further fields, such as `node_name`."""
    array = np.asarray(array, order="C")  # a number stays one, unlike by ascontiguousarray
    content = memoryview(array.reshape(-1).view(np.uint8)) if array.size else memoryview(b"")
    for begin in range(0, max(len(content), 1), CHUNK):
        yield TensorProto(
            **head, dims=array.shape, data_type=NUMBERS[array.dtype.name],
            tensor_content=bytes(content[begin : begin + CHUNK]), finished=begin + CHUNK >= len(content),
        )  # fmt: skip


def from_messages(messages: Iterable[TensorProto]) -> Iterator[tuple[TensorProto, np.ndarray | None]]:
    """(last message, array) of each tensor; None where it is told that there is no value.

    Errors: ValueError for content that does not fit shape and dtype.
    """
    parts: list[bytes] = []
    for message in messages:
        parts.append(message.tensor_content)
        if message.finished:
            content, parts = b"".join(parts), []
            yield message, _array(message, content)


def _array(message: TensorProto, content: bytes) -> np.ndarray | None:
    if not message.data_type:
        return None
    name = _NAMES.get(message.data_type)
    if name is None:
        raise ValueError(f"{message.node_name}: data type {message.data_type} is not known")
    dtype, shape = np.dtype(name), tuple(message.dims)
    size = math.prod(shape) * dtype.itemsize
    if any(n < 0 for n in shape) or size != len(content):
        raise ValueError(f"{message.node_name}: {len(content)} bytes for a tensor {shape} of {name}")
    return np.frombuffer(content, dtype).reshape(shape)
