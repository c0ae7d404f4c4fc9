"""Many rows of a MindRecord file at once: NumPy takes the same field of all rows in a few steps.

Rows laid out in an unusual way (other order of fields, texts of many lengths) are left to `Schema`.
"""

from __future__ import annotations

import math

import numpy as np

from mycelia.io.windows import Windows
from mycelia.mindrecord import msgpack
from mycelia.mindrecord.schema import ARRAYS, Schema

_FEW = 8  # rows of one layout below which NumPy costs more than it saves
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")
_NUMBERS = {0xCA: ">f4", 0xCB: ">f8", 0xCC: ">u1", 0xCD: ">u2", 0xCE: ">u4", 0xCF: ">u8",
            0xD0: ">i1", 0xD1: ">i2", 0xD2: ">i4", 0xD3: ">i8"}  # fmt: skip
_TEXTS = {0xD9: ">u1", 0xDA: ">u2", 0xDB: ">u4"}
_SMALL, _NEGATIVE, _SHORT_TEXT, _OTHER = 0, 1, 2, 3


def _classes() -> np.ndarray:
    """The kind of value that each first byte begins; sized forms are their own kind."""
    table = np.full(256, _OTHER, np.uint8)
    table[:0x80], table[0xE0:], table[0xA0:0xC0] = _SMALL, _NEGATIVE, _SHORT_TEXT
    for form in (*_NUMBERS, *_TEXTS):
        table[form] = form
    return table


_CLASS = _classes()


