"""Models as text, to read, edit and compare: `to_text` and back, `from_text`.

    MetaGraph {
      name: "lenet"
      nodes: [
        CNode {  # 0
          name: "fc"
          primitive: MatMulFusion { transpose_b: true }
          inputIndex: [0, 1]  # x, weight
        }
      ]
      allTensors: [
        Tensor {  # 0
          ...
          data: @0
        }
      ]
    }

    @0 base64
    AACAPw==

Fields at their default are left out. `#` begins a comment; spaces, line ends and commas only part words.
Bytes are `INT32[1, 2]` for a few numbers, "text", or `@n`, which stands behind the model: `@n base64` and
lines of it, or `@n sha256 HASH`, for which `from_text` needs a model with these bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia_lite.format.schema import ENUMS, ROOT, TABLES, UNION, Field, TableType
from mycelia_lite.format.table import FormatError, Table, bytes_of, enum_number, is_list

_FEW = 64  # bytes of numbers or text that stand where they belong
_ELEMENTS = {
    name: np.dtype(name.lower())
    for name in (
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "FLOAT16",
        "FLOAT32",
        "FLOAT64",
    )
}
_TOKEN = re.compile(
    r"""(?P<skip>(?:[\s,]|\#[^\n]*)+) | (?P<text>"(?:[^"\\\n]|\\.)*") | (?P<blob>@\d+)
    | (?P<number>[-+]?(?:inf|nan(?::[0-9a-f]+)?|\d[\w.]*(?:(?<=[eE])[-+]\d+)?|\.\d+))\b
    | (?P<word>[A-Za-z_]\w*) | (?P<mark>[{}\[\]:])""",
    re.VERBOSE,
)


def to_text(table: Table, data: str = "inline") -> str:
    """`table` as text. `data`: "inline" writes all bytes, "hash" their SHA-256 only.

    Errors: `FormatError` for a table with fields of a newer version, which would get lost.
    """
    if data not in ("inline", "hash"):
        raise FormatError(f"data is {data!r}, expected 'inline' or 'hash'")
    writer = _Writer(table)
    lines = list(writer.table("", table, "", ""))
    for number, blob in enumerate(writer.blobs):
        if data == "inline":
            encoded = base64.b64encode(blob).decode()
            lines += ["", f"@{number} base64", *(encoded[i : i + 108] for i in range(0, len(encoded), 108))]
        else:
            lines += ["", f"@{number} sha256 {hashlib.sha256(blob).hexdigest()}  # {len(blob)} bytes"]
    return "\n".join(lines) + "\n"


def from_text(text: str, weights: Table | None = None) -> Table:
    """The table that `text` describes, equal to the one that `to_text` was given.

    `weights`: the model that bytes given by their hash only are taken from.
    Errors: `FormatError` with the line.
    """
    return _Parser(text, weights).model()


class _Writer:
    def __init__(self, root: Table):
        self.names = [t.name for t in root.allTensors] if root.kind == ROOT else []
        self.blobs: list[memoryview] = []
        self.numbers_of: dict[bytes, int] = {}  # by hash: the same bytes are written once

    def table(self, before: str, table: Table, note: str, indent: str) -> Iterator[str]:
        if table.unknown_fields:
            ids = list(table.unknown_fields)
            raise FormatError(
                f"{table.kind} has fields of a newer version, with ids {ids}, which would get lost"
            )
        items = table.items()
        if not items:
            yield f"{indent}{before}{table.kind} {{}}{note}"
            return
        yield f"{indent}{before}{table.kind} {{{note}"
        for field, value in items:
            yield from self.field(table, field, value, indent + "  ")
        yield indent + "}"

    def field(self, table: Table, field: Field, value: Any, indent: str) -> Iterator[str]:
        head = f"{field.name}: "
        if isinstance(value, Table):
            yield from self.table(head, value, "", indent)
        elif is_list(field) and any(isinstance(v, Table) for v in value):
            yield f"{indent}{head}["
            for i, element in enumerate(value):
                yield from self.table("", element, f"  # {i}", indent + "  ")
            yield indent + "]"
        else:
            yield f"{indent}{head}{self.value(table, field, value)}{self.note(field, value)}"

    def note(self, field: Field, value: Any) -> str:
        """Names of the tensors that numbers stand for."""
        if field.name not in ("inputIndex", "outputIndex", "inputIndices", "outputIndices"):
            return ""
        names = [self.names[i] if i < len(self.names) else "?" for i in value]
        return "  # " + json.dumps(", ".join(names), ensure_ascii=False)[1:-1] if any(names) else ""

    def value(self, table: Table, field: Field, value: Any) -> str:
        if field.is_vector and field.type == "ubyte":
            return self.bytes(table, bytes_of(value))
        if is_list(field):
            return _list(value, field)
        return _scalar(value, field)

    def bytes(self, table: Table, view: memoryview) -> str:
        if len(view) <= _FEW:
            if table.kind == "Tensor":
                return self.numbers(table.dataType, view) or self.blob(view)
            plain = bytes(view).decode("ascii", "replace")
            if plain.isprintable() and plain.isascii():
                return json.dumps(plain)
        return self.blob(view)

    def numbers(self, kind: Any, view: memoryview) -> str:
        name = getattr(kind, "name", "")
        element = _ELEMENTS.get(name)
        if element is None or len(view) % element.itemsize:
            return ""
        values = np.frombuffer(view, element)
        text = ", ".join(map(str, values.tolist() if element.kind != "f" else values))
        restored = np.array([element.type(word) for word in text.split(", ")], element)
        return f"{name}[{text}]" if restored.tobytes() == view else ""  # else NaN with something in it

    def blob(self, view: memoryview) -> str:
        key = hashlib.sha256(view).digest()
        if key not in self.numbers_of:
            self.numbers_of[key] = len(self.blobs)
            self.blobs.append(view)
        return f"@{self.numbers_of[key]}"


def _list(value: Any, field: Field) -> str:
    if isinstance(value, list | tuple | range | np.ndarray):
        return f"[{', '.join(_list(v, field) for v in value)}]"
    inner = field
    while inner.type in TABLES:
        (inner,) = TABLES[inner.type].fields.values()
    return _scalar(value, inner)


def _scalar(value: Any, field: Field) -> str:
    if field.type == "string":
        return json.dumps(value, ensure_ascii=False)
    if field.type in ENUMS:
        return getattr(value, "name", None) or str(int(value))
    if field.type == "bool":
        return "true" if value else "false"
    if field.type == "float":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return f"nan:{bits:x}" if value != value and bits != 0x7FC00000 else str(np.float32(value))
    if field.type == "double":
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"nan:{bits:x}" if value != value and bits != 0x7FF8 << 48 else repr(float(value))
    return str(int(value))


class _Parser:
    def __init__(self, text: str, weights: Table | None):
        split = re.search(r"^@\d+ (?:base64|sha256)\b", text, re.MULTILINE)
        self.text = text[: split.start()] if split else text
        self.at = 0
        self.blobs: dict[str, bytes | memoryview] = {}
        self.sections(text, split.start() if split else len(text), weights)

    def error(self, what: str, at: int | None = None) -> FormatError:
        line = self.text.count("\n", 0, self.at if at is None else at) + 1
        return FormatError(f"line {line}: {what}")

    def sections(self, text: str, start: int, weights: Table | None) -> None:
        """Take up the bytes of each `@n` behind the model."""
        known = None
        line = text.count("\n", 0, start) + 1
        for section in re.split(r"^(?=@)", text[start:], flags=re.MULTILINE):
            head, _, body = section.partition("\n")
            words = head.partition("#")[0].split()
            if words and words[0] in self.blobs:
                raise FormatError(f"line {line}: {words[0]} stands here a second time")
            if words and words[1:] == ["base64"]:
                try:
                    self.blobs[words[0]] = _from_base64(body)
                except (binascii.Error, ValueError) as e:
                    raise FormatError(f"line {line}: {words[0]} is not base64: {e}") from None
            elif len(words) == 3 and words[1] == "sha256":
                known = _hashes(weights) if known is None else known
                if words[2] not in known:
                    raise FormatError(
                        f"line {line}: the bytes of {words[0]} are not there, only their hash",
                        hint="" if weights else "give the model that they are to be taken from as `weights`",
                    )
                self.blobs[words[0]] = known[words[2]]
            elif words:
                raise FormatError(
                    f"line {line}: expected `@n base64` or `@n sha256 HASH`, found {head!r:.80}"
                )
            line += section.count("\n")

    def model(self) -> Table:
        found = self.table()
        if (token := self.next())[0] != "end":
            raise self.error(f"expected the end of the model, found {token[1]!r:.60}")
        return found

    def next(self) -> tuple[str, str]:
        """Kind and text of the next token."""
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise self.error(f"{self.text[self.at : self.at + 20]!r} cannot be read")
            self.at = match.end()
            if match.lastgroup != "skip":
                return match.lastgroup, match.group()
        return "end", "the end"

    def peek(self) -> str:
        before, token = self.at, self.next()[1]
        self.at = before
        return token

    def expect(self, mark: str) -> None:
        found = self.next()[1]
        if found != mark:
            raise self.error(f"expected {mark!r}, found {found!r:.60}")

    def table(self, kind: TableType | None = None) -> Table:
        """A table; of `kind` if that is given."""
        name = self.next()[1]
        if name not in TABLES or (kind is not None and kind.name != name):
            expected = f"the table {kind.name}" if kind is not None else "a table"
            raise self.error(f"expected {expected}, found {name!r:.60}")
        made = Table(name)
        self.expect("{")
        while (token := self.next())[1] != "}":
            if token[0] != "word":
                raise self.error(f"expected a field of {name}, found {token[1]!r:.60}")
            try:
                field = made._field(token[1])
            except AttributeError as e:
                raise self.error(f"{name} has {e.message}. {e.hint}") from None
            if field.name in made._values:
                raise self.error(f"{name} has {field.name} twice")
            self.expect(":")
            setattr(made, field.name, self.value(field))
        return made

    def value(self, field: Field) -> Any:
        if field.is_vector and field.type == "ubyte":
            return self.bytes()
        if field.is_vector:
            element = Field(field.name, field.id, field.type, False, None)
            return self.elements(lambda: self.value(element))
        if field.type == UNION:
            found = self.table()
            if not found._type.tag:
                raise self.error(f"{found.kind} is no operator")
            return found
        if field.type in TABLES:
            kind = TABLES[field.type]
            return self.value(next(iter(kind.fields.values()))) if kind.is_box else self.table(kind)
        return self.scalar(field)

    def elements(self, element) -> list[Any]:
        self.expect("[")
        found = []
        while self.peek() != "]":
            found.append(element())
        self.expect("]")
        return found

    def number(self) -> str:
        kind, token = self.next()
        if kind != "number":
            raise self.error(f"expected a number, found {token!r:.60}")
        return token

    def scalar(self, field: Field) -> Any:
        kind, token = self.next()
        try:
            if field.type == "string" and kind == "text":
                return json.loads(token)
            if field.type == "bool" and token in ("true", "false"):
                return token == "true"
            if field.type in ENUMS and kind in ("word", "number"):
                return enum_number(field, token if kind == "word" else int(token), field.name)
            if field.type in ("float", "double") and kind == "number":
                return _float(token, field.type)
            if field.scalar is not None and field.type != "bool" and kind == "number":
                return int(token)
        except ValueError as e:
            raise self.error(
                f"{field.name} is {token!r:.60}: {getattr(e, 'hint', '') or field.type + ' is expected'}"
            ) from None
        raise self.error(f"{field.name} is {token!r:.60}: {field.type} is expected")

    def bytes(self) -> Any:
        kind, token = self.next()
        if kind == "text":
            try:
                return json.loads(token).encode()
            except ValueError:
                raise self.error(f"{token!r:.60} is no text") from None
        if kind == "blob":
            if token not in self.blobs:
                raise self.error(f"{token} does not stand behind the model")
            return self.blobs[token]
        if token in _ELEMENTS:
            words = self.elements(self.number)
            try:
                element = _ELEMENTS[token]
                return np.array(
                    [element.type(w) if element.kind == "f" else int(w) for w in words], element
                ).tobytes()
            except (ValueError, OverflowError):
                raise self.error(f"{words!r:.80} are no elements of {token}") from None
        raise self.error(f"expected @n, a text or numbers such as INT32[1, 2], found {token!r:.60}")


def _from_base64(text: str) -> bytes:
    if "#" in text:
        text = re.sub("#.*", "", text)
    return base64.b64decode("".join(text.split()), validate=True)


def _float(token: str, kind: str) -> float:
    if ":" not in token:
        return float(token)
    number, value = ("<I", "<f") if kind == "float" else ("<Q", "<d")
    try:
        return struct.unpack(value, struct.pack(number, int(token.partition(":")[2], 16)))[0]
    except struct.error:
        raise ValueError(token) from None


def _hashes(table: Any) -> dict[str, memoryview]:
    """All bytes in `table` by their hash."""
    found: dict[str, memoryview] = {}
    if isinstance(table, Table):
        for field, value in table.items():
            if field.is_vector and field.type == "ubyte":
                view = bytes_of(value)
                found[hashlib.sha256(view).hexdigest()] = view
            elif isinstance(value, list | Table):
                found |= _hashes(value)
    elif isinstance(table, list):
        for element in table:
            found |= _hashes(element)
    return found
