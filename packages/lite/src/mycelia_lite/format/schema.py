"""Schemas of FlatBuffers files as Python objects; that of .ms files is `MSL2`.

A schema is written in the notation that msl2.schema explains. `TABLES`, `ENUMS` and `PRIMITIVES` are those of
.ms files.
"""

from __future__ import annotations

import enum
import keyword
import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

# Scalars by their format character in `struct`, which tells size and alignment.
SCALARS = {
    "bool": "?",
    "byte": "b",
    "ubyte": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "float": "f",
    "double": "d",
}


@dataclass(frozen=True)
class Field:
    """A field of a table: `type` as in the schema without brackets, `id` its place in the vtable.

    `default` is the value of a field that is not set: a number (as its type rounds it), an enum's member,
    "" for a string, None for a table and the union. Vectors are empty then.
    """

    name: str
    id: int
    type: str
    is_vector: bool
    default: Any
    schema: Schema | None = field(default=None, repr=False, compare=False)

    @property
    def enum(self) -> Enum | None:
        """The enum that the numbers are of."""
        return self.schema.enums.get(self.type) if self.schema else None

    @property
    def table(self) -> TableType | None:
        return self.schema.tables.get(self.type) if self.schema else None

    @property
    def union(self) -> list[str] | None:
        """Tables of the union by tag, from 1 on."""
        return self.schema.unions.get(self.type) if self.schema else None

    @property
    def slot(self) -> int:
        """Where the field's offset lies in a vtable, behind the two sizes."""
        return 4 + 2 * self.id

    @cached_property
    def scalar(self) -> struct.Struct | None:
        """How the value, or an element of the vector, is packed; None for strings, tables and the union."""
        base = self.enum.base if self.enum is not None else self.type
        return struct.Struct("<" + SCALARS[base]) if base in SCALARS else None


@dataclass(frozen=True)
class TableType:
    """A table: its fields by name, in the order of their ids. A box stands for its only field."""

    name: str
    is_box: bool
    tag: int  # of the union, 0 for tables that are in none
    fields: dict[str, Field]
    schema: Schema = field(repr=False, compare=False)

    @property
    def ids(self) -> int:
        """How many ids the fields take."""
        return max((field.id for field in self.fields.values()), default=-1) + 1


class Enum(dict):
    """Names of numbers: `ENUMS["PadMode"]["SAME"]` and `ENUMS["PadMode"].member(1)` are `PadMode.SAME`.

    The members are integers (`enum.IntEnum`); a number without a name stays a plain int.
    """

    def __init__(self, name: str, base: str, members: dict[str, int]):
        self.name, self.base = name, base
        self.type = enum.IntEnum(name, members)
        super().__init__(self.type.__members__)

    def member(self, number: int) -> int:
        return self.type._value2member_map_.get(number, number)


def _enum(head: str, words: list[str]) -> Enum:
    name, _, base = head.partition(":")
    members, number = {}, 0
    for word in words:
        member, _, explicit = word.partition("=")
        number = int(explicit) if explicit else number
        members[member] = number
        number += 1
    return Enum(name, base, members)


def _statements(text: str) -> list[list[str]]:
    """Words of each statement, with the lines that go on."""
    found: list[list[str]] = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if line[0] == " ":
            found[-1] += words
        else:
            found.append(words)
    return found


UNION = "PrimitiveType"  # to which `operator` adds


class Schema:
    """A kind of file: its `identifier`, the name of its `root` table, `enums`, `tables` and `unions` by name.

    `what` names the kind in messages. Of a union it has the tables' names by tag, of which 0 is none.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.name, self.what = path.stem, what
        self.identifier, self.root = b"", ""
        self.enums: dict[str, Enum] = {}
        self.tables: dict[str, TableType] = {}
        self.unions: dict[str, list[str]] = {}
        statements = _statements(path.read_text())
        for kind, head, *words in statements:  # tables may name what follows them
            if kind == "file":
                self.identifier, self.root = head.encode(), words[0]
            elif kind == "enum":
                made = _enum(head, words)
                self.enums[made.name] = made
            elif kind == "union":
                self.unions[head] = ["NONE", *words]
            elif kind == "operator":
                self.unions[UNION].append(head)
        tags = {name: tag for names in self.unions.values() for tag, name in enumerate(names)}
        for kind, head, *words in statements:
            if kind in ("table", "box", "operator"):
                fields = self._fields(words)
                self.tables[head] = TableType(head, kind == "box", tags.get(head, 0), fields, self)

    def _fields(self, words: list[str]) -> dict[str, Field]:
        fields, next_id = {}, 0
        for word in words:
            name, _, rest = word.partition(":")
            kind, _, default = rest.partition("=")
            is_vector = kind.startswith("[")
            kind = kind.strip("[]")
            next_id += kind in self.unions  # its tag
            value = self._default(kind, is_vector, default)
            fields[name] = Field(name, next_id, kind, is_vector, value, self)
            next_id += 1
        return fields

    def _default(self, kind: str, is_vector: bool, text: str) -> Any:
        if is_vector:
            return None
        if kind in self.enums:
            return self.enums[kind][text] if text else self.enums[kind].member(0)
        if kind == "bool":
            return text == "true"
        if kind == "float":  # as a reader gets it back
            return struct.unpack("<f", struct.pack("<f", float(text or 0)))[0]
        if kind == "double":
            return float(text or 0)
        if kind in SCALARS:
            return int(text or 0)
        return "" if kind == "string" else None


MSL2 = Schema(Path(__file__).with_name("msl2.schema"), ".ms file")
IDENTIFIER, ROOT = MSL2.identifier, MSL2.root
ENUMS, TABLES = MSL2.enums, MSL2.tables
PRIMITIVES = MSL2.unions[UNION]  # operators by their tag


def field_of(table: TableType, name: str) -> Field | None:
    """The field of that name; Python's own words may have a `_` at the end (`global_`)."""
    found = table.fields.get(name)
    if found is None and name.endswith("_") and keyword.iskeyword(name[:-1]):
        return table.fields.get(name[:-1])
    return found
