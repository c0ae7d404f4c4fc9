"""Nodes out of messages for `graph_nodes`: MindSpore's GraphProto and ModelProto, TensorBoard's GraphDef."""

from __future__ import annotations

from mycelia_insight.records import graph_messages, wire
from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.graph_messages import NodeMessage, TypeMessage, tensor_of, type_of
from mycelia_insight.records.graph_nodes import CONSTANT, PARAMETER, Node
from mycelia_insight.records.value_text import DATA_TYPES, value_text
from mycelia_insight.records.wire import plain

_LONGEST = 1024  # bytes of an attribute that is told
_TENSOR, _TUPLE = 14, 31  # of DataType
#: Ends of full names of operators that record summaries: their names are made anew.
_SUMMARIES = tuple(
    f"[:{kind}]"
    for kind in ("image", "scalar", "graph", "optimized_graph", "histogram", "tensor", "loss_landscape")
)

Nodes = tuple[list[Node], list[Node], list[Node]]


def of_mindspore(data: bytes) -> Nodes:
    """(operators, parameters, constants) of a serialized GraphProto, or a ModelProto with one in it.

    Errors: Broken.
    """
    message = graph_messages.graph(data)
    operators = [_operator(one, place) for place, one in enumerate(message.nodes)]
    return (
        [one for one in operators if one.id],
        [_parameter(name, kept) for name, kept in message.parameters if name],
        [_constant(name, value) for name, value in message.constants if name],
    )


def of_scopes(graph: ScopeGraph) -> Nodes:
    """The same of a graph in another format, which MindInsight does not read: TensorBoard's."""
    found: Nodes = ([], [], [])
    for place, leaf in enumerate(graph.leaves):
        tensor = leaf.shape is not None
        at = {"parameter": 1, "constant": 2}.get(leaf.kind, 0)
        node = Node(leaf.name, ("", PARAMETER, CONSTANT)[at] or leaf.type, leaf.scope, leaf.name)
        node.attributes, node.place = leaf.attributes(), place
        node.wants = [(graph.leaves[source].name, control) for source, control in leaf.inputs]
        node.shapes = [list(leaf.shape or ())] if tensor else []
        node.data_type = f"DT_TENSOR[DT_{leaf.dtype.upper()}]" if tensor else "DT_UNDEFINED"
        found[at].append(node)
    return found


def _operator(message: NodeMessage, place: int) -> Node:
    node = Node("", message.type, message.scope, place=place, output_i=message.output_i)
    node.wants = [
        (name.rpartition("op")[2] if "/" in name else name, kind != 0)
        for name, kind in message.inputs
        if name
    ]
    for one in message.attributes:
        _attribute(node, one)
    node.data_type, node.shapes = _type(message.output_type) if message.output_type else ("DT_UNDEFINED", [])
    node.id = message.key.rpartition("/")[2].rpartition("op")[2] or message.key
    full, label = message.full_name, f"{node.type}-op{node.id}"
    if full.lower().endswith(_SUMMARIES):
        full, label = "", f"{node.type}-op{message.key}"
    node.name = full or (f"{node.scope}/{label}" if node.scope else label)
    named = message.full_name
    node.trains = named.startswith("Gradients") or "optimizer" in named or "opt" in message.instance_name
    return node


def _attribute(node: Node, data: bytes) -> None:
    name, value = wire.entry(data)
    if len(value) <= _LONGEST:
        node.attributes[name] = value_text(value)
        if name in ("input_is_dynamic_shape", "output_is_dynamic_shape"):
            node.is_dynamic = node.is_dynamic or any(number == 2 and held for number, held in plain(value))


def _parameter(name: str, kept: bytes) -> Node:
    node = Node(name, PARAMETER, id=name)
    node.data_type, node.shapes = _type(kept)
    node.attributes = {"type": node.data_type, "shape": str(node.shapes)}
    return node


def _constant(name: str, value: bytes) -> Node:
    kind, dims = 0, []
    for number, held in plain(value):
        if number == 1 and held in DATA_TYPES:
            kind = held
        elif number == 8:
            dims = tensor_of(wire.message(held)).dims
    told = value_text(value) if len(value) <= _LONGEST else f"dtype: DT_{DATA_TYPES[kind]}"
    shape = dims if kind == _TENSOR else []
    return Node(name, CONSTANT, id=name, attributes={name: told}, shapes=[shape])


def _type(data: bytes) -> tuple[str, list[list[int]]]:
    """(name, shapes of the tensors in it) of a TypeProto; what is no tensor has one shape, []."""
    return _typed(type_of(data))


def _typed(found: TypeMessage) -> tuple[str, list[list[int]]]:
    kind = found.kind if found.kind in DATA_TYPES else None
    name = f"DT_{DATA_TYPES[kind or 0]}"
    if kind not in (None, _TENSOR, _TUPLE):
        return name, [[]]
    inner = [_typed(one) for one in found.elements]
    shapes = ([] if found.dims is None else [found.dims]) + [shape for _, its in inner for shape in its]
    if kind == _TENSOR:
        return f"{name}[DT_{DATA_TYPES.get(found.element, DATA_TYPES[0])}]", shapes
    return (f"{name}{[its_name for its_name, _ in inner]}" if kind == _TUPLE else name), shapes
