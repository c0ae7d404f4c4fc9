"""The .ckpt layout: records of name, type, shape and bytes (schema in checkpoint.proto), an optional CRC
trailer.

Files are mapped and cut into views, so that a checkpoint of any size is read once and
copied only into its tensors.
"""

from __future__ import annotations

import math
import mmap
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from mycelia.io import crypto, wire
from mycelia.io.raw import Raw, from_bytes, storage

PIECE_SIZE = 512 << 20  # larger values are cut into several records of the same name
_CRC_MARK, _CRC_SIZE = b"crc_num", 10
_TYPES = {
    "bool": "Bool",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float16": "Float16",
    "float32": "Float32",
    "float64": "Float64",
    "bfloat16": "BFloat16",
    "complex64": "Complex64",
    "complex128": "Complex128",
}
_DTYPES = {name: dtype for dtype, name in _TYPES.items()}


# ---- writing -----------------------------------------------------------------------------------
def write(
    file: BinaryIO,
    entries: Iterable[tuple[str, Raw | str]],
    *,
    crc_check: bool = False,
    key: bytes | None = None,
    mode: str = "AES-GCM",
) -> None:
    """Writes (name, value) entries in their order; not both with a CRC (plain text) and a key."""
    if key is not None:
        crypto.check_key(key, mode, "enc")
        if crc_check:
            raise ValueError("crc_check cannot be combined with enc_key")
        for block in _blocks(_pieces(entries)):
            file.write(crypto.encrypt_block(block, key, mode))
        return
    crc = 0
    for piece in _pieces(entries):
        file.write(piece)
        crc = zlib.crc32(piece, crc) if crc_check else 0
    if crc_check:
        file.write(_CRC_MARK + crc.to_bytes(_CRC_SIZE, "big"))


def _pieces(entries: Iterable[tuple[str, Raw | str]]) -> Iterator[bytes | memoryview]:
    for name, value in entries:
        if isinstance(value, str):
            yield from _record(name, "str", (0,), memoryview(value.encode("utf-32-le")))
            continue
        data = value.data
        for start in range(0, len(data), PIECE_SIZE):  # nothing at all for an empty tensor
            yield from _record(name, _TYPES[value.dtype], value.shape, data[start : start + PIECE_SIZE])


def _record(
    name: str, type_name: str, shape: tuple[int, ...], data: memoryview
) -> Iterator[bytes | memoryview]:
    tensor = (
        b"".join(wire.field(1, n) for n in shape)
        + wire.field(2, type_name.encode())
        + wire.field_head(3, len(data))
    )
    value = wire.field(1, name.encode()) + wire.field_head(2, len(tensor) + len(data)) + tensor
    yield wire.field_head(1, len(value) + len(data)) + value
    yield data


def _blocks(pieces: Iterable[bytes | memoryview]) -> Iterator[memoryview]:
    """The same bytes in blocks of the size that is encrypted at once."""
    block, used = memoryview(bytearray(crypto.BLOCK_SIZE)), 0
    for piece in pieces:
        at = 0
        while at < len(piece):
            n = min(len(piece) - at, len(block) - used)
            block[used : used + n] = piece[at : at + n]
            used, at = used + n, at + n
            if used == len(block):
                yield block
                used = 0
    if used:
        yield block[:used]


# ---- reading -----------------------------------------------------------------------------------
def read(
    path: str, *, crc_check: bool = False, key: bytes | None = None, mode: str = "AES-GCM"
) -> dict[str, Raw | str]:
    """Name -> value of every entry, in the order of the file; the values are views of the mapped file.

    Errors: ValueError, with the reason, when the file is damaged, cut off,
    encrypted, or its CRC is not right.
    """
    with open(path, "rb") as file:
        if not file.seek(0, 2):
            return {}
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if key is not None:
        data = memoryview(crypto.decrypt(data, key, mode))
    elif crypto.is_encrypted(data[:4]):
        raise ValueError("the file is encrypted: pass the right 'dec_key' and 'dec_mode'")
    return _parse(_without_crc(data, crc_check))


