"""Writing MindRecord files."""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
import zlib

from mycelia.engine.base import errors, log
from mycelia.io import files
from mycelia.mindrecord import crypt, exceptions, shard
from mycelia.mindrecord.layout import ShardFile
from mycelia.mindrecord.packing import all_fit, pack_rows
from mycelia.mindrecord.schema import Schema, check, is_blob

SUCCESS, FAILED = 0, 1
_HEADER_SIZES = (16 << 10, 128 << 20)
_PAGE_SIZES = (32 << 10, 256 << 20)
_FORBIDDEN = "\\:*?\"<>|`&;'"


def checked_name(file_name) -> str:
    """The path. Errors: ParamValueError for what cannot be a file's name."""
    if not file_name:
        raise exceptions.ParamValueError("File path is not allowed None or empty!")
    if not isinstance(file_name, str):
        raise exceptions.ParamValueError(f"File path: {file_name} is not string.")
    if file_name.endswith("/"):
        raise exceptions.ParamValueError("File path can not end with '/'")
    if any(c in _FORBIDDEN for c in os.path.basename(file_name)):
        raise exceptions.ParamValueError(f"File name should not contains /{_FORBIDDEN}")
    return file_name


class FileWriter:
    """Writes rows (dicts) into `shard_num` MindRecord files and their indexes.

    Files appear when `commit` succeeds; before, and after any error, what was there stays. With `shard_num`
    above 1 the files are ``<file_name>0``, ``<file_name>1``, ...
    Errors: ParamValueError for bad arguments.
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False):
        self._name = checked_name(file_name)
        if shard_num is None:
            raise exceptions.ParamValueError("Parameter shard_num is None.")
        if not isinstance(shard_num, int):
            raise exceptions.ParamValueError("Parameter shard_num's type is not int.")
        if not 1 <= shard_num <= 1000:
            raise exceptions.ParamValueError(
                f"Parameter shard_num's value: {shard_num} should between 1 and 1000."
            )
        if not isinstance(overwrite, bool):
            raise exceptions.ParamValueError("Parameter overwrite's type is not bool.")
        if shard_num > 1 and crypt.get_enc_key() is not None:
            raise errors.runtime_error(
                "FileWriter",
                "When encode mode is enabled, the automatic sharding function is unavailable. shard_num is "
                f"{shard_num}, but encrypted data sets have one file",
            )
        width = len(str(shard_num - 1))
        self._paths = [
            f"{file_name}{k:0{width}d}" if shard_num > 1 else file_name for k in range(int(shard_num))
        ]
        self._overwrite = overwrite
        self._header_size, self._page_size = 16 << 20, 32 << 20
        self._schema: Schema | None = None
        self._index: list[str] = []
        self._appends = self._flushed = False
        self._files: list[ShardFile] = []
        self._cleaner = None

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """A writer that adds rows to the data set of `file_name` (any of its files). Errors: RuntimeError."""
        checked_name(file_name)
        paths = shard.shard_paths(file_name)
        writer = cls(file_name, len(paths), True)
        header = shard.read_header(paths[0])
        writer._paths = paths
        writer._header_size, writer._page_size = header["header_size"], header["page_size"]
        (schema,) = header["schema"]
        writer._schema = Schema(schema["schema"], schema.get("desc", ""))
        writer._index = [field["index_field"] for field in header["index_fields"] or ()]
        writer._appends = True
        return writer

    # ---- before the first row ------------------------------------------------------------------------------

    def _size(self, name: str, size, limits: tuple[int, int]) -> int:
        owner = f"FileWriter.set_{name}"
        if isinstance(size, bool) or not isinstance(size, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {size!r}")
        if not limits[0] <= size <= limits[1] or size % 4:
            raise errors.runtime_error(
                owner, f"{name} must be a multiple of 4 from {limits[0]} to {limits[1]}, but got {size}"
            )
        if self._files:
            raise errors.runtime_error(owner, f"{name} cannot change after the first row")
        return size

    def set_header_size(self, header_size: int) -> None:
        """Bytes for the header: 16 KiB to 128 MiB, default 16 MiB."""
        size = self._size("header_size", header_size, _HEADER_SIZES)
        if not self._appends:  # the pages of an old file stand where they stand
            self._header_size = size

    def set_page_size(self, page_size: int) -> None:
        """Bytes of a page, at least of a row: 32 KiB to 256 MiB, default 32 MiB."""
        size = self._size("page_size", page_size, _PAGE_SIZES)
        if not self._appends:
            self._page_size = size

    def add_schema(self, content: dict, desc: str | None = None) -> None:
        """The fields: name -> {"type": ..., "shape": [...]}.

        Types: string, int32, int64, float32, float64, bytes; a shape (one size may be -1) makes an array.
        Errors: MRMInvalidSchemaError, MRMBuildSchemaError; MRMAddSchemaError for an appended file.
        """
        fields = check(content)
        if desc is not None and not isinstance(desc, str):
            raise errors.type_error("FileWriter.add_schema", f"desc must be a str, but got {desc!r}")
        if self._appends or self._files:
            raise exceptions.MRMAddSchemaError
        self._schema = Schema(fields, desc or "")

    def add_index(self, index_fields: list[str]) -> None:
        """Scalar fields that the index holds; without a call all.

        Errors: ParamTypeError, MRMGetMetaError without a schema, MRMDefineIndexError for bytes and arrays,
        RuntimeError for unknown or repeated fields.
        """
        if not index_fields or not isinstance(index_fields, list):
            raise exceptions.ParamTypeError("index_fields", "list")
        if self._schema is None:
            raise exceptions.MRMGetMetaError
        chosen = list(self._index)
        for name in index_fields:
            if not isinstance(name, str):
                raise exceptions.ParamTypeError("index field", "str")
            spec = self._schema.fields.get(name)
            if spec is not None and is_blob(spec):
                raise exceptions.MRMDefineIndexError(
                    f"Failed to set field {name} since it's not primitive type."
                )
            if spec is None or name in chosen or self._files:
                why = "is not in the schema" if spec is None else "is an index already"
                if spec is not None and name not in chosen:
                    why = "comes after the first row"
                raise errors.runtime_error("FileWriter.add_index", f"the field {name!r} {why}")
            chosen.append(name)
        self._index = chosen

    # ---- rows ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._schema is None:
            raise errors.runtime_error("FileWriter", "there is no schema", hint="call add_schema first")
        files.settle_directory(os.path.dirname(os.path.abspath(self._name)))
        if not self._overwrite:
            for path in (p for name in self._paths for p in (name, name + ".db")):
                if os.path.exists(path):
                    raise errors.runtime_error(
                        "FileWriter",
                        f"Invalid file, mindrecord files already exist. Please check file path: {path}",
                        hint="give overwrite=True, or remove it",
                    )
        if not self._index and not self._appends:
            self._index = list(self._schema.scalars)
        self._cleaner = weakref.finalize(self, _discard, self._files)
        try:
            for number, path in enumerate(self._paths):
                self._files.append(
                    ShardFile(path, number, self._schema, self._index, (self._header_size, self._page_size))
                )
                self._begin(self._files[-1])
        except sqlite3.Error as e:
            self._cleaner()
            raise errors.runtime_error("FileWriter", f"the index cannot be made: {e}") from None
        except OSError as e:
            self._cleaner()
            raise errors.runtime_error("FileWriter", f"{e.filename or self._name}: {e.strerror}") from None
        except BaseException:
            self._cleaner()
            raise

    def _begin(self, file: ShardFile) -> None:
        if not self._appends:
            file.begin()
            return
        shard.Shard(file.path).close()  # rows are added to sound files only
        header = shard.read_header(file.path)
        file.pages = sorted(header["page"], key=lambda page: page["page_id"])
        file.rows = max((page["end_row_id"] for page in file.pages), default=0)
        file.saved = header.get("compression_size", 0) if file.number == 0 else 0
        file.digest = header.get("generation") or 0
        file.begin(file.path)

    def write_raw_data(self, raw_data: list[dict], parallel_writer: bool = False) -> None:
        """Add rows; each file gets an equal run of them.

        Rows that do not fit the schema are left out with a warning. Errors: ParamTypeError for another type;
        RuntimeError when no row is left, when a row is larger than a page, and after `commit`.
        """
        if self._flushed:
            raise errors.runtime_error(
                "FileWriter.write_raw_data",
                "Not allowed to call `write_raw_data` on flushed MindRecord files.",
                hint="write all rows before commit, or use FileWriter.open_for_append",
            )
        if not isinstance(parallel_writer, bool):
            raise errors.type_error("The parameter `parallel_writer` must be bool.")
        if not isinstance(raw_data, list):
            raise exceptions.ParamTypeError("raw_data", "list")
        if not all(issubclass(kind, dict) for kind in set(map(type, raw_data))):
            raise exceptions.ParamTypeError("raw_data item", "dict")
        if not self._files:
            self._open()
        rows = raw_data if all_fit(self._schema, raw_data) else self._fitting(raw_data)
        if not rows:
            raise errors.runtime_error(
                "FileWriter.write_raw_data",
                "There is no valid data which can be written by 'write_raw_data' to mindrecord file.",
                hint="the warnings above say what is wrong with each row",
            )
        at = 0
        try:
            for file, count in zip(self._files, self._shares(len(rows))):
                if count:
                    file.add(pack_rows(self._schema, rows[at : at + count], self._index))
                at += count
        except (OSError, sqlite3.Error) as e:  # a full disk
            self._give_up()
            raise errors.runtime_error("FileWriter.write_raw_data", f"{self._name}: {e}") from None

    def _fitting(self, raw_data: list[dict]) -> list[dict]:
        rows = []
        for number, row in enumerate(raw_data):
            why = self._schema.misfit(row)
            if why:
                log.warning(f"FileWriter.write_raw_data leaves out row {number}: {why}")
            else:
                rows.append(row)
        return rows

    def _give_up(self) -> None:
        """Nothing of this writer stays on the disk, and nothing more can be written."""
        if self._cleaner is not None:
            self._cleaner()
        self._flushed = True

    def _shares(self, total: int) -> list[int]:
        """How many rows each file gets: what is left over goes to the shortest, the last of them first."""
        whole, rest = divmod(total, len(self._files))
        order = sorted(range(len(self._files)), key=lambda k: (self._files[k].count, -k))
        return [whole + (k in order[:rest]) for k in range(len(self._files))]

    def commit(self) -> None:
        """Write headers and indexes, and put the files in their places, all or none. Errors: RuntimeError."""
        commit_together([self])

    def _finished(self) -> list[files.Temporary]:
        """All files as they are to be put in their places."""
        if self._flushed:
            raise errors.runtime_error("FileWriter.commit", "the files are committed already")
        if not self._files:
            self._open()
        addresses = [os.path.basename(path) for path in self._paths]
        if crypt.get_enc_key() is not None:
            crypt.check_settings()
        saved = sum(file.saved for file in self._files)
        known = [self._schema.to_header(), self._index, self._header_size, self._page_size]
        known += [[file.digest, file.count] for file in self._files]
        generation = zlib.crc32(json.dumps(known).encode()) & 0x7FFFFFFF  # SQLite keeps it in an int32
        for file in self._files:
            file.complete(addresses, saved, generation)
        return [temporary for file in self._files for temporary in file.finished()]


def commit_together(writers: list[FileWriter]) -> None:
    """`FileWriter.commit` for data sets in one directory that belong together: all appear, or none.

    Errors: RuntimeError.
    """
    try:
        files.replace_all(*[writer._finished() for writer in writers])
    except (OSError, sqlite3.Error) as e:
        raise errors.runtime_error("FileWriter.commit", f"{writers[0]._name}: {e}") from None
    finally:
        for writer in writers:
            writer._give_up()


def _discard(shards: list[ShardFile]) -> None:
    for file in shards:
        file.discard()
