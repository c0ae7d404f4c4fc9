"""Message classes from a compiled schema, in a descriptor pool of their own (see tools/gen_proto.py)."""

from __future__ import annotations


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
