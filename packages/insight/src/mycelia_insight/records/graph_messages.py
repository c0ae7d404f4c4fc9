"""MindSpore's GraphProto as it is written, for both forms of graphs: `graph_files`, `graph_node_files`."""

from __future__ import annotations

from dataclasses import dataclass, field

from mycelia_insight.records import wire
from mycelia_insight.records.wire import plain, signed

_NESTED = 16  # levels of types in types that are read


@dataclass(slots=True)
class NodeMessage:
    """An operator. inputs: names, and an EdgeType, 1 where one only decides the order; attributes: serialized
    AttributeProtos; output_type: a serialized TypeProto."""

    key: str = ""
    type: str = ""
    scope: str = ""
    full_name: str = ""
    instance_name: str = ""
    inputs: list[tuple[str, int]] = field(default_factory=list)
    attributes: list[bytes] = field(default_factory=list)
    output_type: bytes = b""
    output_i: int = 0


@dataclass(slots=True)
class GraphMessage:
    """parameters and outputs: names with serialized TypeProtos; constants: with ValueProtos."""

    name: str = ""
    nodes: list[NodeMessage] = field(default_factory=list)
    parameters: list[tuple[str, bytes]] = field(default_factory=list)
    constants: list[tuple[str, bytes]] = field(default_factory=list)
    outputs: list[tuple[str, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class TypeMessage:
    """kind: a DataType, None if none is told; element, dims: a tensor's; elements: of a tuple."""

    kind: int | None = None
    element: int = 0
    dims: list[int] | None = None
    elements: list[TypeMessage] = field(default_factory=list)


def graph(data: bytes) -> GraphMessage:
    """A serialized GraphProto, or a ModelProto, as `.pb` files hold, with one in it.  Errors: Broken."""
    parts = list(plain(data))
    if any(number == 1 and isinstance(value, int) for number, value in parts):  # the version of a model
        parts = list(plain(next((wire.message(value) for number, value in parts if number == 4), b"")))
    found = GraphMessage()
    named = {3: found.parameters, 4: found.outputs, 5: found.constants}
    for number, value in parts:
        if number == 1:
            found.nodes.append(_node(wire.message(value)))
        elif number == 2:
            found.name = found.name or wire.text(value)
        elif number in named:
            named[number].append(wire.entry(wire.message(value)))
    return found


def _node(data: bytes) -> NodeMessage:
    found = NodeMessage()
    for number, value in plain(data):
        if number == 1:
            name, kind = "", 0
            for part, content in plain(wire.message(value)):
                if part == 1:
                    name = wire.text(content)
                elif part == 2 and isinstance(content, int):
                    kind = content
            found.inputs.append((name, kind))
        elif number == 2:
            found.key = wire.text(value)
        elif number == 3:
            found.type = wire.text(value)
        elif number == 4:
            found.scope = wire.text(value)
        elif number == 5:
            found.attributes.append(wire.message(value))
        elif number == 6:
            found.output_type = wire.message(value)
        elif number == 7 and isinstance(value, int):
            found.output_i = value
        elif number == 8:
            found.full_name = wire.text(value)
        elif number == 10:
            found.instance_name = wire.text(value)
    return found


def type_of(data: bytes, level: int = 0) -> TypeMessage:
    """A serialized TypeProto.  Errors: Broken."""
    found = TypeMessage()
    for number, value in plain(data):
        if number == 1 and isinstance(value, int):
            found.kind = value
        elif number == 2:
            found.dims = []
            for part, content in plain(wire.message(value)):
                if part == 1 and isinstance(content, int):
                    found.element = content
                elif part == 2:
                    found.dims = [
                        _size(wire.message(one)) for kind, one in plain(wire.message(content)) if kind == 1
                    ]
        elif number == 3 and level < _NESTED:
            found.elements += [
                type_of(wire.message(one), level + 1) for part, one in plain(wire.message(value)) if part == 1
            ]
    return found


def _size(data: bytes) -> int:
    return next((signed(one) for number, one in plain(data) if number == 1 and isinstance(one, int)), 0)


def tensor_of(data: bytes) -> TypeMessage:
    """The dtype and the sizes of a serialized TensorProto.  Errors: Broken."""
    found = TypeMessage(dims=[])
    for number, value in plain(data):
        if number == 1 and isinstance(value, int):
            found.dims.append(signed(value))
        elif number == 2 and isinstance(value, int):
            found.element = value
    return found
