"""Messages of protocol buffers of untrusted origin, field by field, without copies."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5  # types of fields; WIDE and NARROW have 8 and 4 bytes


class Broken(ValueError):
    """A message that cannot be what it should be."""


def fields(message: bytes | memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """(number, type, value) of each field; varints are ints >= 0, the rest views.  Errors: Broken."""
    data = memoryview(message)
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if key < 8:
            raise Broken("a field has the number 0")
        if kind == VARINT:
            value, at = _varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind in (WIDE, NARROW):
            size = 8 if kind == WIDE else 4
        else:
            raise Broken(f"a field has the unknown type {kind}")
        if size > end - at:
            raise Broken("a field is longer than its message")
        yield key >> 3, kind, data[at : at + size]
        at += size


def plain(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(number, value) of each field: ints of varints, floats of a fixed size, bytes.  Errors: Broken."""
    for number, kind, value in fields(message):
        if isinstance(value, int):
            yield number, value
        elif kind == BYTES:
            yield number, bytes(value)
        else:
            yield number, struct.unpack("<d" if kind == WIDE else "<f", value)[0]


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >> 63 else value


def numbers(parts: list[int | memoryview], dtype: str) -> np.ndarray:
    """Repeated numbers of a fixed size, packed or one by one.  Errors: Broken."""
    held = [part for part in parts if not isinstance(part, int)]
    data = held[0] if len(held) == 1 else b"".join(held)
    if len(held) != len(parts) or len(data) % np.dtype(dtype).itemsize:
        raise Broken("numbers of a fixed size are cut off")
    return np.frombuffer(data, dtype)


def varints(parts: list[int | memoryview]) -> np.ndarray:
    """Repeated varints, packed or one by one, as int64.  Errors: Broken."""
    found: list[int] = []
    for part in parts:
        if isinstance(part, int):
            found.append(part)
            continue
        at = 0
        while at < len(part):
            value, at = _varint(part, at)
            found.append(value)
    return np.array(found, np.uint64).astype(np.int64)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, at
        shift += 7
    raise Broken("a number is cut off")