def unpack_scalars(
    windows: Windows, schema: Schema, wanted: list[str], begins: np.ndarray, sizes: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns of scalar fields (numbers in 64 bits, texts as objects), and the rows that are not in them."""
    count, names = len(begins), schema.scalars
    columns = {name: np.zeros(count, _SPACE[schema.fields[name]["type"]]) for name in wanted}
    keys = [np.frombuffer(msgpack.pack(name), np.uint8) for name in names]
    head = np.frombuffer(msgpack.map_head(len(names)), np.uint8)
    odd = np.zeros(count, bool)
    work = []
    for size in _values_of(sizes):
        rows = np.flatnonzero(sizes == size)
        if len(rows) < _FEW or size <= head.size:
            odd[rows] = True
            continue
        matrix = windows.rows(int(size), begins[rows])
        if (matrix[:, : head.size] != head).any():
            odd[rows] = True
        else:
            work.append((matrix, rows, head.size, 0))
    while work:
        matrix, rows, at, k = work.pop()
        if k == len(names):
            odd[rows] |= at != matrix.shape[1]
            continue
        end = at + keys[k].size
        if len(rows) < _FEW or end >= matrix.shape[1] or (matrix[:, at:end] != keys[k]).any():
            odd[rows] = True
            continue
        forms = matrix[:, end]
        kinds = _CLASS[forms]
        if kinds[0] == _SHORT_TEXT:  # each length is a kind
            kinds = forms
        if (kinds != kinds[0]).any():
            work += [(matrix[kinds == kind], rows[kinds == kind], at, k) for kind in np.unique(kinds)]
            continue
        column = columns.get(names[k])
        for part, values, after in _values(matrix, end, int(kinds[0])):
            chosen = rows[part]
            if values is None or not _fits(column, values):
                odd[chosen] = True
                continue
            if column is not None:
                kind = schema.fields[names[k]]["type"]
                if column.dtype.kind == "i" and not np.can_cast(values.dtype, kind):
                    limits = np.iinfo(kind)
                    wide = (values < limits.min) | (values > limits.max)
                    odd[chosen[wide]] = True
                column[chosen] = values
            work.append((matrix[part], chosen, after, k + 1))
    return columns, odd


_SPACE = {
    "string": object,
    "int32": np.int64,
    "int64": np.int64,
    "float32": np.float64,
    "float64": np.float64,
}


def _values_of(numbers: np.ndarray) -> np.ndarray:
    """The different ones; quick where all are equal."""
    return numbers[:1] if len(numbers) and (numbers == numbers[0]).all() else np.unique(numbers)


def _fits(column, values: np.ndarray) -> bool:
    if column is None:
        return True
    kind = "O" if column.dtype == object else column.dtype.kind
    return values.dtype.kind in {"O": "OU", "i": "iu", "f": "iuf"}[kind]


def _values(matrix: np.ndarray, at: int, kind: int):
    """(rows, values, offset behind them) of the value at `at`, whose first byte is of `kind` in all rows."""
    whole = slice(None)
    if kind == _SMALL:
        yield whole, matrix[:, at], at + 1
    elif kind == _NEGATIVE:
        yield whole, matrix[:, at].view(np.int8), at + 1
    elif kind in _NUMBERS:
        dtype = np.dtype(_NUMBERS[kind])
        end = at + 1 + dtype.itemsize
        yield whole, _cut(matrix, at + 1, end, dtype), end
    elif kind in _TEXTS:
        dtype = np.dtype(_TEXTS[kind])
        start = at + 1 + dtype.itemsize
        lengths = _cut(matrix, at + 1, start, dtype)
        if lengths is None:
            yield whole, None, at
            return
        for length in np.unique(lengths).tolist():
            part = np.flatnonzero(lengths == length)
            yield part, _texts(matrix[part], start, start + length), start + length
    elif 0xA0 <= kind < 0xC0:
        end = at + 1 + (kind & 31)
        yield whole, _texts(matrix, at + 1, end), end
    else:
        yield whole, None, at


def _cut(matrix: np.ndarray, begin: int, end: int, dtype) -> np.ndarray | None:
    if end > matrix.shape[1]:
        return None
    return np.ascontiguousarray(matrix[:, begin:end]).view(dtype)[:, 0]


def _texts(matrix: np.ndarray, begin: int, end: int) -> np.ndarray | None:
    if end == begin:
        return np.full(len(matrix), "", object)
    if end > matrix.shape[1] or not matrix[:, end - 1].all():  # arrays of bytes drop zeros at the end
        return None
    try:
        texts = [text.decode() for text in _cut(matrix, begin, end, f"S{end - begin}").tolist()]
    except UnicodeDecodeError:
        return None
    return np.array([*texts, None], object)[:-1]  # None: never an array of texts


def locate_blobs(windows: Windows, schema: Schema, begins: np.ndarray, ends: np.ndarray):
    """{field: (begins, ends)} of the blob fields, for blobs that lie there; and which are damaged."""
    if len(schema.blobs) == 1:
        return {schema.blobs[0]: (begins, ends)}, np.zeros(len(begins), bool)
    found, at, bad = {}, begins, np.zeros(len(begins), bool)
    for name in schema.blobs:
        bad |= at + 8 > ends
        starts = np.where(bad, 0, at) + 8
        sizes = windows.take(">i8", starts - 8).astype(np.int64)
        bad |= (sizes < 0) | (sizes > ends - starts)
        at = starts + np.where(bad, 0, sizes)
        found[name] = starts, at
    return found, bad


def blob_column(windows: Windows, spec: dict, begins: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """A bytes field as [rows, 1], an array field as [rows, ...]; None if the rows differ in size."""
    sizes = ends - begins
    if not len(sizes) or (sizes != sizes[0]).any():
        if spec["type"] == "int32" or spec["type"] == "int64":
            return _int_column(windows, spec, begins, sizes)
        return None
    size = int(sizes[0])
    if spec["type"] == "bytes":
        return windows.take(f"S{size}", begins)[:, None] if size else None
    dtype = np.dtype(ARRAYS[spec["type"]])
    if dtype.kind == "i":
        return _int_column(windows, spec, begins, sizes)
    shape = None if size % dtype.itemsize else _shape(spec["shape"], size // dtype.itemsize)
    if shape is None or not size:
        return None
    raw = windows.rows(size, begins).view(dtype.newbyteorder("<"))
    return raw.astype(dtype, copy=False).reshape(len(begins), *shape)


def _int_column(windows: Windows, spec: dict, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray | None:
    """What `schema.pack_ints` packed, of rows with equally many elements."""
    if not len(sizes) or int(sizes.min()) < 5:
        return None
    counts = windows.take(">u4", begins)
    count = int(counts[0])
    shape = _shape(spec["shape"], count)
    start = 4 + -(-count // 4)
    if (counts != counts[0]).any() or shape is None or int(sizes.min()) < start:
        return None
    packed = windows.rows(start - 4, begins + 4)[:, :, None]
    codes = ((packed >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(len(begins), -1)[:, :count]
    widths = np.left_shift(1, codes, dtype=np.int64)
    ends = np.cumsum(widths, 1)
    if (ends[:, -1] != sizes - start).any():
        return None
    places = ends - widths + (begins + start)[:, None]
    out = np.empty((len(begins), count), ARRAYS[spec["type"]])
    for code, width in enumerate(_WIDTHS):
        chosen = codes == code
        if chosen.all():
            out[...] = windows.take(width, places)
            break
        if chosen.any():
            out[chosen] = windows.take(width, places[chosen])
    return out.reshape(len(begins), *shape)


def _shape(shape: list[int], count: int) -> list[int] | None:
    """The shape of `count` elements, -1 solved; None if they do not fill it."""
    known = math.prod(n for n in shape if n != -1)
    if known == 0 or count % known or (-1 not in shape and count != known):
        return None
    return [count // known if n == -1 else n for n in shape]
