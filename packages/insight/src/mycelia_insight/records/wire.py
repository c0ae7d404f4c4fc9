"""Messages of protocol buffers of untrusted origin, field by field.

`fields(message)` gives (number, type, value) of each field, ints >= 0 of varints, views of the rest, without
copies; `plain(message)` gives (number, value): ints of varints, floats of a fixed size, bytes.
Errors: Broken, a ValueError.
"""

from __future__ import annotations

import numpy as np

from mycelia_insight._native import Broken, fields, plain
from mycelia_insight._native import varints as _varints

__all__ = [
    "BYTES", "NARROW", "VARINT", "WIDE", "Broken", "entry", "fields", "message", "numbers", "plain", "signed",
    "text", "varints",
]  # fmt: skip

VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5  # types of fields; WIDE and NARROW have 8 and 4 bytes


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >> 63 else value


def text(value: int | float | bytes) -> str:
    """A value of `plain` as text; bytes that are no UTF-8 are written as `\\xNN`."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def message(value: int | float | bytes) -> bytes:
    """A value of `plain` as a message.  Errors: Broken for a number."""
    if not isinstance(value, bytes):
        raise Broken("a number stands where a message is expected")
    return value


def entry(data: bytes) -> tuple[str, bytes]:
    """Fields 1 and 2 of a message: a name, or a key of a map, and its value.  Errors: Broken."""
    key, value = "", b""
    for number, content in plain(data):
        if number == 1:
            key = text(content)
        elif number == 2:
            value = message(content)
    return key, value


def numbers(parts: list[int | memoryview], dtype: str) -> np.ndarray:
    """Repeated numbers of a fixed size, packed or one by one.  Errors: Broken."""
    held = [part for part in parts if not isinstance(part, int)]
    data = held[0] if len(held) == 1 else b"".join(held)
    if len(held) != len(parts) or len(data) % np.dtype(dtype).itemsize:
        raise Broken("numbers of a fixed size are cut off")
    return np.frombuffer(data, dtype)


def varints(parts: list[int | memoryview]) -> np.ndarray:
    """Repeated varints, packed or one by one, as int64.  Errors: Broken."""
    if all(isinstance(part, int) for part in parts):
        return np.array(parts, np.uint64).astype(np.int64)
    return np.concatenate([np.array([signed(p)]) if isinstance(p, int) else _packed(p) for p in parts])


def _packed(part: memoryview) -> np.ndarray:
    return np.frombuffer(_varints(part), np.int64)
