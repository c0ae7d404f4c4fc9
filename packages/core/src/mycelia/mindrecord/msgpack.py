"""MessagePack, as much as the rows of MindRecord files need: maps, arrays, texts, numbers.

Source: https://github.com/msgpack/msgpack/blob/master/spec.md. Numbers take their shortest form.
"""

from __future__ import annotations

import struct

# The sized forms: first byte -> format of a number, or of the length of what follows.
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_BYTES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_FIRST = {form: first for table in (_NUMBERS,) for first, form in table.items()}


def pack(value) -> bytes:
    """A dict of texts to texts, ints and floats, or one of these."""
    if isinstance(value, dict):
        return map_head(len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, str):
        data = value.encode()
        return text_head(len(data)) + data
    if isinstance(value, float):
        if (
            value != value
            or abs(value) > 3.4028234663852886e38
            or struct.unpack("f", struct.pack("f", value))[0] != value
        ):
            return struct.pack(">Bd", 0xCB, value)
        return struct.pack(">Bf", 0xCA, value)
    return _pack_int(int(value))


def map_head(size: int) -> bytes:
    """What begins a map of `size` entries."""
    if size > 0xFFFF:
        raise ValueError(f"a row has {size} fields, at most 65535 can be written")
    return bytes([0x80 | size]) if size < 16 else b"\xde" + struct.pack(">H", size)


def text_head(size: int) -> bytes:
    """What begins a text of `size` bytes."""
    if size < 32:
        return bytes([0xA0 | size])
    for first, form in _TEXTS.items():
        if size < 1 << 8 * struct.calcsize(form):
            return bytes([first]) + struct.pack(form, size)
    raise ValueError("a text of 4 GiB or more cannot be written")


def _pack_int(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b" if value < 0 else "B", value)
    for form in (">B", ">H", ">I", ">Q") if value >= 0 else (">b", ">h", ">i", ">q"):
        bits = 8 * struct.calcsize(form)
        if -(1 << bits - 1) <= value < 1 << bits:
            return bytes([_FIRST[form]]) + struct.pack(form, value)
    raise ValueError(f"the number {value} does not fit into 64 bits")


def unpack(data: bytes):
    """The value in `data`. Errors: ValueError when it is cut off, or of a kind that rows do not have."""
    try:
        value, end = _unpack(data, 0)
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError, TypeError) as e:  # dicts as keys
        raise ValueError(f"the row's fields are cut off or damaged ({e})") from None
    if end != len(data):
        raise ValueError(f"the row's fields end at byte {end} of {len(data)}")
    return value


def _unpack(data: bytes, at: int):
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first < 0x90:
        return _unpack_map(data, at, first & 15)
    if first < 0xA0:
        return _unpack_array(data, at, first & 15)
    if first < 0xC0:
        return _slice(data, at, first & 31).decode(), at + (first & 31)
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    for table, read in (
        (_NUMBERS, lambda value, end: (value, end)),
        (_TEXTS, lambda size, end: (_slice(data, end, size).decode(), end + size)),
        (_BYTES, lambda size, end: (_slice(data, end, size), end + size)),
        (_ARRAYS, lambda size, end: _unpack_array(data, end, size)),
        (_MAPS, lambda size, end: _unpack_map(data, end, size)),
    ):
        if first in table:
            (number,) = struct.unpack_from(table[first], data, at)
            return read(number, at + struct.calcsize(table[first]))
    raise ValueError(f"byte 0x{first:02x} begins no value that a row can have")


def _slice(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise IndexError("the data ends inside a text")
    return data[at : at + size]


def _unpack_map(data: bytes, at: int, size: int):
    made = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        made[key], at = _unpack(data, at)
    return made, at


def _unpack_array(data: bytes, at: int, size: int):
    made = []
    for _ in range(size):
        value, at = _unpack(data, at)
        made.append(value)
    return made, at
