"""Message classes from a compiled schema, in a descriptor pool of their own (see tools/gen_proto.py); models
whose weights stay out of messages: written as they lie in memory, read from where they lie in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mycelia.engine.base import wire

if TYPE_CHECKING:
    from mycelia.io.reading import Bytes

_GRAPH, _RAW_DATA = 7, 9  # fields of ModelProto and TensorProto, in MindIR as in ONNX
_FIELDS = {"parameter": 3, "initializer": 5}  # those of GraphProto that hold weights, of MindIR and of ONNX
_NUMBER_SIZE = 10  # bytes of the longest varint
_CHUNK = 1 << 16  # bytes that are scanned at a time: between weights lie some hundred


def load(schema: bytes) -> dict[str, object]:
    """Name -> class of every top-level message of a serialized FileDescriptorProto,
    and name -> number of its enum values.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    file = pool.Add(descriptor_pb2.FileDescriptorProto.FromString(schema)) or pool.FindFileByName(
        descriptor_pb2.FileDescriptorProto.FromString(schema).name
    )
    names: dict[str, object] = {}
    for name, message in file.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(message)
    for enum in file.enum_types_by_name.values():
        names.update({value.name: value.number for value in enum.values})
    return names


def with_data(model: Any, field: str, data: Sequence[memoryview | None]) -> list[bytes | memoryview]:
    """The bytes of a ModelProto in pieces. `data`: of the tensors in this field of its graph, which the
    message does not hold; None for one whose bytes lie elsewhere. They are not copied.
    """
    graph = type(model.graph)()
    graph.CopyFrom(model.graph)
    tensors = [tensor.SerializeToString(deterministic=True) for tensor in getattr(graph, field)]
    graph.ClearField(field)
    rest = type(model)()
    rest.CopyFrom(model)
    rest.ClearField("graph")
    number = graph.DESCRIPTOR.fields_by_name[field].number
    inner: list[bytes | memoryview] = [graph.SerializeToString(deterministic=True)]
    for message, content in zip(tensors, data, strict=True):
        head = message if content is None else message + wire.field_head(_RAW_DATA, len(content))
        size = len(head) + (0 if content is None else len(content))
        inner += [wire.field_head(number, size) + head, b"" if content is None else content]
    begin = rest.SerializeToString(deterministic=True) + wire.field_head(_GRAPH, sum(map(len, inner)))
    return [begin, *inner]


def without_data(source: Bytes, field: str) -> tuple[bytes, list[tuple[int, int] | None]]:
    """A ModelProto's bytes without raw_data of the tensors in this field of its graph ("parameter" of MindIR,
    "initializer" of ONNX), and where that of each tensor lies, from and to; None for those without.

    Errors: ValueError for what is no message in the wire format.
    """
    scan = _Scan(source)
    places: list[tuple[int, int] | None] = []

    def graph(begin: int, end: int) -> bytes:
        return scan.copied(begin, end, _FIELDS[field], tensor)

    def tensor(begin: int, end: int) -> bytes:
        found: list[tuple[int, int]] = []
        message = scan.copied(begin, end, _RAW_DATA, lambda *place: found.append(place))
        places.append(found[-1] if found else None)
        return message

    return scan.copied(0, len(source), _GRAPH, graph), places


class _Scan:
    """Walks over the fields of messages in a file."""

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.base, self.chunk = 0, memoryview(b"")

    def copied(self, begin: int, end: int, number: int, replace: Callable[[int, int], bytes | None]) -> bytes:
        """The message from `begin` to `end`, with fields `number` as `replace` gives them, or without."""
        parts, kept = [], begin
        for found, kind, at, start, stop in self.fields(begin, end):
            if found == number and kind == wire.BYTES:
                parts.append(self.source.piece(kept, at))
                kept = stop
                content = replace(start, stop)
                if content is not None:
                    parts += (wire.field_head(number, len(content)), content)
        parts.append(self.source.piece(kept, end))
        return b"".join(parts)

    def fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """(number, wire type, begin, begin of the content, end) of each field."""
        at = begin
        while at < end:
            key, start = self.varint(at, end)
            number, kind = key >> 3, key & 7
            if kind == wire.VARINT:
                stop = self.varint(start, end)[1]
            elif kind == wire.BYTES:
                size, start = self.varint(start, end)
                stop = start + size
            else:
                stop = start + wire.fixed_size(kind, number)
            if not number or stop > end:
                raise ValueError(
                    f"field {number} at byte {at} wants {stop - start} bytes, {end - start} are left"
                )
            yield number, kind, at, start, stop
            at = stop

    def varint(self, at: int, end: int) -> tuple[int, int]:
        offset = at - self.base
        if not 0 <= offset <= len(self.chunk) - _NUMBER_SIZE:
            self.base, offset = at, 0
            self.chunk = memoryview(self.source.piece(at, min(at + _CHUNK, len(self.source))))
        value, after = wire.read_varint(self.chunk, offset)
        if self.base + after > end:
            raise ValueError(f"a number at byte {at} goes beyond its message")
        return value, self.base + after
