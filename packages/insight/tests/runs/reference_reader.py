"""What a run's event files say, read in Python alone, slowly and whole: what the native reader must find.

It follows docs/insight.md ("How it is built") and the two dialects' messages: files in the order of their
times, a record whose checksum is wrong passed over and named, an end where a length cannot be trusted, a last
record that is cut off left out, and points of a tag replaced from the step on at which a later file begins
again.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mycelia.io.crc32c import crc32c, masked
from mycelia_insight.runs.kinds import Dialect, Kind

LENGTH = "the checksum of a record's length is wrong"
RECORD = "the checksum of a record is wrong"
EVENT = "a record is no event"
_PLUGINS = {
    "scalars": Kind.SCALAR, "images": Kind.IMAGE, "histograms": Kind.HISTOGRAM, "audio": Kind.AUDIO,
    "text": Kind.TEXT, "hparams": Kind.PARAMETERS, "": Kind.TENSOR,
}  # fmt: skip

Value = tuple[int, bytes, bytes]  # step, time and value or payload, to the bit


class Wrong(Exception):
    """A message is damaged."""


@dataclass
class File:
    broken: list[tuple[int, str]] = field(default_factory=list)
    values: dict[tuple[Kind, bytes], list[Value]] = field(default_factory=lambda: defaultdict(list))


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, number or bytes) of a message.  Errors: Wrong, where it comes to that."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = 0
        for place in range(10):
            if at >= len(message):
                raise Wrong
            byte = message[at]
            at += 1
            value |= (byte & 127) << 7 * place
            if byte < 128:
                return value & 2**64 - 1
        raise Wrong

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if number == 0 or key >= 2**32 or kind in (3, 4, 6, 7):
            raise Wrong
        if kind == 0:
            yield number, kind, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        if size > len(message) - at:
            raise Wrong
        at += size
        yield number, kind, message[at - size : at]


def records(data: bytes) -> Iterator[tuple[int, bytes | str]]:
    """(offset, message, or what is wrong with it), as far as lengths can be trusted."""
    at = 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if (
            masked(crc32c(data[at : at + 8])) != struct.unpack_from("<I", data, at + 8)[0]
            or size > 2**63 - 17
        ):
            yield at, LENGTH
            return
        end = at + 12 + size
        if end + 4 > len(data):
            return
        message = data[at + 12 : end]
        right = masked(crc32c(message)) == struct.unpack_from("<I", data, end)[0]
        yield at, message if right else RECORD
        at = end + 4


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def read(files: list[bytes]) -> list[File]:
    """What each of a run's files says, in the order of their times."""
    plugins: dict[bytes, str] = {}
    return [_Reader(data, plugins).file for data in files]


def columns(files: list[File]) -> dict[tuple[Kind, bytes], list[Value]]:
    """The values of a run, without those that a later file wrote again."""
    found: dict[tuple[Kind, bytes], list[Value]] = {}
    last: dict[tuple[Kind, bytes], int] = {}
    for file in files:
        for key, values in file.values.items():
            begin = values[0][0]
            if key in last and begin <= last[key]:
                found[key] = [one for one in found[key] if one[0] < begin]
            found[key] = found.get(key, []) + values
            last[key] = values[-1][0]
    return found


