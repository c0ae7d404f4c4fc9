"""Graphs out of messages: MindSpore's GraphProto and ModelProto, TensorBoard's GraphDef, our IR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mycelia_insight.records import graph_messages, wire
from mycelia_insight.records.graph import Leaf, ScopeGraph, Typed
from mycelia_insight.records.graph_messages import NodeMessage, TypeMessage
from mycelia_insight.records.wire import Broken, plain

# DataType of mindspore.irpb, by its numbers.
_KINDS = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 13: "string", 14: "tensor", 15: "graph",
    31: "tuple", 32: "list", 33: "dict", 34: "none", 39: "type", 46: "bfloat16",
}  # fmt: skip
# DataType of TensorFlow.
_TENSORFLOW = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 20: "resource",
    22: "uint32", 23: "uint64",
}  # fmt: skip
_LONGEST = 4000  # characters of an attribute that are shown
_NESTED = 8  # levels of values in values that are shown
_CONTROL = 1  # EdgeType of mindspore.irpb
_SOURCE = b"\x0a\x06source"  # how such an attribute begins


def of_mindspore(data: bytes, name: str = "") -> ScopeGraph:
    """A serialized GraphProto, or a ModelProto, as `.pb` files hold, with one in it.

    Inputs that no node has are left out; a constant is shown in each scope that takes it.
    Errors: ValueError if it is no such message.
    """
    message = graph_messages.graph(data)
    leaves: list[Leaf] = []
    names: set[str] = set()
    known: dict[str, int] = {}
    for one in message.nodes:
        leaf = _leaf(one)
        leaf.name = _unique(leaf.name, names)
        known.setdefault(one.key, len(leaves))
        leaves.append(leaf)
    outside = {key: _parameter(key, kept) for key, kept in message.parameters}
    outside |= {key: _constant(key, kept) for key, kept in message.constants}
    copies: dict[tuple[str, str], int] = {}
    for at, one in enumerate(message.nodes):
        for key, kind in one.inputs:
            source = known.get(key)
            if source is None and key in outside:
                template = outside[key]
                scope = leaves[at].scope
                source = copies.get((key, scope)) if template.kind == "constant" else None
                if source is None:
                    source = len(leaves)
                    leaves.append(_placed(template, scope, names))
                    if template.kind == "constant":
                        copies[key, scope] = source
                    else:
                        known[key] = source
            if source is not None:
                leaves[at].inputs.append((source, kind == _CONTROL))
    for key, template in outside.items():
        if template.kind == "parameter" and key not in known:
            leaves.append(_placed(template, "", names))
    for key, kept in message.outputs:
        ends = [(known[key], False)] if key in known else []
        leaves.append(Leaf(_unique("output", names), "Output", "", "output", ends, partial(_type_of, kept)))
    return ScopeGraph(name or message.name, leaves)


def of_tensorboard(data: bytes, name: str = "") -> ScopeGraph:
    """A serialized GraphDef of TensorFlow; scopes are the parts of nodes' names.  Errors: ValueError."""
    leaves, wants, names, known = [], [], set(), {}
    for number, value in plain(data):
        if number != 1:
            continue
        key = kind = ""
        inputs, attributes = [], []
        for part, content in plain(wire.message(value)):
            if part == 1:
                key = wire.text(content)
            elif part == 2:
                kind = wire.text(content)
            elif part == 3:
                wanted = wire.text(content)
                inputs.append((wanted.lstrip("^").split(":")[0], wanted.startswith("^")))
            elif part == 5:
                attributes.append(wire.message(content))
        shown = {"Const": "constant", "Placeholder": "parameter", "Parameter": "parameter"}
        leaf = Leaf(_unique(key or "unnamed", names), kind, key.rpartition("/")[0],
                    shown.get(kind, "operator"), [], partial(_tensorflow_type, attributes))  # fmt: skip
        leaf.attributes = partial(_tensorflow_attributes, attributes)
        known.setdefault(key, len(leaves))
        leaves.append(leaf)
        wants.append(inputs)
    for leaf, inputs in zip(leaves, wants, strict=True):
        leaf.inputs = [(known[key], control) for key, control in inputs if key in known]
    return ScopeGraph(name, leaves)


def ir_message(content: str) -> bytes:
    """The GraphProto of a graph as `MYCELIA_SAVE_GRAPHS` writes it.  Errors: ValueError if it is none."""
    if content.startswith("# IR entry:"):
        raise ValueError("it is a text as MindSpore and dumps have it: the .pb of the same graph is shown")

    from mycelia.ir.text import parse
    from mycelia.ops.define import find
    from mycelia.train.summary.graph import graph_message

    return graph_message(parse(content, find))


def _unique(name: str, names: set[str]) -> str:
    found, count = name, 1
    while found in names:
        count += 1
        found = f"{name} ({count})"
    names.add(found)
    return found


def _placed(template: Leaf, scope: str, names: set[str]) -> Leaf:
    name = _unique(f"{scope}/{template.name}" if scope else template.name, names)
    return Leaf(name, template.type, scope, template.kind, [], template.type_of, template.attributes)


def _leaf(node: NodeMessage) -> Leaf:
    source = next((_attributes([one])["source"] for one in node.attributes if one.startswith(_SOURCE)), "")
    return Leaf(
        node.full_name or f"{node.scope}/{node.type}-op{node.key}".lstrip("/"),
        node.type,
        node.scope,
        type_of=partial(_type_of, node.output_type),
        attributes=partial(_attributes, node.attributes),
        source=source.strip('"'),
    )


