"""The .ms file format of MindSpore Lite: read, write, show as text.

A model is a tree of `Table` records, the fields of which msl2.schema lists: `read("lenet.ms").nodes[0].name`.
"""

from __future__ import annotations

import os

from mycelia_lite.format.flatbuffer import decode, encode, encode_parts
from mycelia_lite.format.schema import ENUMS, PRIMITIVES, TABLES
from mycelia_lite.format.table import FormatError, Table
from mycelia_lite.format.tensors import data_of, mapped
from mycelia_lite.format.text import from_text, to_text

__all__ = [
    "ENUMS",
    "PRIMITIVES",
    "TABLES",
    "FormatError",
    "Table",
    "data_of",
    "decode",
    "encode",
    "from_text",
    "read",
    "to_text",
    "write",
]


def read(path: str | os.PathLike) -> Table:
    """The `MetaGraph` of a .ms file.

    The file is mapped: bytes in the table are views into it, which the system reads when they are used.
    Errors: `FormatError` for a damaged file, OSError.
    """
    data = mapped(path)
    try:
        return decode(data)
    except FormatError as e:
        from mycelia.io.crypto import is_encrypted

        if is_encrypted(data[:4]):
            what = "the file is encrypted: only the runtime reads it, with its key"
            raise FormatError(what, subject=os.fspath(path)) from None
        e.subject = os.fspath(path)
        raise


def write(path: str | os.PathLike, table: Table) -> None:
    """Write `table` as a .ms file; a file at `path` is replaced when the new one is complete and on disk.

    Errors: `FormatError` for a value that does not fit its field, OSError.
    """
    from mycelia.io.files import atomic_write

    parts = encode_parts(table)
    with atomic_write(os.fspath(path)) as file:
        for part in parts:
            file.write(part)
