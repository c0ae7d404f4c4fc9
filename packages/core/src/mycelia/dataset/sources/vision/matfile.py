"""MATLAB's files of level 5 (versions 5 to 7): arrays, texts, cells, structs and sparse matrices.

Source: "MAT-File Format", The MathWorks. Files of version 7.3 are HDF5 and are not read.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_HEADER = 128
_RATIO = 1032  # how many times as small deflate makes data at most
_MATRIX, _COMPRESSED = 14, 15
_STORED = {  # how numbers lie in the file
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8", 16: "u1",
    17: "u2", 18: "u4",
}  # fmt: skip
_CELL, _STRUCT, _CHAR, _SPARSE = 1, 2, 4, 5
_NUMBERS = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_COMPLEX = 0x0800


def load(path) -> dict:
    """The variables of a file by name.

    Numbers come as arrays of MATLAB's shapes (two axes at least), sparse matrices dense; texts as lists of
    lines; cells as object arrays; a struct as a dict, several as an object array of them.
    Errors: FileNotFoundError; ValueError for another or a damaged file.
    """
    data = Path(path).read_bytes()
    if data[:4] == b"\x89HDF" or data[512:516] == b"\x89HDF":
        raise ValueError(f"{path} is a MATLAB file of version 7.3, of which only older ones are read")
    if len(data) < _HEADER or data[126:128] not in (b"IM", b"MI"):
        raise ValueError(f"{path} is no MATLAB file of level 5")
    order = "<" if data[126:128] == b"IM" else ">"
    try:
        found = [_matrix(body, order) for kind, body in _elements(data[_HEADER:], order) if kind == _MATRIX]
    except (struct.error, zlib.error, IndexError, KeyError, StopIteration, ValueError) as e:
        raise ValueError(f"{path} is damaged: {e!r}") from None
    return {name: value for name, value in found if name}


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """(type, contents) of the elements that follow each other; compressed ones unpacked."""
    at = 0
    while at + 8 <= len(data):
        first, size = struct.unpack_from(f"{order}II", data, at)
        if first >> 16:  # up to four bytes lie in the tag itself
            kind, size, start, at = first & 0xFFFF, first >> 16, at + 4, at + 8
        else:
            kind, start = first, at + 8
            at = start + size + (0 if kind == _COMPRESSED else -size % 8)
        if start + size > len(data):
            raise ValueError(f"an element of {size} bytes is cut off")
        body = data[start : start + size]
        if kind == _COMPRESSED:
            yield from _elements(_unpacked(body, order), order)
        else:
            yield kind, body
    if at < len(data):
        raise ValueError("a tag is cut off")


def _unpacked(body: bytes, order: str) -> bytes:
    """Compressed data: one element, no more of it than its tag promises."""
    engine = zlib.decompressobj()
    tag = engine.decompress(body, 8)
    size = struct.unpack(f"{order}II", tag)[1]
    if size > len(body) * _RATIO:
        raise ValueError(f"{len(body)} compressed bytes cannot hold {size}")
    whole = tag + engine.decompress(engine.unconsumed_tail, size + 8)
    if not engine.eof:
        raise ValueError(f"the compressed data is cut off, or more than the {size} bytes of its tag")
    return whole


def _numbers(element: tuple[int, bytes], order: str) -> np.ndarray:
    kind, body = element
    return np.frombuffer(body, np.dtype(_STORED[kind]).newbyteorder(order))


def _matrix(body: bytes, order: str) -> tuple[str, object]:
    """The name and the value of an element of type matrix."""
    if not body:  # an empty place of a cell or struct
        return "", np.zeros((0, 0))
    parts = _elements(body, order)
    flags = int(_numbers(next(parts), order)[0])
    shape = tuple(int(n) for n in _numbers(next(parts), order))
    name = next(parts)[1].decode("latin1")
    kind = flags & 0xFF
    if kind == _CELL:
        return name, _objects((_matrix(part, order)[1] for _, part in parts), shape)
    if kind == _STRUCT:
        return name, _structs(parts, shape, order)
    if kind == _CHAR:
        codes = _numbers(next(parts), order).reshape(shape, order="F")
        return name, ["".join(map(chr, line)) for line in codes.tolist()]
    if kind == _SPARSE:
        return name, _dense(parts, shape, order, bool(flags & _COMPLEX))
    dtype = np.dtype(_NUMBERS[kind])
    values = _numbers(next(parts), order).astype(dtype)
    if flags & _COMPLEX:
        values = values + 1j * _numbers(next(parts), order).astype(dtype)
    return name, values.reshape(shape, order="F")


def _objects(values: Iterator, shape: tuple) -> np.ndarray:
    flat = np.empty(math.prod(shape), object)
    for i in range(flat.size):
        flat[i] = next(values)
    return flat.reshape(shape, order="F")


def _structs(parts: Iterator, shape: tuple, order: str):
    width = int(_numbers(next(parts), order)[0])
    text = next(parts)[1]
    fields = [text[i : i + width].split(b"\0")[0].decode("latin1") for i in range(0, len(text), width)]
    values = ({f: _matrix(next(parts)[1], order)[1] for f in fields} for _ in range(math.prod(shape)))
    found = _objects(values, shape)
    return found.item() if found.size == 1 else found


def _dense(parts: Iterator, shape: tuple, order: str, is_complex: bool) -> np.ndarray:
    rows, starts = (_numbers(next(parts), order).astype(np.int64) for _ in range(2))
    values = _numbers(next(parts), order)
    if is_complex:
        values = values + 1j * _numbers(next(parts), order)
    found = np.zeros(shape, values.dtype.newbyteorder("="))
    columns = np.repeat(np.arange(shape[1]), np.diff(starts))
    count = len(columns)
    found[rows[:count], columns] = values[:count]
    return found
