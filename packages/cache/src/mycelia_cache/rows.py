"""How a row lies in memory, in a spill file and in a message.

    offset  size  what
    0       4     MAGIC
    4       4     length of the description
    8       8     number of the row
    16      8     length of all of it, a multiple of 8 (of 64 if it is large)
    24            description: "<f4:3,224,224;<i4:" - dtype and shape of each column
                  columns one after the other, each at a multiple of 8 (of 64 if it is large)

A reader compares number and length with what it asked for: bytes that are not the wanted row are no row.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from mycelia import errors

MAGIC = 0x3152594D  # "MYR1"
HEAD = struct.Struct("<IIQQ")
LARGE = 1024  # bytes from which a column, or a row, begins on a cache line
SMALL_ROW = 4096  # rows up to here are copied in bulk, larger ones one by one
_KINDS = "biufcSU"


class Layout:
    """Where the columns of a row are. `text`: the description, `start`: of the first column."""

    __slots__ = ("fields", "size", "start", "text")

    def __init__(self, text: bytes):
        self.text = text
        self.start = at = _up(HEAD.size + len(text), 8)
        fields = []
        for part in text.decode().split(";"):
            name, _, extents = part.partition(":")
            dtype = np.dtype(name)
            shape = tuple(map(int, extents.split(","))) if extents else ()
            count = 1
            for n in shape:
                count *= n
            size = count * dtype.itemsize
            at = _up(at, 64 if size >= LARGE else 8)
            fields.append((dtype, shape, at, size, count))
            at += size
        self.fields = tuple(fields)
        self.size = _up(at, 64 if at >= LARGE else 8)


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


class _Known(dict):
    """Layouts by description; forgets all when rows come in too many shapes."""

    def __missing__(self, text: bytes) -> Layout:
        if len(self) >= 4096:
            self.clear()
        layout = self[text] = Layout(text)
        return layout


_layouts = _Known()
_by_columns: dict[tuple, Layout] = {}


def layout_of(columns) -> Layout:
    """The layout of a row of arrays. RuntimeError for a column that cannot be cached."""
    try:
        key = tuple([(c.dtype, c.shape) for c in columns])
        return _by_columns[key]
    except (AttributeError, KeyError):
        pass
    parts = []
    for column in columns:
        if not isinstance(column, np.ndarray) or column.dtype.kind not in _KINDS:
            what = column.dtype if isinstance(column, np.ndarray) else type(column).__name__
            raise errors.runtime_error(
                "DatasetCache", f"only numbers and texts can be cached, but a column is of type {what}"
            )
        parts.append(f"{column.dtype.str}:{','.join(map(str, column.shape))}")
    if len(_by_columns) >= 4096:
        _by_columns.clear()
    layout = _by_columns[key] = _layouts[";".join(parts).encode()]
    return layout


def encoded(row: int, columns, layout: Layout) -> list[bytes]:
    """Copies of the pieces of a row, one after the other `layout.size` bytes."""
    text = layout.text
    head = HEAD.pack(MAGIC, len(text), row, layout.size) + text
    pieces, at = [head], len(head)
    for column, (_, _, start, size, _) in zip(columns, layout.fields):
        if start > at:
            pieces.append(bytes(start - at))
        if size:
            pieces.append(column.tobytes())
        at = start + size
    if layout.size > at:
        pieces.append(bytes(layout.size - at))
    return pieces if layout.size > 2 * LARGE else [b"".join(pieces)]


def encoded_block(rows: np.ndarray, columns: list[np.ndarray], layout: Layout) -> np.ndarray:
    """Rows of one layout, given as stacked columns, as bytes [number of rows, layout.size]."""
    count = len(rows)
    block = np.zeros((count, layout.size), np.uint8)
    head = np.frombuffer(HEAD.pack(MAGIC, len(layout.text), 0, layout.size) + layout.text, np.uint8)
    block[:, : len(head)] = head
    block.view("<u8")[:, 1] = rows
    for column, (_, _, start, size, _) in zip(columns, layout.fields):
        if size:
            flat = np.ascontiguousarray(column).reshape(count, -1).view(np.uint8)
            block[:, start : start + size] = flat
    return block


def decoded(data, at: int, row: int, length: int) -> tuple | None:
    """Copies of the columns of the row at `at`; None if the bytes there are not this row."""
    magic, words, number, size = HEAD.unpack_from(data, at)
    if magic != MAGIC or number != row or size != length:
        return None
    layout = _layouts[bytes(data[at + HEAD.size : at + HEAD.size + words])]
    if layout.size != length:
        return None
    return _columns_at(data, at, layout)


def _columns_at(data, at: int, layout: Layout) -> tuple:
    return tuple(
        np.frombuffer(data, dtype, count, at + start).reshape(shape).copy()
        if size
        else np.zeros(shape, dtype)
        for dtype, shape, start, size, count in layout.fields
    )


def gathered(data: np.ndarray, offsets: np.ndarray, rows: np.ndarray, length: int) -> list[np.ndarray] | None:
    """Stacked columns of rows that all have `length` bytes in `data`, uint8 of the whole map.

    None if they differ in layout, or if one is not the row that it should be.
    """
    first = int(offsets[0])
    magic, words, _, _ = HEAD.unpack_from(data, first)
    if magic != MAGIC or words > length:
        return None
    layout = _layouts[data[first + HEAD.size : first + HEAD.size + words].tobytes()]
    if layout.size != length:
        return None
    if length <= SMALL_ROW:
        return _gathered_small(data, offsets, rows, layout)
    head = data[first : first + layout.start].tobytes()
    out = [np.empty((len(rows), *shape), dtype) for dtype, shape, _, _, _ in layout.fields]
    flat = [
        (o.reshape(-1).view(np.uint8), start, size) for o, (_, _, start, size, _) in zip(out, layout.fields)
    ]
    for i, (at, row) in enumerate(zip(offsets.tolist(), rows.tolist())):
        own = data[at : at + layout.start].tobytes()
        if own[:8] != head[:8] or own[16:] != head[16:] or own[8:16] != row.to_bytes(8, "little"):
            return None
        for target, start, size in flat:
            target[i * size : (i + 1) * size] = data[at + start : at + start + size]
    return out


def _gathered_small(data, offsets, rows, layout: Layout) -> list[np.ndarray] | None:
    words = layout.size // 8
    grid = data[: len(data) // 8 * 8].view("<u8")
    at = offsets // 8
    if at[-1] - at[0] == (len(at) - 1) * words and (np.diff(at) == words).all():
        block = grid[int(at[0]) : int(at[0]) + len(at) * words].reshape(len(at), words)
    else:
        block = grid[at[:, None] + np.arange(words)]
    heads = block[:, : layout.start // 8]
    same = heads == heads[0]
    same[:, 1] = block[:, 1] == rows.astype(np.uint64)
    if not same.all():
        return None
    flat = block.view(np.uint8).reshape(len(at), layout.size)
    out = []
    for dtype, shape, start, size, _ in layout.fields:
        if size:
            part = np.array(flat[:, start : start + size], order="C")
            out.append(part.view(dtype).reshape(len(at), *shape))
        else:
            out.append(np.zeros((len(at), *shape), dtype))
    return out


def split(columns: list[np.ndarray]) -> list[tuple]:
    """The rows of stacked columns."""
    parts = [list(c) if c.ndim > 1 else [c[i : i + 1].reshape(()) for i in range(len(c))] for c in columns]
    return list(zip(*parts))


def checksum(pieces) -> int:
    """crc32 of the pieces of a row."""
    total = 0
    for piece in pieces:
        total = zlib.crc32(piece, total)
    return total


def is_row(data: bytes, row: int) -> bool:
    """Whether these bytes are the row of that number, as far as its head tells."""
    if len(data) < HEAD.size:
        return False
    magic, _, number, size = HEAD.unpack_from(data)
    return magic == MAGIC and number == row and size == len(data)
