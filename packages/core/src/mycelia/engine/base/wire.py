"""The protobuf wire format, as much as files need: fields out of a buffer, fields into bytes.

Used instead of message classes where files pass 2 GiB, the limit of one protobuf message,
or payloads must not be copied.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_UINT64 = (1 << 64) - 1
_ONE_BYTE = [bytes([value]) for value in range(0x80)]
_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The unsigned varint at offset `at`, and the offset behind it. Errors: ValueError if it is cut off."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"the data ends or is invalid inside a number at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64, at
        shift += 7


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(number, value) of each field: an int for varints, a view of the bytes for everything else.

    Errors: ValueError when a field is cut off or has a wire type that proto2 without groups does not use.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield number, value
            continue
        size, at = read_varint(data, at) if kind == BYTES else (fixed_size(kind, number), at)
        if number == 0:
            raise ValueError(f"field number 0 before byte {at}")
        if size > end - at:
            raise ValueError(f"field {number} at byte {at} wants {size} bytes, {end - at} are left")
        yield number, data[at : at + size]
        at += size


def fixed_size(kind: int, number: int) -> int:
    """Bytes of a field of a fixed size. Errors: ValueError for a wire type that is not known."""
    if kind not in _FIXED_SIZE:
        raise ValueError(f"wire type {kind} of field {number} is not known")
    return _FIXED_SIZE[kind]


def signed(value: int) -> int:
    """A varint read as int64."""
    return value - (1 << 64) if value >> 63 else value


def varint(value: int) -> bytes:
    """`value` (int64 or uint64) as a varint."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    """One field: a varint for an int, length and content for bytes."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    return field_head(number, len(value)) + value


def field_head(number: int, size: int) -> bytes:
    """What precedes the `size` bytes of a length-delimited field."""
    return varint(number << 3 | BYTES) + varint(size)
