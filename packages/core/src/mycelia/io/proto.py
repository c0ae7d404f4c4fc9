"""Message classes from a compiled schema, in a descriptor pool of their own (see tools/gen_proto.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.base import wire

_GRAPH, _RAW_DATA = 7, 9  # fields of ModelProto and TensorProto, in MindIR as in ONNX


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
