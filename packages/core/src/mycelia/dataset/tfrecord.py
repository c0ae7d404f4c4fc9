"""TFRecord files and the Example messages in them, read without TensorFlow.

A record is its length (8 bytes), a checksum of the length, the data and a checksum of the data; an Example is
a protobuf map from names to lists of bytes, floats or ints.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from mycelia import errors
from mycelia.dataset import nodes
from mycelia.dataset.file_rows import FileRowsDataset
from mycelia.dataset.samplers import Shuffle
from mycelia.dataset.schema import Schema

_OWNER = "TFRecordDataset"


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return table


_CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """CRC-32C as TFRecord stores it: rotated by 15 bits, plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(path: str, compression: str = "") -> Iterator[bytes]:
    """The data of each record; the checksum of every length is compared. RuntimeError for a damaged file."""
    damaged = errors.runtime_error(_OWNER, f"{path} is no TFRecord file, or is damaged")
    try:
        with _opened(path, compression) as file:
            while head := file.read(12):
                if len(head) < 12 or masked_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
                    raise damaged
                size = struct.unpack("<Q", head[:8])[0]
                data = file.read(size + 4)
                if len(data) < size + 4:
                    raise damaged
                yield data[:size]
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise damaged from None


def _opened(path: str, compression: str):
    if compression == "GZIP":
        return gzip.open(path, "rb")
    if compression == "ZLIB":
        with open(path, "rb") as file:
            return io.BytesIO(zlib.decompress(file.read()))
    return open(path, "rb")  # the caller closes it


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """(number, wire type, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, kind, value


def example(data: bytes) -> dict[str, list[bytes] | np.ndarray]:
    """The features of an Example: lists of bytes, float32 or int64 arrays. ValueError for another message."""
    found: dict[str, list[bytes] | np.ndarray] = {}
    try:
        for number, _, features in _fields(data):
            if number != 1:
                continue
            for number, _, entry in _fields(features):
                if number == 1:
                    pair = {n: v for n, _, v in _fields(entry)}
                    found[pair[1].decode()] = _feature(pair.get(2, b""))
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as e:
        raise ValueError(f"no Example: {e}") from None
    return found


def _feature(data: bytes):
    for number, _, values in _fields(data):
        if number == 1:
            return [v for _, _, v in _fields(values)]
        if number == 2:
            return np.frombuffer(b"".join(v for _, _, v in _fields(values)), "<f4").astype(np.float32)
        if number == 3:
            ints: list[int] = []
            for _, kind, value in _fields(values):
                at = 0
                while kind == 2 and at < len(value):
                    number, at = _varint(value, at)
                    ints.append(number)
                if kind == 0:
                    ints.append(value)
            return np.asarray(ints, np.uint64).astype(np.int64)
    return np.zeros(0, np.int64)


class TFRecordDataset(FileRowsDataset):
    """Examples of TFRecord files: a column per feature, in the order of their names or as `schema` says.

    Without a schema bytes become uint8 [n], floats float32 [n], ints int64 [n].
    `compression_type`: '', 'ZLIB' or 'GZIP'. `shard_equal_rows`: shards of rows and equally many; else whole
    files are shared out. Errors: ValueError for files that are not there, RuntimeError, when reading, for
    damaged ones and missing columns.
    """

    def __init__(
        self,
        dataset_files,
        schema=None,
        columns_list=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        shard_equal_rows=False,
        cache=None,
        compression_type=None,
    ):
        super().__init__(
            dataset_files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache
        )
        self.schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self.columns_list = (
            None if columns_list is None else nodes.names(_OWNER, "columns_list", columns_list)
        )
        self.shard_equal_rows = nodes.of_type(_OWNER, "shard_equal_rows", shard_equal_rows, bool)
        if compression_type not in (None, "", "ZLIB", "GZIP"):
            raise errors.value_error(
                _OWNER, f"compression_type must be '', 'ZLIB' or 'GZIP', but got {compression_type!r}"
            )
        self.compression_type = compression_type or ""
        self._columns: list[dict] | None = None

    def _described(self) -> list[dict]:
        """The columns as a schema has them."""
        if self._columns is None:
            if self.schema is not None:
                columns = self.schema.columns
            else:
                first = self._example(next(records(self.dataset_files[0], self.compression_type), b""))
                columns = [{"name": name, "type": None} for name in sorted(first)]
            if self.columns_list is not None:
                table = {c["name"]: c for c in columns}
                missing = [n for n in self.columns_list if n not in table]
                if missing:
                    raise errors.runtime_error(_OWNER, f"columns_list {missing} are not among {list(table)}")
                columns = [table[n] for n in self.columns_list]
            self._columns = columns
        return self._columns

    def get_col_names(self):
        return [c["name"] for c in self._described()]

    def _example(self, data: bytes) -> dict:
        try:
            return example(data)
        except ValueError as e:
            raise errors.runtime_error(_OWNER, f"a record holds {e}") from None

    def size_of(self, path):
        if path not in self._sizes:
            self._sizes[path] = sum(1 for _ in records(path, self.compression_type))
        return self._sizes[path]

    def _parts(self, files):
        if self.num_shards is None or self.shard_equal_rows:
            return super()._parts(files)
        return [(f, 0, -1) for f in files[self.shard_id :: self.num_shards]]

    def read(self, path):
        columns = self._described()
        for data in records(path, self.compression_type):
            features = self._example(data)
            yield tuple(_column(features, column) for column in columns)


def _column(features: dict, column: dict) -> np.ndarray:
    name = column["name"]
    if name not in features:
        raise errors.runtime_error(_OWNER, f"a record has no feature '{name}', only {sorted(features)}")
    values, kind = features[name], column["type"]
    if isinstance(values, list):
        if kind == "string":
            array = np.asarray([v.decode("utf-8", "surrogateescape") for v in values])
        elif kind == "bytes":
            array = np.asarray(values)
        else:
            array = np.frombuffer(b"".join(values), np.uint8)
            if kind not in (None, "uint8", "int8", "bool"):
                raise errors.runtime_error(
                    _OWNER, f"feature '{name}' holds bytes, but the schema says {kind}"
                )
    else:
        floats = values.dtype.kind == "f"
        if kind is not None and (kind in ("string", "bytes") or (np.dtype(kind).kind == "f") != floats):
            raise errors.runtime_error(
                _OWNER, f"feature '{name}' holds {values.dtype} numbers, but the schema says {kind}"
            )
        array = values if kind is None else values.astype(kind)
    shape = column.get("shape")
    if shape is None:
        return array
    try:
        return array.reshape(shape)
    except ValueError:
        raise errors.runtime_error(
            _OWNER, f"feature '{name}' has {array.size} values, but the schema says shape {list(shape)}"
        ) from None
