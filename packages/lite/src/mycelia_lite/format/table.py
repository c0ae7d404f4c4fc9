"""`Table`, the record that .ms files are made of, and `FormatError`: what is wrong with it or a file."""

from __future__ import annotations

import difflib
import enum
import math
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from mycelia import errors
from mycelia_lite.format.schema import MSL2, Field, Schema, TableType, field_of

_FLOAT = struct.Struct("<f")
_ELEMENTS = {"ubyte": np.uint8, "float": np.float32}


class FormatError(errors.FileFormatError):
    """A .ms file, its text form or a `Table` breaks the format; the message says where inside it."""

    code = "MYC-FILE"


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def table_type(name: str, schema: Schema = MSL2) -> TableType:
    """The schema's table of that name. Errors: ValueError that names the nearest ones."""
    try:
        return schema.tables[name]
    except KeyError:
        raise errors.MyceliaValueError(
            f"the schema has no table {name!r}", subject="Table", hint=_near(name, schema.tables)
        ) from None


def enum_number(field: Field, value: Any, what: str) -> Any:
    """`value` of an enum field as the enum's member; names are taken, and numbers without a name stay."""
    members = field.enum
    if isinstance(value, str):
        if value not in members:
            raise errors.MyceliaValueError(
                f"{field.type} has no member {value!r}", subject=what, hint=_near(value, members)
            )
        return members[value]
    return members.member(value) if isinstance(value, int | np.integer) else value


