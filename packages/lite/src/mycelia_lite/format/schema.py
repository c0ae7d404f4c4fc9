"""The schema of .ms files as Python objects: `TABLES`, `ENUMS` and `PRIMITIVES`, read from msl2.schema."""

from __future__ import annotations

import enum
import keyword
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

IDENTIFIER = b"MSL2"
ROOT = "MetaGraph"
UNION = "PrimitiveType"
# Scalars by their format character in `struct`, which tells size and alignment.
SCALARS = {
    "bool": "?",
    "byte": "b",
    "ubyte": "B",
    "int": "i",
    "uint": "I",
    "long": "q",
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

    @property
    def slot(self) -> int:
        """Where the field's offset lies in a vtable, behind the two sizes."""
        return 4 + 2 * self.id

    @cached_property
    def scalar(self) -> struct.Struct | None:
        """How the value, or an element of the vector, is packed; None for strings, tables and the union."""
        base = ENUMS[self.type].base if self.type in ENUMS else self.type
        return struct.Struct("<" + SCALARS[base]) if base in SCALARS else None


@dataclass(frozen=True)
class TableType:
    """A table: its fields by name, in the order of their ids. A box stands for its only field."""

    name: str
    is_box: bool
    tag: int  # of the union, 0 for tables that are no operators
    fields: dict[str, Field]

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


def _fields(words: list[str]) -> dict[str, Field]:
    fields, next_id = {}, 0
    for word in words:
        name, _, rest = word.partition(":")
        kind, _, default = rest.partition("=")
        is_vector = kind.startswith("[")
        kind = kind.strip("[]")
        next_id += kind == UNION  # its tag
        fields[name] = Field(name, next_id, kind, is_vector, _default(kind, is_vector, default))
        next_id += 1
    return fields


def _default(kind: str, is_vector: bool, text: str) -> Any:
    if is_vector:
        return None
    if kind in ENUMS:
        return ENUMS[kind][text] if text else ENUMS[kind].member(0)
    if kind == "bool":
        return text == "true"
    if kind == "float":  # as a reader gets it back
        return struct.unpack("<f", struct.pack("<f", float(text or 0)))[0]
    if kind == "double":
        return float(text or 0)
    if kind in SCALARS:
        return int(text or 0)
    return "" if kind == "string" else None


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


ENUMS: dict[str, Enum] = {}
TABLES: dict[str, TableType] = {}
PRIMITIVES: list[str] = ["NONE"]  # operators by their tag in the union

for kind, head, *words in _statements(Path(__file__).with_name("msl2.schema").read_text()):
    if kind == "enum":
        found = _enum(head, words)
        ENUMS[found.name] = found
    else:
        if kind == "operator":
            PRIMITIVES.append(head)
        tag = len(PRIMITIVES) - 1 if kind == "operator" else 0
        TABLES[head] = TableType(head, kind == "box", tag, _fields(words))


def field_of(table: TableType, name: str) -> Field | None:
    """The field of that name; Python's own words may have a `_` at the end (`global_`)."""
    found = table.fields.get(name)
    if found is None and name.endswith("_") and keyword.iskeyword(name[:-1]):
        return table.fields.get(name[:-1])
    return found