class _Reader:
    def __init__(self, data: bytes, plugins: dict[bytes, str]) -> None:
        self.file, self.plugins, self.dialect = File(), plugins, Dialect.UNKNOWN
        for offset, message in records(data):
            if isinstance(message, str):
                self.file.broken.append((offset, message))
                continue
            try:
                self.event(message)
            except Wrong:
                self.file.broken.append((offset, EVENT))

    def event(self, message: bytes) -> None:
        time, step, bodies, version = struct.pack("<d", 0), 0, {}, b""
        for number, kind, content in fields(message):
            if (number, kind) == (1, 1):
                time = content
            elif (number, kind) == (2, 0):
                step = signed(content)
            elif (number, kind) == (3, 2):
                version = content
            elif kind == 2:
                bodies[number] = content
        if version:
            is_other = version.startswith(b"brain.")
            self.dialect = Dialect.TENSORBOARD if is_other else Dialect.MINDSPORE

        def add(kind: Kind, tag: bytes, content: bytes) -> None:
            self.file.values[kind, tag].append((step, time, content))

        of_value = self.tensorboard if self.dialect == Dialect.TENSORBOARD else _mindspore
        for number, kind, content in fields(bodies.get(5, b"")):
            if (number, kind) == (1, 2):
                for found in of_value(content):
                    add(*found)
        lineage = Kind.EXPLAIN if self.dialect == Dialect.MINDSPORE else Kind.TRAIN_LINEAGE
        others = {4: Kind.GRAPH}
        if self.dialect != Dialect.TENSORBOARD:
            others |= {6: lineage, 7: Kind.EVALUATION_LINEAGE, 9: Kind.DATASET_GRAPH, 10: Kind.USER_DEFINED}
        for number, kind in others.items():
            if number in bodies:
                add(kind, b"", bodies[number])

    def tensorboard(self, message: bytes) -> list[tuple[Kind, bytes, bytes]]:
        tag, tensor, told, found = b"", None, b"", None
        for number, kind, content in fields(message):
            if (number, kind) == (1, 2):
                tag = content
            elif (number, kind) == (2, 5):
                found = Kind.SCALAR, content
            elif kind == 2 and number in (4, 5, 6):
                found = {4: Kind.IMAGE, 5: Kind.HISTOGRAM, 6: Kind.AUDIO}[number], content
            elif (number, kind) == (8, 2):
                tensor = content
            elif (number, kind) == (9, 2):
                told = _plugin(content)
        if found is not None:
            # The kind is the last one's; a number keeps what a number said.
            return [(found[0], tag, found[1])]
        if tensor is None and told != b"hparams":
            return []
        if tag not in self.plugins and told:
            self.plugins[tag] = told.decode("latin-1")
        kind = _PLUGINS.get(self.plugins.get(tag, ""), Kind.OTHER)
        if kind == Kind.SCALAR:
            return [(kind, tag, _number(tensor or b""))]
        return [(kind, tag, message if kind == Kind.PARAMETERS else tensor or b"")]


def _mindspore(message: bytes) -> list[tuple[Kind, bytes, bytes]]:
    tag, found = b"", None
    kinds = {4: Kind.IMAGE, 8: Kind.TENSOR, 9: Kind.HISTOGRAM, 10: Kind.LANDSCAPE}
    for number, kind, content in fields(message):
        if (number, kind) == (1, 2):
            tag = content
        elif (number, kind) == (3, 5):
            found = Kind.SCALAR, content
        elif kind == 2 and number in kinds:
            found = kinds[number], content
    return [] if found is None else [(found[0], tag, found[1])]


def _plugin(metadata: bytes) -> bytes:
    """SummaryMetadata.plugin_data.plugin_name; what is damaged in it, or behind it, is passed over."""
    try:
        for number, kind, content in fields(metadata):
            if (number, kind) != (1, 2):
                continue
            try:
                for inner, inner_kind, name in fields(content):
                    if (inner, inner_kind) == (1, 2):
                        return name
            except Wrong:
                continue
    except Wrong:
        pass
    return b""


def _number(tensor: bytes) -> bytes:
    """The float32 of a tensor of TensorFlow's with one element.  Errors: Wrong."""
    dtype, content, value = 1, b"", None
    for number, kind, found in fields(tensor):
        if (number, kind) == (1, 0):
            dtype = found
        elif (number, kind) == (4, 2):
            content = found
        elif number == 5 and kind in (5, 2) and len(found) >= 4:
            value = found[:4]
        elif number == 6 and kind in (1, 2) and len(found) >= 8:
            value = _single(found[:8])
        elif number in (7, 10) and kind == 0:
            value = np.int64(signed(found)).astype("<f4").tobytes()
    if value is not None:
        return value
    if dtype == 1 and len(content) == 4:
        return content
    if dtype == 2 and len(content) == 8:
        return _single(content)
    raise Wrong


def _single(wide: bytes) -> bytes:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.frombuffer(wide, "<f8").astype("<f4").tobytes()
