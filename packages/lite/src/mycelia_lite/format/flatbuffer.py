"""FlatBuffers over a schema: `decode` bytes to a `Table`, `encode` a `Table` to bytes.

Format: https://flatbuffers.dev/internals/. A file is a tree of tables; a table is a row of fields at the
offsets that its vtable tells, and what has no fixed size lies behind it, at unsigned offsets.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from mycelia_lite.format.schema import MSL2, Field, Schema, TableType
from mycelia_lite.format.table import FormatError, Table, bytes_of, enum_number, table_type

ALIGNMENT = 64  # of bytes (weights): a cache line, and the widest vector register
LARGEST = 2**31 - 1  # FlatBuffers keeps to signed 32-bit offsets
_U16, _I32, _U32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")


def decode(data: Any, root: str = "", schema: Schema = MSL2) -> Table:
    """The root table of the bytes of a .ms file, or of a file of another schema.

    `data` is any buffer; bytes in the table (`Tensor.data`) are views into it, nothing of them is copied.
    Numbers are Python's, vectors of them lists. Every offset, length, alignment and string is checked.
    Errors: `FormatError` with the place inside the file.
    """
    reader = _Reader(bytes_of(data))
    return reader.root(table_type(root or schema.root, schema))


def encode(table: Table) -> bytes:
    """The bytes of a .ms file with `table` as its root; equal tables give equal bytes.

    Tensor data begin at multiples of 64 bytes, behind everything else. Errors: `FormatError` with the place
    of a value that does not fit its field, or where the file gets larger than 2 GiB.
    """
    return b"".join(encode_parts(table))


def encode_parts(table: Table) -> list[Any]:
    """`encode`, as buffers that follow one another: no copy of the weights is made."""
    writer = _Writer()
    return writer.root(table)


def _place(path: list[Any]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" if i else p for i, p in enumerate(path))


class _Reader:
    """Reads tables from `data`; `path` is where it is, for errors."""

    def __init__(self, data: memoryview):
        self.data, self.size = data, len(data)
        self.path: list[Any] = []
        # Tables may share what they point to, but a file that does so over and over would not end.
        self.left = 2 * self.size
        self.vtables: dict[int, tuple[int, ...]] = {}

    def error(self, what: str) -> FormatError:
        return FormatError(f"{_place(self.path)}: {what}")

    def root(self, kind: TableType) -> Table:
        self.path = [kind.name]
        if self.size < 8:
            raise self.error(f"{self.size} bytes are too few for a {kind.schema.what}")
        found, wanted = bytes(self.data[4:8]), kind.schema.identifier
        if found != wanted:
            others = f"no {kind.schema.what}, an encrypted one, or an older one"
            raise self.error(f"the file identifier is {found!r}, not {wanted!r}: {others}")
        return self.table(self.follow(0), kind)

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise self.error(f"parts are used many times: more than twice the file's {self.size} bytes")

    def follow(self, at: int) -> int:
        """Where the offset at `at` points."""
        offset = _U32.unpack_from(self.data, at)[0]
        target = at + offset
        if not offset or target + 4 > self.size:
            raise self.error(
                f"offset {target} points behind the end ({self.size} bytes)" if offset else "offset is 0"
            )
        if target % 4:
            raise self.error(f"offset {target} is no multiple of 4")
        return target

    def vtable(self, at: int) -> tuple[int, ...]:
        """Size of the table at `at`, then the offsets of its fields, 0 for those not there."""
        start = at - _I32.unpack_from(self.data, at)[0]
        if start not in self.vtables:
            if not 0 <= start <= self.size - 4:
                raise self.error(
                    f"offset {start} of the vtable points outside of the file ({self.size} bytes)"
                )
            if start % 2:
                raise self.error(f"offset {start} of the vtable is odd")
            length = _U16.unpack_from(self.data, start)[0]
            if length < 4 or length % 2 or start + length > self.size:
                raise self.error(
                    f"the vtable at {start} has a length of {length} in a file of {self.size} bytes"
                )
            self.spend(length)
            self.vtables[start] = struct.unpack_from(f"<{length // 2 - 1}H", self.data, start + 2)
        found = self.vtables[start]
        if found[0] < 4 or at + found[0] > self.size:
            raise self.error(f"the table at {at} has a size of {found[0]} in a file of {self.size} bytes")
        return found

    def fields(self, at: int, kind: TableType) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Values of the fields that are there, and ids of those that the schema does not have."""
        size, *offsets = self.vtable(at)
        self.spend(size + 2 * max(0, len(offsets) - kind.ids))  # of these ids each table has a list
        values = {}
        for name, field in kind.fields.items():
            if field.id >= len(offsets):
                break
            if not offsets[field.id]:
                if field.union and self.tag(at, size, offsets, field):
                    raise self.error(f"{name} has a type but no table")
                continue
            self.path.append(name)
            if (union := field.union) is not None:
                tag = self.tag(at, size, offsets, field)
                if not 0 < tag < len(union):
                    raise self.error(f"operator type {tag} is not known, the last is {len(union) - 1}")
                target = self.follow(self.inline(at, size, offsets[field.id], 4))
                values[name] = self.table(target, kind.schema.tables[union[tag]])
            elif field.is_vector:
                values[name] = self.vector(self.follow(self.inline(at, size, offsets[field.id], 4)), field)
            elif field.scalar is not None:
                where = self.inline(at, size, offsets[field.id], field.scalar.size)
                value = field.scalar.unpack_from(self.data, where)[0]
                values[name] = value if field.enum is None else field.enum.member(value)
            else:
                target = self.follow(self.inline(at, size, offsets[field.id], 4))
                values[name] = (
                    self.string(target) if field.type == "string" else self.table(target, field.table)
                )
            self.path.pop()
        return values, tuple(i for i in range(kind.ids, len(offsets)) if offsets[i])

    def inline(self, at: int, size: int, offset: int, width: int) -> int:
        """Where a field of `width` bytes lies in the table at `at`."""
        if offset < 4 or offset + width > size:
            raise self.error(f"field at {offset} of a table of {size} bytes")
        if (at + offset) % width:
            raise self.error(f"offset {at + offset} is no multiple of {width}")
        return at + offset

    def tag(self, at: int, size: int, offsets: list[int], field: Field) -> int:
        offset = offsets[field.id - 1]
        return self.data[self.inline(at, size, offset, 1)] if offset else 0

    def table(self, at: int, kind: TableType) -> Any:
        """The table at `at`; of a box its value."""
        values, unknown = self.fields(at, kind)
        if kind.is_box:
            if unknown:
                raise self.error(f"{kind.name} has fields that are not known, with ids {list(unknown)}")
            (field,) = kind.fields.values()
            return values.get(field.name, [] if field.is_vector else None)
        made = Table(kind)
        made._values.update((name, value) for name, value in values.items() if value is not None)
        object.__setattr__(made, "unknown_fields", unknown)
        return made

    def length(self, at: int, width: int) -> int:
        """How many elements of `width` bytes the vector at `at` has; all lie in the file."""
        count = _U32.unpack_from(self.data, at)[0]
        if at + 4 + count * width > self.size:
            raise self.error(f"{count} elements at {at} go on behind the end ({self.size} bytes)")
        return count

    def vector(self, at: int, field: Field) -> Any:
        width = field.scalar.size if field.scalar is not None else 4
        count = self.length(at, width)
        if (at + 4) % width:
            raise self.error(f"elements at {at + 4} are at no multiple of {width}")
        if field.type == "ubyte":  # not copied, so it costs nothing
            return self.data[at + 4 : at + 4 + count]
        self.spend(4 + count * width)
        if field.scalar is not None:
            return list(struct.unpack_from(f"<{count}{field.scalar.format[1:]}", self.data, at + 4))
        found = []
        for i in range(count):
            self.path.append(i)
            target = self.follow(at + 4 + 4 * i)
            found.append(self.string(target) if field.type == "string" else self.table(target, field.table))
            self.path.pop()
        return found

    def string(self, at: int) -> str:
        count = self.length(at, 1)
        end = at + 4 + count
        if end >= self.size or self.data[end]:
            raise self.error(f"the text at {at + 4} does not end with a zero byte")
        self.spend(4 + count)
        try:
            return str(self.data[at + 4 : end], "utf-8")
        except UnicodeDecodeError as e:
            raise self.error(f"the text at {at + 4} is not UTF-8: {e.reason} at {e.start}") from None


