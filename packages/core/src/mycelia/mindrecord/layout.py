"""One file of a MindRecord data set with its index, for writing.

Row group g is what the g-th blob page holds. A group is closed when the next row would overflow its blob page
or a whole raw page; its raw part goes to the last raw page if it fits there, else to a new one.
Nothing appears under the final names before they are put there by `files.replace_all`.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import zlib

import numpy as np

from mycelia.engine.base import errors
from mycelia.io.crc32c import crc32c
from mycelia.io.files import Temporary
from mycelia.mindrecord import crypt
from mycelia.mindrecord.packing import Packed
from mycelia.mindrecord.schema import INDEX_TYPES, Schema

_FIXED = (
    "ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, "
    "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
    "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL"
)
_MODE = 0o600
_ROWS_A_STATEMENT, _MARKS_A_STATEMENT = 50, 900  # SQLite before 3.32 takes 999 marks


class ShardFile:
    """A file that grows by rows. `pages` and `rows` begin with what an appended file has already."""

    def __init__(self, path: str, number: int, schema: Schema, index: list[str], sizes: tuple[int, int]):
        self.path, self.number, self.schema, self.index = path, number, schema, index
        self.header_size, self.page_size = sizes
        self.pages: list[dict] = []
        self.rows = self.saved = 0
        self._begin_group()
        self.digest = 0  # of all rows
        self._data = Temporary(path, _MODE)
        self._file = self._data.file
        self._connection: sqlite3.Connection | None = None
        self._encrypted: list[Temporary] = []
        try:
            self._index = Temporary(path + ".db", _MODE)
        except BaseException:
            self._data.discard()
            raise

    def begin(self, old: str | None = None) -> None:
        """An empty file, or a copy of the plain file `old` whose header gave pages, rows and sizes."""
        if old is None:
            self._connect()
            columns = "".join(
                f", INC_{k} INT, {name}_0 {INDEX_TYPES[self.schema.fields[name]['type']]}"
                for k, name in enumerate(self.index)
            )
            keys = ", ".join(["ROW_ID", *(f"INC_{k}" for k in range(len(self.index)))])
            self._connection.execute(f"CREATE TABLE INDEXES({_FIXED}{columns}, PRIMARY KEY({keys}))")
            self._connection.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            self._connection.execute("INSERT INTO SHARD_NAME VALUES (?)", (os.path.basename(self.path),))
            return
        for path, file in ((old, self._data.file), (old + ".db", self._index.file)):
            if crypt.is_encrypted(path):
                file.write(crypt.read_plain(path))
            else:
                with open(path, "rb") as source:
                    shutil.copyfileobj(source, file, 1 << 20)
            file.flush()
        self._connect()

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self._index.name, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=OFF")  # the file is thrown away when anything fails
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._connection.execute("PRAGMA cache_size=-16384")  # KiB
        self._connection.execute("BEGIN")

    def add(self, rows: Packed) -> None:
        """Errors: RuntimeError for a row that no page can hold; then none is added."""
        largest = max(int(rows.raw_sizes.max()), int(rows.blob_sizes.max()))
        if largest > self.page_size:
            raise errors.runtime_error(
                "FileWriter.write_raw_data",
                f"a row of {largest} bytes does not fit into a page of {self.page_size}",
                hint="call set_page_size with a larger size before the first row",
            )
        raw_ends, blob_ends = np.cumsum(rows.raw_sizes), np.cumsum(rows.blob_sizes)
        at = raw_at = blob_at = 0
        while at < len(raw_ends):
            raw_room = raw_at + self.page_size - self._raw_size
            blob_room = blob_at + self.page_size - self._blob_size
            fits = min(
                int(np.searchsorted(raw_ends, raw_room, "right")),
                int(np.searchsorted(blob_ends, blob_room, "right")),
            )
            if fits == at:
                self._close_group()
                continue
            raw_end, blob_end = int(raw_ends[fits - 1]), int(blob_ends[fits - 1])
            if not self._blob_size:
                # The next page is the group's: no other begins before it is closed.
                self._file.seek(self.header_size + len(self.pages) * self.page_size)
            self._file.write(memoryview(rows.blob)[blob_at:blob_end])
            self._raw.append(rows.raw[raw_at:raw_end])
            self._raw_ends.append(raw_ends[at:fits] - raw_at + self._raw_size)
            self._blob_ends.append(blob_ends[at:fits] - blob_at + self._blob_size)
            for keys, new in zip(self._keys, rows.keys):
                keys += new[at:fits]
            self._raw_size += raw_end - raw_at
            self._blob_size += blob_end - blob_at
            self._waiting += fits - at
            at, raw_at, blob_at = fits, raw_end, blob_end
        self.saved += rows.saved
        self.digest = zlib.crc32(struct.pack("<III", self.digest, crc32c(rows.raw), crc32c(rows.blob)))

    @property
    def count(self) -> int:
        """Rows so far."""
        return self.rows + self._waiting

    def _pages(self, kind: str) -> list[dict]:
        return [page for page in self.pages if page["page_type"] == kind]

    def _new_page(self, kind: str, start: int = 0, end: int = 0) -> dict:
        page = {
            "end_row_id": end, "page_id": len(self.pages), "page_size": 0, "page_type": kind,
            "page_type_id": len(self._pages(kind)), "row_group_ids": [], "shard_id": self.number,
            "start_row_id": start,
        }  # fmt: skip
        self.pages.append(page)
        return page

    def _begin_group(self) -> None:
        """No row waits: blobs lie in the file already, the rest when the group is closed."""
        self._raw: list[bytes] = []
        self._raw_ends: list[np.ndarray] = []  # inside of the group
        self._blob_ends: list[np.ndarray] = []
        self._keys: list[list] = [[] for _ in self.index]
        self._raw_size = self._blob_size = self._waiting = 0

    def _close_group(self) -> None:
        if not self._waiting:
            return
        group = len(self._pages("BLOB_DATA"))
        blob_page = self._new_page("BLOB_DATA", self.rows, self.rows + self._waiting)
        blob_page["row_group_ids"].append({"id": 0, "offset": 0})
        blob_page["page_size"] = self._blob_size
        raw_page = next(iter(self._pages("RAW_DATA")[-1:]), None)
        if raw_page is None or raw_page["page_size"] + self._raw_size > self.page_size:
            raw_page = self._new_page("RAW_DATA")
        offset = raw_page["page_size"]
        raw_page["row_group_ids"].append({"id": group, "offset": offset})
        self._file.seek(self.header_size + raw_page["page_id"] * self.page_size + offset)
        self._file.write(b"".join(self._raw))
        raw_page["page_size"] += self._raw_size
        raw_ends = np.concatenate([[0], *self._raw_ends]) + offset
        blob_ends = np.concatenate([[0], *self._blob_ends])
        keys = ", 0, ?" * len(self.index)
        self._insert(
            f"(?, {raw_page['page_id']}, ?, ?, {group}, {blob_page['page_id']}, ?, ?{keys})",
            [
                range(self.rows, self.rows + self._waiting),
                raw_ends[:-1].tolist(), raw_ends[1:].tolist(),
                blob_ends[:-1].tolist(), blob_ends[1:].tolist(), *self._keys,
            ],
        )  # fmt: skip
        self.rows += self._waiting
        self._begin_group()

    def _insert(self, marks: str, columns: list) -> None:
        """Rows of the index; many in a statement, since a statement costs more than a row."""
        width, count = len(columns), len(columns[0])
        values: list = [None] * (width * count)
        for k, column in enumerate(columns):
            values[k::width] = column
        most = max(1, min(_ROWS_A_STATEMENT, _MARKS_A_STATEMENT // width))
        whole = count - count % most
        for many, start, end in ((most, 0, whole), (1, whole, count)):
            statement = "INSERT INTO INDEXES VALUES " + ", ".join([marks] * many)
            step = many * width
            places = range(start * width, end * width, step)
            self._connection.executemany(statement, (values[at : at + step] for at in places))

    def complete(self, addresses: list[str], saved: int, generation: int) -> None:
        """Write the last group and the header. Errors: RuntimeError when the header is too long.

        `generation` is in all files of a data set that were written together, which MindSpore passes over.
        """
        self._close_group()
        index = [{"index_field": name, "schema_id": 0} for name in self.index]
        header = {
            "header_size": self.header_size, "index_fields": index or None, "page": self.pages,
            "page_size": self.page_size, "compression_size": saved, "schema": [self.schema.to_header()],
            "shard_addresses": addresses, "shard_id": self.number, "statistics": None, "version": "3.0",
            "generation": generation,
        }  # fmt: skip
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) + 8 > self.header_size:
            raise errors.runtime_error(
                "FileWriter.commit",
                f"the header has {len(text)} bytes and does not fit into header_size {self.header_size}",
                hint="call set_header_size, or set_page_size for fewer pages",
            )
        self._file.seek(0)
        self._file.write((struct.pack("<Q", len(text)) + text).ljust(self.header_size, b"\0"))
        self._connection.execute(f"PRAGMA user_version={generation}")
        self._connection.execute("COMMIT")
        self._connection.close()

    def finished(self) -> list[Temporary]:
        """Data and index as they are to be put in their places."""
        if crypt.get_enc_key() is not None:
            for plain in (self._data, self._index):
                self._encrypted.append(Temporary(plain.path, plain.mode))
                plain.file.flush()
                with open(plain.name, "rb") as source:  # SQLite wrote into it by a handle of its own
                    crypt.encrypt_file(source, self._encrypted[-1].file)
        return self._encrypted or [self._data, self._index]

    def discard(self) -> None:
        """Leave nothing behind but what was there before."""
        if self._connection is not None:
            self._connection.close()
        for temporary in (self._data, self._index, *self._encrypted):
            temporary.discard()
