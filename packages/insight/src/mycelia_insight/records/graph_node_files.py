"""Nodes out of messages for `graph_nodes`: MindSpore's GraphProto and ModelProto, TensorBoard's GraphDef."""

from __future__ import annotations

from mycelia_insight.records import wire
from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.graph_nodes import CONSTANT, PARAMETER, Node
from mycelia_insight.records.value_text import DATA_TYPES, value_text
from mycelia_insight.records.wire import plain, signed

_LONGEST = 1024  # bytes of an attribute that is told
_TENSOR, _TUPLE = 14, 31  # of DataType
_NESTED = 16  # levels of types in types
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
    parts = list(plain(data))
    if any(number == 1 and isinstance(value, int) for number, value in parts):  # the version of a model
        parts = list(plain(next((wire.message(value) for number, value in parts if number == 4), b"")))
    messages = {
        kind: [wire.message(value) for number, value in parts if number == kind] for kind in (1, 3, 5)
    }
    operators = [_operator(one, place) for place, one in enumerate(messages[1])]
    return (
        [one for one in operators if one.id],
        [one for one in map(_parameter, messages[3]) if one.name],
        [one for one in map(_constant, messages[5]) if one.name],
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


def _operator(data: bytes, place: int) -> Node:
    texts = {2: "", 3: "", 4: "", 8: "", 10: ""}
    node = Node("", "", place=place)
    for number, value in plain(data):
        if number in texts:
            texts[number] = wire.text(value)
        elif number == 1:
            _want(node, wire.message(value))
        elif number == 5:
            _attribute(node, wire.message(value))
        elif number == 6:
            node.data_type, node.shapes = _type(wire.message(value))
        elif number == 7 and isinstance(value, int):
            node.output_i = value
    if not node.data_type:
        node.data_type = "DT_UNDEFINED"
    key, node.type, node.scope, full, instance = texts.values()
    node.id = key.rpartition("/")[2].rpartition("op")[2] or key
    label = f"{node.type}-op{node.id}"
    if full.lower().endswith(_SUMMARIES):
        full, label = "", f"{node.type}-op{key}"
    node.name = full or (f"{node.scope}/{label}" if node.scope else label)
    node.trains = texts[8].startswith("Gradients") or "optimizer" in texts[8] or "opt" in instance
    return node


def _want(node: Node, data: bytes) -> None:
    name, kind = "", 0
    for number, value in plain(data):
        if number == 1:
            name = wire.text(value)
        elif number == 2 and isinstance(value, int):
            kind = value
    if name:
        node.wants.append((name.rpartition("op")[2] if "/" in name else name, kind != 0))


def _attribute(node: Node, data: bytes) -> None:
    name, value = wire.entry(data)
    if len(value) <= _LONGEST:
        node.attributes[name] = value_text(value)
        if name in ("input_is_dynamic_shape", "output_is_dynamic_shape"):
            node.is_dynamic = node.is_dynamic or any(number == 2 and held for number, held in plain(value))


def _parameter(data: bytes) -> Node:
    name, kept = wire.entry(data)
    node = Node(name, PARAMETER, id=name)
    node.data_type, node.shapes = _type(kept)
    node.attributes = {"type": node.data_type, "shape": str(node.shapes)}
    return node


def _constant(data: bytes) -> Node:
    name, value = wire.entry(data)
    kind, dims = 0, []
    for number, held in plain(value):
        if number == 1 and held in DATA_TYPES:
            kind = held
        elif number == 8:
            dims = [
                signed(one) for part, one in plain(wire.message(held)) if part == 1 and isinstance(one, int)
            ]
    told = value_text(value) if len(value) <= _LONGEST else f"dtype: DT_{DATA_TYPES[kind]}"
    shape = dims if kind == _TENSOR else []
    return Node(name, CONSTANT, id=name, attributes={name: told}, shapes=[shape])


def _type(data: bytes, level: int = 0) -> tuple[str, list[list[int]]]:
    """(name, shapes of the tensors in it) of a TypeProto; what is no tensor has one shape, []."""
    kind, inner, dims, element = None, [], None, 0
    for number, value in plain(data):
        if number == 1 and value in DATA_TYPES:
            kind = value
        elif number == 2:
            dims = []
            for part, content in plain(wire.message(value)):
                if part == 1 and content in DATA_TYPES:
                    element = content
                elif part == 2:
                    dims = [
                        _size(wire.message(one)) for field, one in plain(wire.message(content)) if field == 1
                    ]
        elif number == 3 and level < _NESTED:
            inner += [
                _type(wire.message(one), level + 1) for part, one in plain(wire.message(value)) if part == 1
            ]
    name = f"DT_{DATA_TYPES[kind or 0]}"
    if kind not in (None, _TENSOR, _TUPLE):
        return name, [[]]
    shapes = ([] if dims is None else [dims]) + [shape for _, its in inner for shape in its]
    if kind == _TENSOR:
        return f"{name}[DT_{DATA_TYPES[element]}]", shapes
    return (f"{name}{[its_name for its_name, _ in inner]}" if kind == _TUPLE else name), shapes


def _size(data: bytes) -> int:
    return next((signed(one) for number, one in plain(data) if number == 1 and isinstance(one, int)), 0)
