"""Tensors of `mindspore.serving.proto` to and from values: all rules of what a client may send."""

from __future__ import annotations

import functools
import math

import numpy as np

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Value
from mycelia_serving.wire.proto import serving_pb2 as pb

MAX_RANK = 32  # what every numpy takes
_MAX_BYTES = (1 << 63) - 1  # of an array, as numpy counts it: sizes of 0 do not excuse the others

_NUMBERS = {
    pb.MS_BOOL: np.dtype("?"),
    pb.MS_INT8: np.dtype("i1"),
    pb.MS_UINT8: np.dtype("u1"),
    pb.MS_INT16: np.dtype("<i2"),
    pb.MS_UINT16: np.dtype("<u2"),
    pb.MS_INT32: np.dtype("<i4"),
    pb.MS_UINT32: np.dtype("<u4"),
    pb.MS_INT64: np.dtype("<i8"),
    pb.MS_UINT64: np.dtype("<u8"),
    pb.MS_FLOAT16: np.dtype("<f2"),
    pb.MS_FLOAT32: np.dtype("<f4"),
    pb.MS_FLOAT64: np.dtype("<f8"),
}
_WIRE_TYPES = {dtype: number for number, dtype in _NUMBERS.items()}
_BOOL = np.dtype("?")


def invalid(message: str) -> ServingError:
    return ServingError(Code.INVALID_INPUTS, message)


def shape_text(shape) -> str:
    """A shape for an error message, however long a caller made it."""
    shape = tuple(shape)
    return str(shape) if len(shape) <= 8 else f"{str(shape[:8])[:-1]}, ... {len(shape)} dimensions)"


def check_shape(shape: tuple[int, ...], item_size: int) -> int:
    """Bytes of an array; a ServingError for a shape that no array has."""
    if len(shape) > MAX_RANK:
        raise invalid(f"shape {shape_text(shape)} has more than {MAX_RANK} dimensions")
    if shape and min(shape) < 0:
        raise invalid(f"shape {shape_text(shape)} has a negative size")
    if math.prod(size for size in shape if size) * item_size > _MAX_BYTES:
        raise invalid(f"shape {shape_text(shape)} is too large: its size overflows 64 bits")
    return math.prod(shape) * item_size


def array(dtype: np.dtype, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    """A read-only array on `data`, whose length fits."""
    if dtype is _BOOL:  # any byte but 0 is true, and only 0 and 1 are safe inside numpy
        values = np.ndarray(shape, np.uint8, data) != 0
        values = np.asarray(values)  # a comparison of a scalar leaves the array world
        values.flags.writeable = False
        return values
    return np.ndarray(shape, dtype, data)


def read_tensor(tensor: pb.Tensor) -> Value:
    """The value of a message; a ServingError says what is wrong with it."""
    shape = tuple(tensor.shape.dims) if tensor.HasField("shape") else ()
    kind = tensor.dtype
    held = tensor.WhichOneof("tensor_data")
    if held == "shm_data":
        raise invalid("shared memory is not taken from clients")
    texts = tensor.bytes_val
    dtype = _NUMBERS.get(kind)
    if dtype is not None:
        size = check_shape(shape, dtype.itemsize)
        if texts:
            raise invalid(f"a tensor of {dtype} carries bytes_val, which is for strings and bytes")
        data = tensor.data
        if len(data) != size:
            raise invalid(f"{len(data)} bytes of data, shape {shape_text(shape)} of {dtype} takes {size}")
        return array(dtype, shape, data)
    if kind not in (pb.MS_STRING, pb.MS_BYTES):
        raise invalid(f"unknown data type {kind}")
    name = "string" if kind == pb.MS_STRING else "bytes"
    if shape not in ((), (1,)):
        raise invalid(f"shape {shape_text(shape)} of a {name} value, which is a scalar")
    if len(texts) != 1 or held is not None:
        raise invalid(f"a {name} value is exactly one entry of bytes_val, got {len(texts)}")
    if kind == pb.MS_BYTES:
        return texts[0]
    try:
        return texts[0].decode()
    except UnicodeDecodeError as error:
        raise invalid(f"a string that is not UTF-8: {error.reason} at byte {error.start}") from None


def wire_type(dtype: np.dtype) -> int:
    """The number of a dtype in messages. Errors: KeyError."""
    return _WIRE_TYPES[dtype]


def number_type(kind: int) -> np.dtype:
    """The dtype of a number in messages. Errors: KeyError, also for strings and bytes."""
    return _NUMBERS[kind]


def varint(number: int) -> bytes:
    """A non-negative number as protobuf writes it."""
    if number < 128:
        return _SMALL[number]
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SMALL = [bytes([i]) for i in range(128)]


def _entry(name: str, tensor_head: bytes, size: int) -> tuple[bytes, int]:
    """What stands before the last `size` bytes of an entry of `Instance.items`, and the length of it all."""
    key = name.encode()
    value = b"\x12" + varint(len(tensor_head) + size) + tensor_head
    key = b"\x0a" + varint(len(key)) + key
    head = b"\x0a" + varint(len(key) + len(value) + size) + key + value
    return head, len(head) + size


@functools.lru_cache(4096)  # names and shapes of outputs repeat from reply to reply
def _array_entry(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> tuple[bytes, int]:
    kind = _WIRE_TYPES.get(dtype)
    if kind is None:
        raise TypeError(f"{name}: {dtype} has no place in a message")
    size = math.prod(shape) * dtype.itemsize
    dims = b"".join(varint(n) for n in shape)
    dims = b"\x0a" + varint(len(dims)) + dims if dims else b""
    head = b"\x0a" + varint(len(dims)) + dims + b"\x10" + varint(kind)
    return _entry(name, head + b"\x1a" + varint(size), size)


_TEXT_HEAD = b"\x0a\x03\x0a\x01\x01\x10"  # shape (1,), as clients of MindSpore Serving send it; then the type


def put_value(parts: list, name: str, value: Value) -> int:
    """Appends an entry of `Instance.items` to `parts` (of a `b"".join`) and returns its length.

    Errors: TypeError for what is no `Value`.
    """
    if type(value) is np.ndarray:
        head, length = _array_entry(name, value.dtype, value.shape)
        parts.append(head)
        parts.append(value if value.flags.c_contiguous else np.ascontiguousarray(value))
        return length
    if type(value) is str:
        kind, value = pb.MS_STRING, value.encode()
    elif type(value) is bytes:
        kind = pb.MS_BYTES
    elif isinstance(value, (np.ndarray, np.generic)):
        return put_value(parts, name, np.asarray(value))
    else:
        raise TypeError(f"{name}: {type(value).__name__} has no place in a message")
    size = len(value)
    head, length = _entry(name, _TEXT_HEAD + varint(kind) + b"\x22" + varint(size), size)
    parts.append(head)
    parts.append(value)
    return length
