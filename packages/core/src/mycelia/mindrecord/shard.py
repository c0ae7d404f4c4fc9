"""One file of a MindRecord data set with its index, for reading.

Layout: u64 length and the JSON header, zeros up to `header_size`, then pages of `page_size`. Blob pages hold
the blobs of rows, raw pages their other fields; a row is u64 length and data in each. `<name>.db` is an
SQLite file that says where each row lies. Every number of a file is checked before it is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct

import numpy as np

from mycelia.engine.base import errors
from mycelia.io import files
from mycelia.io.reading import Bytes, DamagedFileError, FileBytes, MemoryBytes, damaged
from mycelia.io.windows import Windows
from mycelia.mindrecord import crypt
from mycelia.mindrecord.columns import blob_column, locate_blobs, unpack_scalars
from mycelia.mindrecord.schema import ARRAYS, Schema

VERSIONS = ("2.0", "3.0")
_PLACES = (
    "ROW_ID, PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, "
    "PAGE_OFFSET_BLOB_END"
)
_ATTEMPTS = 5
_AT_ONCE = 1 << 16  # rows of the index, as Python numbers


def exists(path: str) -> bool:
    """Whether the file is there, once writers that were interrupted are finished."""
    if not os.path.isfile(path):
        files.settle_directory(os.path.dirname(os.path.abspath(path)))
    return os.path.isfile(path)


def must_exist(path: str) -> None:
    if not exists(path):
        raise errors.runtime_error(f"The input: {path} is not exists.")


def read_header(path: str) -> dict:
    """The checked header of a file. Errors: RuntimeError (and ValueError) naming what is wrong."""
    with contextlib.closing(_open(path)) as data:
        return _parse_header(path, data)


def _open(path: str) -> Bytes:
    must_exist(path)
    if crypt.is_encrypted(path):
        return MemoryBytes(crypt.read_plain(path))
    return FileBytes(path, damaged)


def _parse_header(path: str, data: Bytes) -> dict:
    hint = "mindrecord.FileWriter writes such files"
    if len(data) < 8:
        raise damaged(
            path,
            f"Invalid file, the size of mindrecord file: {len(data)} is smaller than the lower limit: 8.",
            hint,
        )
    (size,) = struct.unpack("<Q", data.piece(0, 8))
    if not 2 <= size <= 128 << 20:
        raise damaged(
            path, "Invalid file, the size of mindrecord file header is larger than the upper limit.", hint
        )
    if len(data) - 8 < size:
        raise damaged(path, f"the file is cut off inside its header of {size} bytes")
    try:
        header = json.loads(data.piece(8, 8 + size))
        _check_header(header)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise damaged(path, f"the header is damaged: {type(e).__name__}: {e}", hint) from None
    return header


def _check_header(header: dict) -> None:
    if header["version"] not in VERSIONS:
        raise ValueError(f"version {header['version']!r} is not known, {' and '.join(VERSIONS)} are")
    for name in ("header_size", "page_size"):
        if not isinstance(header[name], int) or header[name] < 1:
            raise ValueError(f"{name} is {header[name]!r}")
    (schema,) = header["schema"]
    for name, spec in schema["schema"].items():
        if spec["type"] not in (*ARRAYS, "string", "bytes") or not isinstance(spec.get("shape", []), list):
            raise ValueError(f"field {name!r} is {spec!r}")
        if any(type(n) is not int or (n < 1 and n != -1) for n in spec.get("shape", [])):
            raise ValueError(f"the shape of field {name!r} is {spec['shape']!r}")
    if not header["shard_addresses"] or not all(isinstance(n, str) for n in header["shard_addresses"]):
        raise ValueError("shard_addresses names no files")
    for field in header["index_fields"] or ():
        if not isinstance(field["index_field"], str):
            raise ValueError(f"an index field is {field!r}")
    generation = header.get("generation")
    if generation is not None and type(generation) is not int:
        raise ValueError(f"generation is {generation!r}")
    for page in header["page"]:
        if page["page_type"] not in ("RAW_DATA", "BLOB_DATA"):
            raise ValueError(f"page_type of a page is {page['page_type']!r}")
        for name in ("page_id", "page_size", "start_row_id", "end_row_id"):
            if not isinstance(page[name], int) or page[name] < 0:
                raise ValueError(f"{name} of a page is {page[name]!r}")


def shard_paths(path: str) -> list[str]:
    """All files of the data set that `path` belongs to, by its header.

    A data set of one file may have been renamed.
    """
    header = read_header(path)
    first = _first(path, header)
    if files.is_pending(first):
        files.settle(first)
        header = read_header(path)
    directory, name = os.path.split(path)
    names = [os.path.basename(n) for n in header["shard_addresses"]]
    if len(names) == 1:
        return [path]
    if name not in names:
        raise damaged(path, f"the file was renamed: by its header its data set has the files {names}")
    paths = [os.path.join(directory, n) for n in names]
    for each in paths:
        if not exists(each):
            raise errors.runtime_error(
                f"{each} can not be found. Please check whether the mindrecord file exists and do not "
                "rename the mindrecord file."
            )
    must_exist(path + ".db")
    for each in paths:
        if not exists(each + ".db"):
            raise errors.runtime_error(
                f"Please check that {each}.db exists and do not rename the mindrecord file and meta file."
            )
    return paths


def _first(path: str, header: dict) -> str:
    """The file by which the others of the data set are found that were written together with `path`."""
    return os.path.join(os.path.dirname(path), os.path.basename(header["shard_addresses"][0]))


class Shard:
    """Reads rows by their numbers in the file, which stays open until close()."""

    def __init__(self, path: str):
        must_exist(path)
        must_exist(path + ".db")
        self.path = path
        self._data = _open(path)
        try:
            self.header = _parse_header(path, self._data)
            (schema,) = self.header["schema"]
            self.schema = Schema(schema["schema"], schema.get("desc", ""))
            self.generation = self.header.get("generation")  # which MindSpore does not write
            self._places = self._locate()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._places)

    @property
    def used(self) -> int:
        """Bytes of the rows."""
        return int((self._places[:, [1, 3]] - self._places[:, [0, 2]]).sum())

    def close(self) -> None:
        self._data.close()

    @contextlib.contextmanager
    def index(self):
        """A connection to the index. Errors: RuntimeError when it is damaged."""
        path = self.path + ".db"
        try:
            if crypt.is_encrypted(path):
                connection = sqlite3.connect(":memory:")
                connection.deserialize(crypt.read_plain(path))
            else:
                connection = sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True)
            with contextlib.closing(connection):
                ((found,),) = connection.execute("PRAGMA user_version")
                if self.generation not in (None, found):
                    raise damaged(path, f"the index was not written together with {self.path}")
                yield connection
        except sqlite3.Error as e:
            raise damaged(path, f"the index is damaged: {e}") from None

    def index_column(self, field: str) -> str | None:
        """The column of the index that holds `field`, if there is one."""
        with self.index() as connection:
            known = {row[1] for row in connection.execute("PRAGMA table_info(INDEXES)")}
        name = f"{field}_0"
        return name if name in known else None

    def column(self, field: str) -> list:
        """The values of a scalar field of all rows, from the index where it has them."""
        name = self.index_column(field)
        if name is None:
            return [self.row(i, {field})[field] for i in range(len(self))]
        with self.index() as connection:
            return [v for (v,) in connection.execute(f'SELECT "{name}" FROM INDEXES ORDER BY ROW_ID')]

    def _locate(self) -> np.ndarray:
        """[rows, 4]: begin and end of the raw part and of the blob, in the file."""
        path = self.path + ".db"
        parts = [np.zeros((0, 7), np.int64)]
        try:
            with self.index() as connection:
                cursor = connection.execute(f"SELECT {_PLACES} FROM INDEXES ORDER BY ROW_ID")
                while found := cursor.fetchmany(_AT_ONCE):
                    parts.append(np.array(found, np.int64))
            table = np.concatenate(parts)
        except errors.MyceliaError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise damaged(path, "the index holds something else than numbers") from None
        blob_rows = sum(
            p["end_row_id"] - p["start_row_id"] for p in self.header["page"] if p["page_type"] == "BLOB_DATA"
        )
        if len(table) != blob_rows or (table[:, 0] != np.arange(len(table))).any():
            raise damaged(
                path,
                f"the index has {len(table)} rows, the data file {blob_rows}: they do not belong together",
            )
        pages = table[:, [1, 1, 4, 4]]
        inside = table[:, [2, 3, 5, 6]]
        places = self.header["header_size"] + pages * self.header["page_size"] + inside
        bad = (table < 0).any(1) | (inside > self.header["page_size"]).any(1)
        bad |= (inside[:, 1] - inside[:, 0] < 8) | (inside[:, 3] - inside[:, 2] < 8)
        if bad.any():
            raise damaged(path, f"the place of row {int(np.flatnonzero(bad)[0])} is not possible")
        if len(places) and int(places.max()) > len(self._data):
            raise damaged(
                self.path, f"the file is cut off: {len(self._data)} bytes, rows reach to {int(places.max())}"
            )
        return places

    def _part(self, number: int, begin: int, end: int) -> bytes:
        data = self._data.piece(begin, end)
        if struct.unpack_from("<Q", data)[0] != end - begin - 8:
            raise damaged(self.path, f"row {number} at byte {begin} is damaged")
        return data[8:]

    def row(self, number: int, wanted=None) -> dict:
        """Row `number` by field name, only `wanted` fields: texts, numbers, bytes, arrays."""
        raw_begin, raw_end, blob_begin, blob_end = self._places[number].tolist()
        schema = self.schema
        row = {}
        try:
            scalars = [n for n in schema.scalars if wanted is None or n in wanted]
            if scalars:
                fields = schema.decode_scalars(self._part(number, raw_begin, raw_end))
                row.update((name, fields[name]) for name in scalars)
            blobs = [n for n in schema.blobs if wanted is None or n in wanted]
            if blobs:
                parts = schema.decode_blobs(self._part(number, blob_begin, blob_end))
                for name in blobs:
                    is_array = "shape" in schema.fields[name]
                    row[name] = schema.array(name, parts[name]) if is_array else parts[name]
        except errors.MyceliaError:
            raise
        except ValueError as e:
            raise damaged(self.path, f"row {number}: {e}") from None
        return row

    def columns(self, numbers: np.ndarray, wanted) -> dict[str, np.ndarray | list]:
        """Fields of many rows: [rows, ...], bytes as [rows, 1], texts as objects; a list of the rows' values
        where they differ in size.
        """
        schema, places = self.schema, self._places[numbers]
        made: dict[str, np.ndarray | list] = {}
        scalars = [n for n in schema.scalars if n in wanted]
        if scalars:
            windows, begins, ends = self._bodies(numbers, places[:, 0], places[:, 1])
            found, odd = unpack_scalars(windows, schema, scalars, begins, ends - begins)
            for k in np.flatnonzero(odd).tolist():
                row = self.row(int(numbers[k]), scalars)
                try:
                    for name, column in found.items():
                        column[k] = schema.scalar(name, row[name])
                except ValueError as e:
                    raise damaged(self.path, f"row {int(numbers[k])}: {e}") from None
            for name, column in found.items():
                kind = schema.fields[name]["type"]
                made[name] = column if kind == "string" else column.astype(kind)
        blobs = [n for n in schema.blobs if n in wanted]
        if blobs:
            windows, begins, ends = self._bodies(numbers, places[:, 2], places[:, 3])
            parts, bad = locate_blobs(windows, schema, begins, ends)
            self._refuse(numbers, bad)
            for name in blobs:
                column = blob_column(windows, schema.fields[name], *parts[name])
                if column is None:
                    column = [self.row(int(k), {name})[name] for k in numbers]
                made[name] = column
        return made

    def _bodies(self, numbers, begins, ends) -> tuple[Windows, np.ndarray, np.ndarray]:
        """Parts of rows, and begin and end of the data in them behind the lengths, which are compared."""
        sizes = ends - begins
        windows, ends = Windows(self._data.pieces(begins, sizes)), np.cumsum(sizes)
        begins = ends - sizes
        self._refuse(numbers, windows.take("<i8", begins) != sizes - 8)
        return windows, begins + 8, ends

    def _refuse(self, numbers: np.ndarray, bad: np.ndarray) -> None:
        if bad.any():
            number = int(numbers[np.flatnonzero(bad)[0]])
            self.row(number)  # says what is wrong
            raise damaged(self.path, f"row {number} is damaged")


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


class Shards:
    """The rows of several files, one after the other."""

    def __init__(self, paths: list[str]):
        self.files: list[Shard] = []
        try:
            for _ in range(_ATTEMPTS):  # files may be replaced while they are opened
                self._open(paths)
                pending = {f for f in (_first(s.path, s.header) for s in self.files) if files.is_pending(f)}
                if not pending and self._mixed() is None:
                    break
                for first in pending:
                    files.settle(first)
            if mixed := self._mixed():
                raise damaged(*mixed)
            for file in self.files:
                if self.schema.fields != file.schema.fields:
                    raise damaged(
                        file.path,
                        f"Invalid file, the metadata of mindrecord file: {file.path} is different from "
                        f"others: the fields are not those of {paths[0]}",
                    )
        except BaseException:
            self.close()
            raise
        self.starts = np.cumsum([0, *(len(f) for f in self.files)])

    def _open(self, paths: list[str]) -> None:
        self.close()
        self.files.clear()
        for path in paths:
            files.settle(path)
            try:
                self.files.append(Shard(path))
            except DamagedFileError:  # or an index of another generation
                files.settle_directory(os.path.dirname(os.path.abspath(path)))
                self.files.append(Shard(path))

    def _mixed(self) -> tuple[str, str] | None:
        """A file, and why it was not written together with another one of its data set."""
        known = {os.path.abspath(file.path): file for file in self.files}
        for file in self.files:
            directory = os.path.dirname(os.path.abspath(file.path))
            for name in file.header["shard_addresses"]:
                other = known.get(os.path.join(directory, os.path.basename(name)))
                if other is not None and len(file.header["shard_addresses"]) > 1:
                    if other.generation != file.generation:
                        return file.path, f"the file was not written together with {other.path}"
        return None

    def __reduce__(self):
        return Shards, ([f.path for f in self.files],)  # another process opens the files itself

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @classmethod
    def open(cls, file_name: str | list[str]) -> Shards:
        """Of a list just these files; of a name all files of its data set."""
        return cls(list(file_name) if isinstance(file_name, (list, tuple)) else shard_paths(file_name))

    @property
    def schema(self) -> Schema:
        return self.files[0].schema

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def row_bytes(self) -> float:
        """Bytes of a row in the files, on average."""
        return sum(f.used for f in self.files) / max(1, len(self))

    def row(self, number: int, wanted=None) -> dict:
        which = int(np.searchsorted(self.starts, number, "right")) - 1
        return self.files[which].row(number - int(self.starts[which]), wanted)

    def columns(self, numbers: np.ndarray, wanted) -> dict[str, np.ndarray | list]:
        """Fields of many rows, as `Shard.columns` gives them."""
        which = np.searchsorted(self.starts, numbers, "right") - 1
        present = np.unique(which).tolist()
        parts = {k: self.files[k].columns((numbers - self.starts[k])[which == k], wanted) for k in present}
        if len(parts) == 1:
            return parts[present[0]]
        return {
            name: _merged([(np.flatnonzero(which == k), part[name]) for k, part in parts.items()])
            for name in parts[present[0]]
        }

    def column(self, field: str) -> list:
        return [v for f in self.files for v in f.column(field)]

    def close(self) -> None:
        for file in self.files:
            file.close()


def _merged(parts: list[tuple[np.ndarray, np.ndarray | list]]) -> np.ndarray | list:
    """Columns of several files as one; `parts` are (rows, their values)."""
    first = parts[0][1]
    if all(isinstance(c, np.ndarray) and c.shape[1:] == first.shape[1:] and c.dtype == first.dtype
           for _, c in parts):  # fmt: skip
        whole = np.empty((sum(len(rows) for rows, _ in parts), *first.shape[1:]), first.dtype)
        for rows, column in parts:
            whole[rows] = column
        return whole
    whole = [None] * sum(len(rows) for rows, _ in parts)
    for rows, column in parts:
        for row, value in zip(rows.tolist(), column):
            whole[row] = value
    return whole
