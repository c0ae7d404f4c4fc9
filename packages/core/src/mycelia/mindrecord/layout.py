"""One file of a MindRecord data set with its index, for writing.

Row group g is what the g-th blob page holds. A group is closed when the next row would overflow its blob page
or a whole raw page; its raw part goes to the last raw page if it fits there, else to a new one. Nothing
appears under the final names before `finish`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import struct
import tempfile

from mycelia import errors
from mycelia.io.files import atomic_write
from mycelia.mindrecord import crypt
from mycelia.mindrecord.schema import INDEX_TYPES, Schema

_FIXED = (
    "ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, "
    "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
    "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL"
)


class ShardFile:
    """A file that grows by rows. `pages` and `rows` begin with what an appended file has already."""

    def __init__(self, path: str, number: int, schema: Schema, index: list[str], sizes: tuple[int, int]):
        self.path, self.number, self.schema, self.index = path, number, schema, index
        self.header_size, self.page_size = sizes
        self.pages: list[dict] = []
        self.rows = self.saved = 0
        self._raw: list[bytes] = []
        self._blob: list[bytes] = []
        self._keys: list[tuple] = []
        self._raw_size = self._blob_size = 0
        directory, name = os.path.split(os.path.abspath(path))
        handle, self._temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=directory)
        self._file = os.fdopen(handle, "w+b")
        self._database = self._temporary + ".db"
        self._connection: sqlite3.Connection | None = None

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
        for source, target in ((old, self._temporary), (old + ".db", self._database)):
            if crypt.is_encrypted(source):
                with open(target, "wb") as file:
                    file.write(crypt.read_plain(source))
            else:
                shutil.copyfile(source, target)
        self._file.close()
        self._file = open(self._temporary, "r+b")
        self._connect()

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self._database, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=OFF")  # the file is thrown away when anything fails
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute("BEGIN")

    def add(self, row: dict) -> None:
        """Errors: RuntimeError for a row that no page can hold."""
        raw = self.schema.encode_scalars(row)
        blob, saved = self.schema.encode_blobs(row)
        raw_size, blob_size = len(raw) + 8, len(blob) + 8
        if max(raw_size, blob_size) > self.page_size:
            raise errors.runtime_error(
                "FileWriter.write_raw_data",
                f"a row of {max(raw_size, blob_size)} bytes does not fit into a page of {self.page_size}",
                hint="call set_page_size with a larger size before the first row",
            )
        if self._blob_size + blob_size > self.page_size or self._raw_size + raw_size > self.page_size:
            self._close_group()
        self._raw.append(struct.pack("<Q", len(raw)) + raw)
        self._blob.append(struct.pack("<Q", len(blob)) + blob)
        self._keys.append(tuple(self._key(row[name]) for name in self.index))
        self._raw_size += raw_size
        self._blob_size += blob_size
        self.saved += saved

    @staticmethod
    def _key(value):
        return value if isinstance(value, str) else getattr(value, "item", lambda: value)()

    @property
    def count(self) -> int:
        """Rows so far."""
        return self.rows + len(self._raw)

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

    def _put(self, page: dict, parts: list[bytes]) -> list[tuple[int, int]]:
        """Append to a page; begin and end of each part inside of it."""
        self._file.seek(self.header_size + page["page_id"] * self.page_size + page["page_size"])
        places = []
        for part in parts:
            self._file.write(part)
            places.append((page["page_size"], page["page_size"] + len(part)))
            page["page_size"] += len(part)
        return places

    def _close_group(self) -> None:
        if not self._raw:
            return
        count = len(self._raw)
        group = len(self._pages("BLOB_DATA"))
        blob_page = self._new_page("BLOB_DATA", self.rows, self.rows + count)
        blob_page["row_group_ids"].append({"id": 0, "offset": 0})
        blobs = self._put(blob_page, self._blob)
        raw_page = next(iter(self._pages("RAW_DATA")[-1:]), None)
        if raw_page is None or raw_page["page_size"] + self._raw_size > self.page_size:
            raw_page = self._new_page("RAW_DATA")
        raw_page["row_group_ids"].append({"id": group, "offset": raw_page["page_size"]})
        raws = self._put(raw_page, self._raw)
        marks = ", ".join("?" * (8 + 2 * len(self.index)))
        self._connection.executemany(
            f"INSERT INTO INDEXES VALUES ({marks})",
            (
                (self.rows + i, raw_page["page_id"], *raws[i], group, blob_page["page_id"], *blobs[i],
                 *(v for key in self._keys[i] for v in (0, key)))
                for i in range(count)
            ),
        )  # fmt: skip
        self.rows += count
        self._raw, self._blob, self._keys = [], [], []
        self._raw_size = self._blob_size = 0

    def complete(self, addresses: list[str], saved: int) -> None:
        """Write the last group and the header. Errors: RuntimeError when the header is too long."""
        self._close_group()
        index = [{"index_field": name, "schema_id": 0} for name in self.index]
        header = {
            "header_size": self.header_size, "index_fields": index or None, "page": self.pages,
            "page_size": self.page_size, "compression_size": saved, "schema": [self.schema.to_header()],
            "shard_addresses": addresses, "shard_id": self.number, "statistics": None, "version": "3.0",
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
        self._file.flush()
        self._connection.execute("COMMIT")
        self._connection.close()

    def finish(self) -> None:
        """Put data and index in their places."""
        self._file.close()
        mode = stat.S_IRUSR | stat.S_IWUSR
        for source, target in ((self._temporary, self.path), (self._database, self.path + ".db")):
            if crypt.get_enc_key() is not None:
                with open(source, "rb") as plain, atomic_write(target, mode) as file:
                    crypt.encrypt_file(plain, file)
                os.unlink(source)
                continue
            with open(source, "rb") as file:
                os.fsync(file.fileno())
            os.chmod(source, mode)
            os.replace(source, target)

    def discard(self) -> None:
        """Leave nothing behind but what was there before."""
        self._file.close()
        if self._connection is not None:
            self._connection.close()
        for path in (self._temporary, self._database):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