class Table:
    """A record with the fields of one of the schema's tables: `Table("CNode", name="fc", inputIndex=[0, 1])`.

    Fields are attributes; those not set have the schema's default: a number, False, "", an empty list, None
    for a table. Not set and set to the default are the same. A float is rounded to 32 bits. Enums may be set
    by name: they are `IntEnum` members. Fields of the union hold the operator's table:
    `node.primitive.kind == "Conv2DFusion"`. Bytes are any buffer; read from a file they are a view into it.
    Python's own words take a `_`: `pool.global_`. A table of another schema than that of .ms files is given
    by its type: `Table(schema.tables["Operator"])`.

    `kind`: name of the table. `unknown_fields`: ids of fields that a newer writer set and this schema does
    not know; such a table cannot be written.
    Errors: AttributeError and ValueError for names that the schema does not have, with the nearest.
    """

    __slots__ = ("_type", "_values", "unknown_fields")

    def __init__(self, kind: str | TableType, /, **fields: Any):
        object.__setattr__(self, "_type", kind if isinstance(kind, TableType) else table_type(kind))
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "unknown_fields", ())
        for name, value in fields.items():
            setattr(self, name, value)

    @property
    def kind(self) -> str:
        return self._type.name

    @property
    def schema(self) -> Schema:
        return self._type.schema

    def _field(self, name: str) -> Field:
        field = field_of(self._type, name)
        if field is None:
            raise errors.MyceliaAttributeError(
                f"no field {name!r}", subject=self.kind, hint=_near(name, self._type.fields)
            )
        return field

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols of Python ask for what is not there
            raise AttributeError(name)
        field = self._field(name)
        values = self._values
        if field.name not in values:
            if not is_list(field):
                return memoryview(b"") if field.is_vector else field.default
            values[field.name] = []  # the caller's to append to
        return values[field.name]

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field(name)
        if value is None:
            self._values.pop(field.name, None)
        elif field.enum is not None and not field.is_vector:
            self._values[field.name] = enum_number(field, value, f"{self.kind}.{name}")
        elif field.type == "float" and not field.is_vector:
            self._values[field.name] = _rounded(value)
        else:
            self._values[field.name] = value

    def __delattr__(self, name: str) -> None:
        self._values.pop(self._field(name).name, None)

    def items(self) -> list[tuple[Field, Any]]:
        """Fields that are not at their default, with their values, in the order of the schema."""
        values = self._values
        set_here = ((field, values[name]) for name, field in self._type.fields.items() if name in values)
        return [(field, value) for field, value in set_here if not _is_default(field, value)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        if self._type is not other._type or self.unknown_fields != other.unknown_fields:
            return False
        mine, others = self.items(), other.items()
        return [f.name for f, _ in mine] == [f.name for f, _ in others] and all(
            _equal(field, a, b) for (field, a), (_, b) in zip(mine, others)
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Table:
        """A copy with copies of the tables and lists below it; bytes are shared."""
        made = Table(self._type)
        made._values.update((name, _copied(value)) for name, value in self._values.items())
        object.__setattr__(made, "unknown_fields", self.unknown_fields)
        return made

    def __deepcopy__(self, memo: dict) -> Table:
        return self.copy()

    __copy__ = copy

    def __reduce__(self):
        return _restored, (self.kind, {k: _plain(v) for k, v in self._values.items()}, self.unknown_fields)

    def __repr__(self) -> str:
        fields = [f"{field.name}={_shown(value, field)}" for field, value in self.items()]
        return f"Table({', '.join([repr(self.kind), *fields])})"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._type.fields]


def _restored(kind: str, values: dict[str, Any], unknown: tuple[int, ...]) -> Table:
    made = Table(kind, **values)
    object.__setattr__(made, "unknown_fields", unknown)
    return made


def _plain(value: Any) -> Any:
    """`value` as it can cross to another process: not mapped, numbers for members of enums."""
    if isinstance(value, memoryview):
        return bytes(value)
    return int(value) if isinstance(value, enum.IntEnum) else value


def is_list(field: Field) -> bool:
    """Whether values are lists: vectors but those of bytes, and boxes of vectors."""
    if field.is_vector:
        return field.type != "ubyte"
    boxed = field.table
    return boxed is not None and boxed.is_box and next(iter(boxed.fields.values())).is_vector


def bytes_of(value: Any) -> memoryview:
    """A view of the bytes of a buffer: bytes, memoryview, array. Errors: TypeError, BufferError."""
    view = memoryview(value)
    if not view.c_contiguous:
        view = memoryview(view.tobytes())
    return view.cast("B") if view.nbytes else memoryview(b"")


def _rounded(value: Any) -> Any:
    """`value` as a field of 32 bits gives it back; what is no such number stays for `encode` to refuse."""
    try:
        return _FLOAT.unpack(_FLOAT.pack(value))[0]
    except (struct.error, OverflowError, TypeError, ValueError):
        return value


def _is_default(field: Field, value: Any) -> bool:
    if field.is_vector or is_list(field):
        return hasattr(value, "__len__") and not len(value)
    if isinstance(value, Table | np.ndarray):
        return False
    if isinstance(value, float) and value == 0 == field.default:
        return math.copysign(1, value) == 1  # -0.0 is a value
    return value == field.default


def _equal(field: Field, a: Any, b: Any) -> bool:
    if field.is_vector and field.type in ("ubyte", "float"):
        try:
            one, two = (
                np.asarray(bytes_of(v) if field.type == "ubyte" else v, _ELEMENTS[field.type]) for v in (a, b)
            )
        except (TypeError, ValueError, BufferError):
            return False
        return np.array_equal(one, two, equal_nan=field.type == "float")
    if isinstance(a, np.ndarray):
        a = a.tolist()
    if isinstance(b, np.ndarray):
        b = b.tolist()
    if is_list(field):
        return _as_lists(a) == _as_lists(b)
    return a == b or (a != a and b != b)  # NaN is the same value as NaN


def _as_lists(value: Any) -> Any:
    """`value` with lists for the other kinds of sequences."""
    return [_as_lists(v) for v in value] if isinstance(value, list | tuple | range) else value


def _copied(value: Any) -> Any:
    if isinstance(value, Table):
        return value.copy()
    return [_copied(v) for v in value] if isinstance(value, list) else value


def _shown(value: Any, field: Field) -> str:
    if isinstance(value, memoryview | bytes | bytearray | np.ndarray):
        size = bytes_of(value).nbytes
        return repr(bytes(value)) if size <= 32 and not isinstance(value, np.ndarray) else f"<{size} bytes>"
    if isinstance(value, list):
        if len(value) <= 16:
            return f"[{', '.join(_shown(v, field) for v in value)}]"
        return f"[{', '.join(_shown(v, field) for v in value[:8])}, ... {len(value)} in all]"
    if field.type == "float" and isinstance(value, float):
        return str(np.float32(value))
    return getattr(value, "name", None) if isinstance(value, enum.IntEnum) else repr(value)