def _parameter(name: str, kept: bytes) -> Leaf:
    return Leaf(name, "Parameter", "", "parameter", type_of=partial(_type_of, kept))


def _constant(name: str, content: bytes) -> Leaf:
    return Leaf(name, "Const", "", "constant", attributes=partial(_constant_attributes, content))


def _constant_attributes(content: bytes) -> dict[str, str]:
    return {"value": value_line(content)[:_LONGEST]}


def _type_of(data: bytes) -> Typed:
    """dtype and shape of a TypeProto, whose shape is None for what is no tensor; of a broken one neither."""
    try:
        return _typed(graph_messages.type_of(data))
    except Broken:
        return "", None


def _typed(found: TypeMessage) -> Typed:
    if found.elements:
        inner = [
            dtype + (str(list(its)) if its is not None else "") for dtype, its in map(_typed, found.elements)
        ]
        return f"({', '.join(inner[:20])}{', …' if len(inner) > 20 else ''})", None
    dtype = _KINDS.get(found.element, "") if found.dims is not None else ""
    return dtype or _KINDS.get(found.kind or 0, ""), None if found.dims is None else tuple(found.dims)


def _attributes(found: list[bytes]) -> dict[str, str]:
    named = {}
    for data in found:
        key, value = wire.entry(data)
        named[key] = value_line(value)[:_LONGEST]
    return named


def value_line(data: bytes, level: int = 0) -> str:
    """A ValueProto on one line.  Errors: Broken."""
    kind, parts, alone = 0, [], ""
    for number, value in plain(data):
        if number == 1:
            kind = value
        elif number == 2:
            alone = "True" if value else "False"
        elif number in (3, 4):
            alone = str(_signed(value) if number == 3 else value)
        elif number in (5, 6):
            alone = f"{value:.9g}" if isinstance(value, float) else wire.text(value)
        elif number == 7:
            alone = f'"{wire.text(value)}"' if kind == 13 else wire.text(value)
        elif number == 8:
            alone = _tensor(wire.message(value))
        elif number == 18 and level < _NESTED:
            parts.append(value_line(wire.message(value), level + 1))
        elif number == 20:
            dtype, shape = _typed(graph_messages.type_of(wire.message(value)))
            alone = dtype + (str(list(shape)) if shape is not None else "")
    if parts or kind in (31, 32):
        return f"[{', '.join(parts)}]" if kind == 32 else f"({', '.join(parts)})"
    return alone


def _tensor(data: bytes) -> str:
    found = graph_messages.tensor_of(data)
    return f"tensor {_KINDS.get(found.element, '')}{found.dims}"


def _tensorflow_type(found: list[bytes]) -> Typed:
    """Of attributes `T`, `dtype` and `_output_shapes` of a NodeDef; what is broken tells none."""
    try:
        return _tensorflow_type_of(found)
    except Broken:
        return "", None


def _tensorflow_type_of(found: list[bytes]) -> Typed:
    dtype, shape = "", None
    for data in found:
        key, value = wire.entry(data)
        if key in ("T", "dtype"):
            number = next((content for part, content in plain(value) if part == 6), 0)
            dtype = _TENSORFLOW.get(number, "") if isinstance(number, int) else ""
        elif key == "_output_shapes":
            listed = next((wire.message(content) for part, content in plain(value) if part == 1), b"")
            first = next((wire.message(content) for part, content in plain(listed) if part == 7), None)
            shape = None if first is None else _tensorflow_shape(first)
    return dtype, shape


def _tensorflow_shape(data: bytes) -> tuple[int, ...]:
    return tuple(
        _signed(next((content for part, content in plain(wire.message(value)) if part == 1), 0))
        for number, value in plain(data)
        if number == 2
    )


def _tensorflow_attributes(found: list[bytes]) -> dict[str, str]:
    return {key: _tensorflow_value(value)[:_LONGEST] for key, value in map(wire.entry, found)}


def _tensorflow_value(data: bytes) -> str:
    for number, value in plain(data):
        if number == 2:
            return f'"{wire.text(value)}"'
        if number == 3:
            return str(_signed(value))
        if number == 4:
            return f"{value:.9g}" if isinstance(value, float) else wire.text(value)
        if number == 5:
            return "True" if value else "False"
        if number == 6 and isinstance(value, int):
            return _TENSORFLOW.get(value, str(value))
        if number == 7:
            return str(list(_tensorflow_shape(wire.message(value))))
        if number == 1:
            return _tensorflow_list(wire.message(value))
    return ""


def _tensorflow_list(data: bytes) -> str:
    readers: dict[int, Callable[[object], str]] = {
        2: lambda v: f'"{wire.text(v)}"', 3: lambda v: str(_signed(v)), 4: str, 5: lambda v: str(bool(v)),
        6: lambda v: _TENSORFLOW.get(v, str(v)) if isinstance(v, int) else str(v),
        7: lambda v: str(list(_tensorflow_shape(wire.message(v)))),
    }  # fmt: skip
    return f"[{', '.join(readers[number](value) for number, value in plain(data) if number in readers)}]"


def _signed(value: object) -> int:
    return wire.signed(value) if isinstance(value, int) else 0
