"""Rows of a MindRecord file as bytes, many at once: each field of all rows in a few NumPy steps.

What comes out is the same, byte by byte, as from `Schema.encode_scalars` and `encode_blobs`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from mycelia.io.windows import spread
from mycelia.mindrecord import msgpack
from mycelia.mindrecord.schema import ARRAYS, TAKEN, Schema, misfit_of_array

_FEW = 16  # rows below which NumPy costs more than it saves
_LENGTH = struct.Struct("<Q")
_FIELD_LENGTH = struct.Struct(">Q")

Ragged = tuple[np.ndarray, np.ndarray]  # bytes of all rows, and how many each row has


@dataclass
class Packed:
    """Rows as they lie in the pages, each behind its length; `keys` are the columns of the index."""

    raw: bytes
    raw_sizes: np.ndarray
    blob: bytes
    blob_sizes: np.ndarray
    keys: list[list]
    saved: int


def pack_rows(schema: Schema, rows: list[dict], index: list[str]) -> Packed:
    """The rows, which fit the schema, as bytes."""
    columns = {name: [row[name] for row in rows] for name in schema.fields}
    keys = [_keys(columns[name]) for name in index]
    if len(rows) < _FEW:
        return _one_by_one(schema, rows, keys)
    try:
        flat, sizes = _pack_scalars(schema, columns, len(rows))
    except OverflowError:  # numbers above int64, which MessagePack has
        return _one_by_one(schema, rows, keys)
    blob, blob_sizes, saved = _pack_blobs(schema, columns, len(rows))
    return Packed(flat.tobytes(), sizes, blob, blob_sizes, keys, saved)


def _keys(values: list) -> list:
    """What SQLite takes: no NumPy numbers."""
    if not any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        return values
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def all_fit(schema: Schema, rows: list[dict]) -> bool:
    """Whether all rows fit the schema; a quick look, which row by row `Schema.misfit` explains."""
    for name, spec in schema.fields.items():
        try:
            values = [row[name] for row in rows]
        except KeyError:
            return False
        kinds = set(map(type, values))
        if "shape" not in spec:
            if not kinds.issubset(TAKEN[spec["type"]]):
                return False
        elif kinds != {np.ndarray} or any(misfit_of_array(v, spec) for v in values):
            return False
    return True


def _one_by_one(schema: Schema, rows: list[dict], keys: list[list]) -> Packed:
    raw = [schema.encode_scalars(row) for row in rows]
    blobs = [schema.encode_blobs(row) for row in rows]
    parts = [[_LENGTH.pack(len(p)) + p for p in each] for each in (raw, [b for b, _ in blobs])]
    sizes = [np.array([len(p) for p in each], np.int64) for each in parts]
    saved = sum(s for _, s in blobs)
    return Packed(b"".join(parts[0]), sizes[0], b"".join(parts[1]), sizes[1], keys, saved)


# ---- ragged bytes ------------------------------------------------------------------------------------------


def _interleave(pieces: list[Ragged]) -> Ragged:
    """For each row its bytes of all pieces, one piece behind the other."""
    sizes = np.sum([s for _, s in pieces], 0)
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    for flat, size in pieces:
        out[spread(starts, size)] = flat
        starts = starts + size
    return out, sizes


def _same(data: bytes, count: int) -> Ragged:
    return np.frombuffer(data * count, np.uint8), np.full(count, len(data))


def _leading(matrix: np.ndarray, sizes: np.ndarray) -> Ragged:
    """The first bytes of each row of a matrix, as many as `sizes` says."""
    if (sizes == sizes[0]).all():
        return matrix[:, : sizes[0]].reshape(-1), sizes
    return matrix[np.arange(matrix.shape[1]) < sizes[:, None]], sizes


# ---- scalars: MessagePack ----------------------------------------------------------------------------------


def _pack_scalars(schema: Schema, columns: dict[str, list], count: int) -> Ragged:
    if not schema.scalars:
        pieces = [_same(msgpack.pack({"id": 0}), count)]
    else:
        pieces = [_same(msgpack.map_head(len(schema.scalars)), count)]
        for name in schema.scalars:
            pieces.append(_same(msgpack.pack(name), count))
            kind = schema.fields[name]["type"]
            pack = {"string": _texts, "float32": _floats, "float64": _floats}.get(kind, _ints)
            pieces += pack(columns[name])
    sizes = np.sum([s for _, s in pieces], 0)
    lengths = np.ascontiguousarray(sizes.astype("<u8")).view(np.uint8), np.full(count, 8)
    return _interleave([lengths, *pieces])


_INT_FORMS = (  # from, to, first byte, format of what follows; the first that fits is taken
    (0, 127, None, "B"), (-32, -1, None, "b"),
    (0, 2**8 - 1, 0xCC, ">u1"), (0, 2**16 - 1, 0xCD, ">u2"), (0, 2**32 - 1, 0xCE, ">u4"),
    (0, 2**63 - 1, 0xCF, ">u8"),
    (-(2**7), -1, 0xD0, ">i1"), (-(2**15), -1, 0xD1, ">i2"), (-(2**31), -1, 0xD2, ">i4"),
    (-(2**63), -1, 0xD3, ">i8"),
)  # fmt: skip


def _ints(values: list) -> list[Ragged]:
    numbers = np.fromiter(values, np.int64, len(values))
    matrix, sizes = np.empty((len(values), 9), np.uint8), np.ones(len(values), np.int64)
    left = np.ones(len(values), bool)
    for low, high, first, form in _INT_FORMS:
        chosen = np.flatnonzero(left & (numbers >= low) & (numbers <= high))
        if not len(chosen):
            continue
        left[chosen] = False
        if first is None:
            matrix[chosen, 0] = numbers[chosen].astype(form).view(np.uint8)
        else:
            raw = numbers[chosen].astype(form)
            matrix[chosen, 0] = first
            matrix[chosen, 1 : 1 + raw.itemsize] = raw.view(np.uint8).reshape(len(chosen), -1)
            sizes[chosen] = 1 + raw.itemsize
        if not left.any():
            break
    return [_leading(matrix, sizes)]


def _floats(values: list) -> list[Ragged]:
    numbers = np.fromiter(values, np.float64, len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        short = numbers.astype(np.float32)
    exact = np.isfinite(numbers) & (short == numbers)
    matrix = np.empty((len(values), 9), np.uint8)
    matrix[:, 0] = np.where(exact, 0xCA, 0xCB)
    matrix[:, 1:] = numbers.astype(">f8").view(np.uint8).reshape(-1, 8)
    matrix[exact, 1:5] = short[exact].astype(">f4").view(np.uint8).reshape(-1, 4)
    return [_leading(matrix, np.where(exact, 5, 9))]


def _texts(values: list[str]) -> list[Ragged]:
    encoded = [v.encode() for v in values]
    heads = [msgpack.text_head(len(t)) for t in encoded]
    return [_joined(heads), _joined(encoded)]


def _joined(parts: list[bytes]) -> Ragged:
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.frombuffer(b"".join(parts), np.uint8), sizes


# ---- blobs -------------------------------------------------------------------------------------------------


def _pack_blobs(schema: Schema, columns: dict[str, list], count: int) -> tuple[bytes, np.ndarray, int]:
    """The blobs behind their lengths, the sizes of both, and the bytes that packing of ints saved."""
    if not schema.blobs:
        one = _LENGTH.pack(4) + bytes(4)
        return one * count, np.full(count, len(one)), 0
    fields, saved = [], 0
    for name in schema.blobs:
        values, spec = columns[name], schema.fields[name]
        if spec["type"] == "bytes":
            fields.append(values)
        elif np.dtype(ARRAYS[spec["type"]]).kind == "f":
            fields.append([v.tobytes() for v in values])
        else:
            flat, sizes = pack_int_arrays(values)
            data, ends = flat.tobytes(), np.cumsum(sizes)
            fields.append([data[a:b] for a, b in zip((ends - sizes).tolist(), ends.tolist())])
            saved += sum(v.nbytes for v in values) - len(data)
    lengths = [np.fromiter(map(len, values), np.int64, count) for values in fields]
    if len(fields) == 1:
        return _with_length(fields[0], lengths[0]), lengths[0] + 8, saved
    total = np.sum(lengths, 0) + 8 * len(fields)
    parts = [list(map(_LENGTH.pack, total.tolist()))]
    for values, sizes in zip(fields, lengths):
        parts += [list(map(_FIELD_LENGTH.pack, sizes.tolist())), values]
    mixed = [b""] * (count * len(parts))
    for k, part in enumerate(parts):
        mixed[k :: len(parts)] = part
    return b"".join(mixed), total + 8, saved


def _with_length(values: list[bytes], sizes: np.ndarray) -> bytes:
    if (sizes == sizes[0]).all():
        length = _LENGTH.pack(int(sizes[0]))
        return length + length.join(values)
    mixed = [b""] * (2 * len(values))
    mixed[0::2], mixed[1::2] = map(_LENGTH.pack, sizes.tolist()), values
    return b"".join(mixed)


def pack_int_arrays(arrays: list[np.ndarray]) -> Ragged:
    """What `schema.pack_ints` makes of each array, for all of them together."""
    counts = np.fromiter((a.size for a in arrays), np.int64, len(arrays))
    flat = np.concatenate([a.reshape(-1) for a in arrays]).astype(np.int64, copy=False)
    codes = np.zeros(len(flat), np.uint8)
    for dtype in (np.int8, np.int16, np.int32):
        limits = np.iinfo(dtype)
        codes += (flat < limits.min) | (flat > limits.max)
    groups = -(-counts // 4)
    padded = np.zeros(int(groups.sum()) * 4, np.uint8)
    padded[spread(4 * (np.cumsum(groups) - groups), counts)] = codes
    packed = (padded.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(1, dtype=np.uint8)
    widths = np.left_shift(1, codes, dtype=np.int64)
    raw = flat.astype("<i8").view(np.uint8).reshape(-1, 8)
    body = raw[np.arange(8) < widths[:, None]]
    ends = np.concatenate([[0], np.cumsum(widths)])
    last = np.cumsum(counts)
    heads = counts.astype(">u4").view(np.uint8), np.full(len(arrays), 4)
    return _interleave([heads, (packed, groups), (body, ends[last] - ends[last - counts])])