def _without_crc(data: memoryview, check: bool) -> memoryview:
    trailer = len(_CRC_MARK) + _CRC_SIZE
    if len(data) < trailer or data[-trailer:-_CRC_SIZE] != _CRC_MARK:
        return data
    data, stored = data[:-trailer], int.from_bytes(data[-_CRC_SIZE:], "big")
    if check and zlib.crc32(data) != stored:
        raise ValueError(f"its CRC is {zlib.crc32(data)}, the file says {stored}: the content was changed")
    return data


def _parse(data: memoryview) -> dict[str, Raw | str]:
    entries: dict[str, Raw | str] = {}
    pieces: list[memoryview] = []
    expected: tuple | None = (
        None  # (name, type, shape, bytes still missing) of a value cut into several records
    )
    for number, value in wire.fields(data):
        if number != 1 or isinstance(value, int):
            raise ValueError(f"field {number} where a record was expected")
        name, type_name, shape, content = _parse_record(value)
        if type_name == "str":
            entries[name] = _text(name, content)
            continue
        if expected is None:
            expected = (name, type_name, shape, _size_bytes(name, type_name, shape))
        if expected[:3] != (name, type_name, shape):
            raise ValueError(f"'{expected[0]}' lacks {expected[3]} bytes of {expected[1]}{list(expected[2])}")
        pieces.append(content)
        missing = expected[3] - len(content)
        if missing > 0 and len(content):
            expected = (name, type_name, shape, missing)
            continue
        whole = pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
        try:
            entries[name] = from_bytes(_DTYPES[type_name], shape, whole)
        except ValueError as e:
            raise ValueError(f"'{name}': {e}") from None
        pieces, expected = [], None
    if expected is not None:
        raise ValueError(f"'{expected[0]}' lacks {expected[3]} bytes of {expected[1]}{list(expected[2])}")
    return entries


def _parse_record(record: memoryview) -> tuple[str, str, tuple[int, ...], memoryview]:
    name = tensor = None
    for number, value in wire.fields(record):
        if number == 1:
            name = str(_content(number, value), "utf-8")
        elif number == 2:
            tensor = _content(number, value)
        elif number == 3:
            raise ValueError(f"'{name}' is a map parameter (hash table), which is not supported")
    if name is None or tensor is None:
        raise ValueError("a record without name or value")
    shape, type_name, content = [], None, None
    for number, value in wire.fields(tensor):
        if number == 1:
            shape.extend(_dims(value))
        elif number == 2:
            type_name = str(_content(number, value), "ascii")
        elif number == 3:
            content = _content(number, value)
    if type_name is None or content is None:
        raise ValueError(f"'{name}' has no type or no content")
    if type_name != "str" and type_name not in _DTYPES:
        raise ValueError(f"'{name}' has the type {type_name!r}, which is not supported")
    if shape == [0] and len(content):  # a scalar as 1.x wrote it
        shape = []
    return name, type_name, tuple(shape), content


def _content(number: int, value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError(f"field {number} is a number where bytes were expected")
    return value


def _dims(value: int | memoryview) -> Iterator[int]:
    if isinstance(value, int):
        yield wire.signed(value)
        return
    at = 0
    while at < len(value):  # packed: not what MindSpore writes, but the same message
        number, at = wire.read_varint(value, at)
        yield wire.signed(number)


def _size_bytes(name: str, type_name: str, shape: tuple[int, ...]) -> int:
    if any(n < 0 for n in shape):
        raise ValueError(f"'{name}' has the shape {list(shape)}")
    return math.prod(shape) * storage(_DTYPES[type_name]).itemsize


def _text(name: str, content: memoryview) -> str:
    try:
        return bytes(content).decode("utf-32-le")
    except UnicodeDecodeError as e:
        raise ValueError(f"the text '{name}' is damaged: {e}") from None
