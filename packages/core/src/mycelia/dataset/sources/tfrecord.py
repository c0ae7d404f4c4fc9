"""Examples of TFRecord files as a dataset."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.samplers import Shuffle
from mycelia.dataset.schema import Schema
from mycelia.dataset.sources.file_rows import FileRowsDataset
from mycelia.engine.base import errors
from mycelia.io import tfrecord
from mycelia.io.examples import features, int_columns
from mycelia.io.reading import of_file
from mycelia.io.windows import spread

_OWNER = "TFRecordDataset"
_AT_ONCE = 1024  # records parsed in one step
_KEPT_PLACES = 1 << 20  # records of a file whose places are kept for the next epoch, 16 bytes each
_FEW = 16  # records whose sizes stand for those of all
_LARGE = 1 << 12  # bytes of records above which thousands of them do not wait in memory to be mixed
_TOGETHER = 1 << 22  # bytes of records that are parsed in one step
_LEAST = 16  # fewer are parsed one by one: a step of NumPy costs as much as a record
_BYTE_TYPES = (None, "uint8", "int8", "bool")  # what a feature of bytes becomes, besides texts


class TFRecordDataset(FileRowsDataset):
    """Examples of TFRecord files: a column per feature, in the order of their names or as `schema` says.

    Without a schema bytes become uint8 [n], floats float32 [n], ints int64 [n].
    `compression_type`: '', 'ZLIB' or 'GZIP'. `shard_equal_rows`: shards of rows and equally many; else whole
    files are shared out. Checksums are compared in every epoch.
    Errors: ValueError for files that are not there, RuntimeError, when reading, for damaged ones and missing
    columns.
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
        if self.schema is not None and self.num_samples is None:
            self.num_samples = self.schema.num_rows or None
        self.columns_list = (
            None if columns_list is None else nodes.names(_OWNER, "columns_list", columns_list)
        )
        self.shard_equal_rows = nodes.of_type(_OWNER, "shard_equal_rows", shard_equal_rows, bool)
        if compression_type not in (None, "", "ZLIB", "GZIP"):
            raise errors.value_error(
                _OWNER,
                "Input compression_type can only be either '' (no compression), 'ZLIB', or 'GZIP', but got "
                f"{compression_type!r}",
            )
        self.compression_type = compression_type or ""
        if self.compression_type and num_shards is not None and len(self.dataset_files) < num_shards:
            raise errors.value_error(
                _OWNER,
                "When compression_type is provided, the number of dataset files cannot be less than "
                f"num_shards, but they are {len(self.dataset_files)} and {num_shards}",
            )
        self._columns: list[dict] | None = None
        # Files that were read before: (size, time of change), where the records lie.
        self._read_before: dict[str, tuple] = {}

    def _described(self) -> list[dict]:
        """The columns as a schema has them."""
        if self._columns is None:
            if self.schema is not None:
                columns = self.schema.columns
            else:
                columns = [{"name": name, "type": None} for name in self._names()]
            if self.columns_list is not None:
                table = {c["name"]: c for c in columns}
                missing = [n for n in self.columns_list if n not in table]
                if missing:
                    raise errors.runtime_error(
                        _OWNER,
                        "Invalid columns_list, tfrecord file failed to find column name: "
                        f"{missing[0]} is not among {list(table)}",
                    )
                columns = [table[n] for n in self.columns_list]
            self._columns = columns
        return self._columns

    def _names(self) -> list[str]:
        """The features of the first record."""
        path = self.dataset_files[0]
        first = next(tfrecord.blocks(path, self.compression_type, check=False), None)
        try:
            return [] if first is None else sorted(tfrecord.example(first.record(0)))
        except ValueError as e:
            raise tfrecord.damaged(path, f"record 0 is no Example: {e}") from None

    def get_col_names(self):
        return [c["name"] for c in self._described()]

    def size_of(self, path):
        if path not in self._sizes:
            self._sizes[path] = tfrecord.count(path, self.compression_type)
        return self._sizes[path]

    def _parts(self, files):
        if self.num_shards is None or self.shard_equal_rows:
            return super()._parts(files)
        if len(files) < self.num_shards:
            raise errors.runtime_error(
                _OWNER,
                f"numbers of tfrecord file should not less than num_shards: {len(files)}, {self.num_shards}",
            )
        return [(f, 0, -1) for f in files[self.shard_id :: self.num_shards]]

    def read(self, path):
        """Where the records lie: they are ordered and mixed before they are parsed."""
        status = os.stat(path)
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        before, places = self._read_before.get(path, (None, None))
        if before == state:
            blocks = tfrecord.blocks_at(path, places)
        else:
            blocks = tfrecord.blocks(path, self.compression_type)
        places, mixed = [], self.shuffle_mode is Shuffle.GLOBAL
        for block in blocks:
            places.append((block.places, block.sizes))
            if mixed and not self.compression_type and block.sizes.mean() > _LARGE:
                block.let_go()
            yield from zip(itertools.repeat(block), range(len(block)))
        if sum(len(begins) for begins, _ in places) <= _KEPT_PLACES and not self.compression_type:
            self._read_before[path] = state, places

    def rows(self, epoch):
        for columns, count in self._chunks(epoch, 1):
            for k in range(count):
                yield tuple(c[k, ...] if isinstance(c, np.ndarray) else c[k] for c in columns)

    def batches(self, epoch: int, size: int, drop_remainder: bool) -> Iterator[tuple]:
        """Columns of `size` rows each, without a row in between."""
        names = self.get_col_names()
        for columns, count in self._chunks(epoch, size):
            for at in range(0, count, size):
                if at + size > count and drop_remainder:
                    return
                yield tuple(_stacked(c[at : at + size], n) for n, c in zip(names, columns))

    def _chunks(self, epoch: int, multiple: int) -> Iterator[tuple[list, int]]:
        """(columns, rows) for a few records at a time, a multiple of `multiple` except for the last."""
        described = self._described()
        places = super().rows(epoch)
        step = multiple
        while chunk := list(itertools.islice(places, step)):
            yield _columns(chunk, described), len(chunk)
            average = sum(int(block.sizes[k]) for block, k in chunk[:_FEW]) // len(chunk[:_FEW])
            step = max(1, min(_AT_ONCE, _TOGETHER // max(1, average)) // multiple) * multiple


def _columns(places: list[tuple], described: list[dict]) -> list[np.ndarray | list]:
    """The columns of the records (block, number): [rows, ...], or a list of arrays if they differ."""
    block = places[0][0]
    if all(other is block for other, _ in places) and block.data is not None:
        numbers = np.array([k for _, k in places])
        begins, ends = block.begins[numbers], block.begins[numbers] + block.sizes[numbers]
    else:
        records = [other.record(k) for other, k in places]
        ends = np.cumsum([len(record) for record in records])
        begins = np.append(0, ends[:-1])
        block = tfrecord.Block("", 0, b"".join(records), 0, begins, ends - begins)
    parts = _parsed(block, begins, ends, places, described)
    if len(parts) == 1:
        return parts[0][1]
    whole: list[list] = [[None] * len(places) for _ in described]
    for rows, columns in parts:
        for into, column in zip(whole, columns):
            for k, row in enumerate(rows.tolist()):
                into[row] = column[k, ...] if isinstance(column, np.ndarray) else column[k]
    return whole


def _parsed(block, begins, ends, places: list[tuple], described: list[dict]) -> list[tuple]:
    """(rows, their columns) of records, which lie in one block: most together, odd ones by themselves."""
    rows = np.arange(len(places))
    parts, alone = [], np.ones(len(rows), bool)
    if len(rows) >= _LEAST:
        found, alone = features(block.windows, begins, ends, [c["name"] for c in described])
        for kinds, _, _ in found.values():
            alone |= kinds != kinds[np.argmin(alone)]
        good = ~alone
        columns = _together(block, {n: [v[good] for v in f] for n, f in found.items()}, described)
        if columns is None:
            alone[:] = True
        else:
            parts.append((rows[good], columns))
    if alone.any():
        one = [_row(*places[row], described) for row in rows[alone]]
        parts.append((rows[alone], [list(column) for column in zip(*one)]))
    return parts


def _row(block: tfrecord.Block, k: int, described: list[dict]) -> tuple:
    record = block.record(k)
    with of_file(block.path):
        try:
            table = tfrecord.example(record)
        except ValueError as e:
            raise tfrecord.damaged(block.path, f"record {block.first + k} is no Example: {e}") from None
        return tuple(_column(table, column) for column in described)


def _together(block: tfrecord.Block, found: dict, described: list[dict]) -> list[np.ndarray | list] | None:
    """Columns of records of one kind; None where one does not fit, and reading it alone says why."""
    columns = []
    for column in described:
        kinds, begins, ends = found[column["name"]]
        if not len(kinds):
            return None
        values = _values(block, int(kinds[0]), begins, ends, column["type"])
        shape = column.get("shape")
        try:
            if isinstance(values, np.ndarray) and shape is not None:
                values = values.reshape(len(values), *shape)
            elif values is not None and shape is not None:
                values = [v.reshape(shape) for v in values]
        except ValueError:
            return None
        if values is None:
            return None
        columns.append(values)
    return columns


def _values(block: tfrecord.Block, kind: int, begins, ends, wanted: str | None) -> np.ndarray | list | None:
    """[records, values] of one feature, or a list if records have different counts."""
    if kind == tfrecord.BYTES:
        return _byte_values(block, begins, ends, wanted)
    if wanted in ("string", "bytes"):
        return None
    if wanted is not None and (np.dtype(wanted).kind == "f") != (kind == tfrecord.FLOATS):
        return None
    if kind == tfrecord.INTS:
        found = int_columns(block.windows, begins, ends)
        if found is None:
            return None
        flat, counts = found
    else:
        counts, rest = np.divmod(ends - begins, 4)
        if rest.any():
            return None
        flat = block.windows.take("u1", spread(begins, ends - begins)).view("<f4")
    flat = flat.astype(wanted or flat.dtype.newbyteorder("="), copy=False)
    if len(counts) and counts[0] and (counts == counts[0]).all():
        return flat.reshape(len(counts), -1)
    return [part.copy() for part in np.split(flat, np.cumsum(counts)[:-1])]


def _byte_values(block: tfrecord.Block, begins, ends, wanted: str | None) -> np.ndarray | list | None:
    size = int(ends[0] - begins[0])
    if wanted in _BYTE_TYPES and size and (ends - begins == size).all():
        return block.windows.rows(size, begins)
    parts = [block.data[b:e] for b, e in zip(begins.tolist(), ends.tolist())]
    if wanted == "bytes":
        return [np.asarray([part]) for part in parts]
    if wanted == "string":
        return [np.asarray([part.decode("utf-8", "surrogateescape")]) for part in parts]
    return [np.frombuffer(bytearray(part), np.uint8) for part in parts] if wanted in _BYTE_TYPES else None


def _stacked(column, name: str):
    if isinstance(column, np.ndarray):
        return column
    from mycelia.dataset.batching import stacked

    return stacked(column, name, "Dataset.batch")


def _column(table: dict, column: dict) -> np.ndarray:
    name = column["name"]
    if name not in table:
        raise errors.runtime_error(
            _OWNER,
            f"Feature name: {name} is required in schema but could not be found in tfrecord file. The record "
            f"has {sorted(table)}",
        )
    values, kind = table[name], column["type"]
    if isinstance(values, list):
        if kind == "string":
            array = np.asarray([v.decode("utf-8", "surrogateescape") for v in values])
        elif kind == "bytes":
            array = np.asarray(values)
        else:
            array = np.frombuffer(b"".join(values), np.uint8)
            if kind not in _BYTE_TYPES:
                raise _other_type(name, "bytes", kind)
    else:
        floats = values.dtype.kind == "f"
        if kind is not None and (kind in ("string", "bytes") or (np.dtype(kind).kind == "f") != floats):
            raise _other_type(name, f"{values.dtype} numbers", kind)
        array = values if kind is None else values.astype(kind)
    shape = column.get("shape")
    if shape is None:
        return array
    try:
        return array.reshape(shape)
    except ValueError:
        raise errors.runtime_error(
            _OWNER,
            f"Column shape of {name} defined in schema does not match the shape actually load: {list(shape)} "
            f"and {array.size} values",
        ) from None


def _other_type(name: str, found: str, said) -> BaseException:
    return errors.runtime_error(
        _OWNER,
        f"The data type loaded from the example for feature name: {name} does not match the predefined type "
        f"in schema: {found} and {said}",
    )