class _Writer:
    """Writes tables to `head`; what they point to follows them, bytes come last."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.path: list[Any] = []
        self.vtables: dict[bytes, int] = {}
        self.blobs: list[tuple[int, memoryview]] = []  # where the offset stands, what it is to point to

    def error(self, what: str) -> FormatError:
        return FormatError(f"{_place(self.path)}: {what}")

    def root(self, table: Table) -> list[Any]:
        if not isinstance(table, Table):
            raise FormatError(f"a Table is expected, not {type(table).__name__}")
        self.path = [table.kind]
        schema = table.schema
        self.head += _U32.pack(0) + schema.identifier
        self.point(0, self.table(table, schema.tables[table.kind]))
        parts: list[Any] = [self.head]
        end = len(self.head)
        for at, blob in self.blobs:
            gap = -(end + 4) % ALIGNMENT
            start = end + gap
            end = start + 4 + len(blob)
            if end > LARGEST:
                raise self.error(
                    f"more than {LARGEST} bytes: weights of that size go to another file (externalData)"
                )
            _U32.pack_into(self.head, at, start - at)
            parts += [bytes(gap) + _U32.pack(len(blob)), blob]
        return parts

    def align(self, width: int, ahead: int = 0) -> None:
        """Fill up so that what comes `ahead` bytes later lies at a multiple of `width`."""
        self.head += bytes(-(len(self.head) + ahead) % width)

    def point(self, at: int, target: int) -> None:
        """Let the offset at `at` point to `target`."""
        _U32.pack_into(self.head, at, target - at)

    def table(self, table: Table, kind: TableType) -> int:
        if not isinstance(table, Table) or table._type is not kind:
            found = (
                f"the table {table.kind}"
                if isinstance(table, Table)
                else f"{type(table).__name__} {table!r:.60}"
            )
            raise self.error(f"the table {kind.name} is expected, not {found}")
        if table.unknown_fields:
            raise self.error(
                f"fields of a newer version, with ids {list(table.unknown_fields)}, would get lost"
            )
        return self.fields(kind, table.items())

    def fields(self, kind: TableType, items: list[tuple[Field, Any]]) -> int:
        """Write a table with these values, then what it points to; where it is."""
        inline: list[tuple[int, bytes]] = []  # id, bytes
        behind = []
        for field, value in items:
            self.path.append(field.name)
            if field.union:
                inline.append((field.id - 1, bytes([self.tag(field, value)])))
            if field.scalar is not None and not field.is_vector:
                packed = self.scalar(field, value)
                if packed != field.scalar.pack(field.default):
                    inline.append((field.id, packed))
            else:
                inline.append((field.id, bytes(4)))
                behind.append((field, value))
            self.path.pop()
        inline.sort(key=lambda entry: (-len(entry[1]), entry[0]))  # the widest first: no gaps
        offsets = [0] * (max((i for i, _ in inline), default=-1) + 1)
        size = 4
        for i, packed in inline:
            offsets[i] = size
            size += len(packed)
        vtable = struct.pack(f"<{2 + len(offsets)}H", 4 + 2 * len(offsets), size, *offsets)
        if vtable not in self.vtables:
            self.align(2)
            self.vtables[vtable] = len(self.head)
            self.head += vtable
        if inline and len(inline[0][1]) == 8:
            self.align(8, 4)
        else:
            self.align(4)
        at = len(self.head)
        self.head += _I32.pack(at - self.vtables[vtable]) + b"".join(packed for _, packed in inline)
        for field, value in behind:
            self.path.append(field.name)
            self.behind(at + offsets[field.id], field, value)
            self.path.pop()
        return at

    def tag(self, field: Field, value: Any) -> int:
        tag = value._type.tag if isinstance(value, Table) else 0
        if not tag or tag >= len(field.union) or field.union[tag] != value.kind:
            raise self.error(f"the table of an operator is expected, not {value!r:.60}")
        return tag

    def behind(self, at: int, field: Field, value: Any) -> None:
        """Write what the offset at `at` points to."""
        if field.union:
            self.point(at, self.table(value, value._type))
        elif not field.is_vector:
            self.point(at, self.one(field, value))
        elif field.type == "ubyte":
            try:
                self.blobs.append((at, bytes_of(value)))
            except (TypeError, BufferError) as e:
                raise self.error(f"bytes are expected, not {type(value).__name__}: {e}") from None
        else:
            self.vector(at, field, value)

    def one(self, field: Field, value: Any) -> int:
        """Write a string, a table or what a box stands for."""
        if field.type == "string":
            return self.string(value)
        kind = field.table
        if not kind.is_box:
            return self.table(value, kind)
        (inner,) = kind.fields.values()
        empty = inner.is_vector and not len(self.sequence(value))
        return self.fields(kind, [] if empty else [(inner, value)])

    def sequence(self, value: Any) -> list[Any]:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, list | tuple | range):
            raise self.error(f"a list is expected, not {type(value).__name__} {value!r:.60}")
        return list(value)

    def vector(self, at: int, field: Field, value: Any) -> None:
        values = self.sequence(value)
        width = field.scalar.size if field.scalar is not None else 4
        self.align(4)
        self.align(width, 4)
        start = len(self.head)
        self.point(at, start)
        self.head += _U32.pack(len(values))
        if field.scalar is not None:
            for i, element in enumerate(values):
                self.path.append(i)
                self.head += self.scalar(field, element)
                self.path.pop()
            return
        self.head += bytes(4 * len(values))
        for i, element in enumerate(values):
            self.path.append(i)
            self.point(start + 4 + 4 * i, self.one(field, element))
            self.path.pop()

    def scalar(self, field: Field, value: Any) -> bytes:
        if field.enum is not None:
            value = enum_number(field, value, _place(self.path))
        if field.type == "bool" and value not in (0, 1):
            raise self.error(f"True or False is expected, not {value!r:.60}")
        try:
            return field.scalar.pack(value)
        except (struct.error, OverflowError, TypeError, ValueError):
            raise self.error(f"{value!r:.60} does not fit {field.type}") from None

    def string(self, value: Any) -> int:
        if not isinstance(value, str):
            raise self.error(f"a text is expected, not {type(value).__name__} {value!r:.60}")
        try:
            encoded = value.encode()
        except UnicodeEncodeError as e:
            raise self.error(f"{value!r:.60} is no text: {e.reason}") from None
        self.align(4)
        start = len(self.head)
        self.head += _U32.pack(len(encoded)) + encoded + b"\0"
        return start
