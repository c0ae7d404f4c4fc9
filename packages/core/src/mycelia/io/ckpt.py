"""The .ckpt layout: records of name, type, shape and bytes (schema in checkpoint.proto), an optional CRC
trailer.

Values are read right into the memory of their tensors, so that a checkpoint of any size takes its own size.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import numpy as np

from mycelia.engine.base import wire
from mycelia.io import crypto
from mycelia.io.raw import Raw, empty, storage
from mycelia.io.reading import STEP, Bytes, FileBytes, MemoryBytes

PIECE_SIZE = 512 << 20  # larger values are cut into several records of the same name
_EMPTY_TEXT = "\0"  # MindSpore cannot load a text without a character
#: The entry that says where parts of Parameters lie in the whole: a field of the first record, which others
# skip.
LAYOUTS = "mycelia.layouts"
_NOTE = 15
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
DTYPES = {name: dtype for dtype, name in _TYPES.items()}


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
    note = b""  # a field of the next record
    for name, value in entries:
        if name == LAYOUTS:
            note = wire.field(_NOTE, str(value).encode())
        elif isinstance(value, str):
            text = memoryview((value or _EMPTY_TEXT).encode("utf-32-le"))
            yield from _record(name, "str", (0,), text, note)
            note = b""
        else:
            data = value.data
            for start in range(0, len(data), PIECE_SIZE):  # nothing at all for an empty tensor
                piece = data[start : start + PIECE_SIZE]
                yield from _record(name, _TYPES[value.dtype], value.shape, piece, note)
                note = b""


def _record(
    name: str, type_name: str, shape: tuple[int, ...], data: memoryview, note: bytes
) -> Iterator[bytes | memoryview]:
    tensor = (
        b"".join(wire.field(1, n) for n in shape)
        + wire.field(2, type_name.encode())
        + wire.field_head(3, len(data))
    )
    value = wire.field(1, name.encode()) + note + wire.field_head(2, len(tensor) + len(data)) + tensor
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
    path: str,
    *,
    crc_check: bool = False,
    key: bytes | None = None,
    mode: str = "AES-GCM",
    chosen: Callable[[str], bool] = lambda name: True,
) -> dict[str, Raw | str | None]:
    """Name -> value of every entry, in the order of the file; None for names that are not `chosen`.

    Errors: ValueError, with the reason, when the file is damaged, cut off,
    encrypted, or its CRC is not right.
    """
    with contextlib.closing(FileBytes(path, lambda path, why: ValueError(why))) as file:
        data: Bytes = file
        if key is not None:
            data = MemoryBytes(crypto.decrypt(file, key, mode))
        elif crypto.is_encrypted(file.piece(0, min(4, len(file)))):
            raise ValueError("the file is encrypted: pass the right 'dec_key' and 'dec_mode'")
        return _parse(_Span(data, 0, _end(data, crc_check)), chosen)


def _end(data: Bytes, check: bool) -> int:
    """Where the records end: before the CRC, if there is one."""
    end = len(data) - len(_CRC_MARK) - _CRC_SIZE
    if end < 0 or data.piece(end, end + len(_CRC_MARK)) != _CRC_MARK:
        return len(data)
    if check:
        stored, crc = int.from_bytes(data.piece(len(data) - _CRC_SIZE, len(data)), "big"), 0
        for at in range(0, end, STEP):
            crc = zlib.crc32(data.piece(at, min(at + STEP, end)), crc)
        if crc != stored:
            raise ValueError(f"its CRC is {crc}, the file says {stored}: the content was changed")
    return end


class _Span:
    """Part of a file, read where it is looked at: its bytes by their numbers, and parts of it, short ones as
    bytes in memory.
    """

    _AHEAD, _SHORT = 1 << 12, 1 << 16

    def __init__(self, data: Bytes, begin: int, end: int):
        self.data, self.begin, self.end = data, begin, end
        self._near, self._start = b"", 0  # a few bytes that were read, and where they lie

    def __len__(self) -> int:
        return self.end - self.begin

    def __getitem__(self, key):
        if isinstance(key, slice):
            begin, end = self.begin + key.start, self.begin + key.stop
            if end - begin > self._SHORT:
                return _Span(self.data, begin, end)
            return memoryview(self.data.piece(begin, end))
        at = self.begin + key
        if not 0 <= at - self._start < len(self._near):
            self._near, self._start = self.data.piece(at, min(at + self._AHEAD, self.end)), at
        return self._near[at - self._start]

    def __bytes__(self) -> bytes:
        return self.data.piece(self.begin, self.end)


def _copy(content: memoryview | _Span, into: np.ndarray) -> None:
    if isinstance(content, _Span):
        content.data.into(into, content.begin)
    else:
        into[...] = np.frombuffer(content, np.uint8)


def _parse(data: _Span, chosen: Callable[[str], bool]) -> dict[str, Raw | str | None]:
    entries: dict[str, Raw | str | None] = {}
    value: Raw | None = None
    expected: tuple | None = None  # (name, type, shape) of a value that is cut into several records
    size = done = 0
    for number, record in wire.fields(data):
        if number != 1 or isinstance(record, int):
            raise ValueError(f"field {number} where a record was expected")
        name, type_name, shape, content, note = _parse_record(record)
        if note is not None:
            entries[LAYOUTS] = note
        if type_name == "str":
            entries[name] = _text(name, content) if chosen(name) else None
            continue
        if expected is None:
            expected, done = (name, type_name, shape), 0
            size = _size_bytes(name, type_name, shape)
            if size > len(data):  # before memory is taken for it
                raise _lacks(expected, size - len(content))
            value = empty(DTYPES[type_name], shape) if chosen(name) else None
        if expected != (name, type_name, shape):
            raise _lacks(expected, size - done)
        if done + len(content) > size or not len(content):
            got, kind = done + len(content), f"{DTYPES[type_name]}{list(shape)}"
            raise ValueError(f"'{name}': {kind} takes {size} bytes, the file has {got}")
        if value is not None:
            _copy(content, value.array.reshape(-1).view(np.uint8)[done : done + len(content)])
        done += len(content)
        if done == size:
            entries[name], expected = value, None
    if expected is not None:
        raise _lacks(expected, size - done)
    return entries


def _lacks(expected: tuple, missing: int) -> ValueError:
    name, type_name, shape = expected
    return ValueError(f"'{name}' lacks {missing} bytes of {type_name}{list(shape)}")


def _parse_record(
    record: memoryview | _Span,
) -> tuple[str, str, tuple[int, ...], memoryview | _Span, str | None]:
    name = tensor = note = None
    for number, value in wire.fields(record):
        if number == 1:
            name = _word(number, value, "utf-8")
        elif number == 2:
            tensor = _content(number, value)
        elif number == 3:
            raise ValueError(f"'{name}' is a map parameter (hash table), which is not supported")
        elif number == _NOTE:
            note = _word(number, value, "utf-8")
    if name is None or tensor is None:
        raise ValueError("a record without name or value")
    shape, type_name, content = [], None, None
    for number, value in wire.fields(tensor):
        if number == 1:
            shape.extend(_dims(value))
        elif number == 2:
            type_name = _word(number, value, "ascii")
        elif number == 3:
            content = _content(number, value)
    if type_name is None or content is None:
        raise ValueError(f"'{name}' has no type or no content")
    if type_name != "str" and type_name not in DTYPES:
        raise ValueError(f"'{name}' has the type {type_name!r}, which is not supported")
    if shape == [0] and len(content):  # a scalar as 1.x wrote it
        shape = []
    return name, type_name, tuple(shape), content, note


def _word(number: int, value, encoding: str) -> str:
    try:
        return bytes(_content(number, value)).decode(encoding)
    except UnicodeDecodeError as e:
        raise ValueError(f"field {number} holds no text: {e}") from None


def _content(number: int, value: int | memoryview | _Span) -> memoryview | _Span:
    if isinstance(value, int):
        raise ValueError(f"field {number} is a number where bytes were expected")
    return value


def _dims(value: int | memoryview | _Span) -> Iterator[int]:
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
    return math.prod(shape) * storage(DTYPES[type_name]).itemsize


def _text(name: str, content: memoryview) -> str:
    try:
        text = bytes(content).decode("utf-32-le")
    except UnicodeDecodeError as e:
        raise ValueError(f"the text '{name}' is damaged: {e}") from None
    return "" if text == _EMPTY_TEXT else text
