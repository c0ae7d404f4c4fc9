"""Graphs out of files of models: ONNX and MindIR, which both hold a ModelProto of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from mycelia_insight.records import wire
from mycelia_insight.records.graph import Leaf, ScopeGraph, Typed
from mycelia_insight.records.wire import Broken, plain, signed

#: TensorProto.DataType of both.
_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
    16: "bfloat16", 17: "float64",
}  # fmt: skip
_LONGEST = 4000  # characters of an attribute that are shown
_MOST = 100  # members of one
_NESTED = 16  # graphs in graphs that are shown
_GRAPH, _FUNCTIONS, _PRIMITIVES = 7, 8, 12  # fields of a ModelProto
#: What the fields of an AttributeProto hold, with [ where there may be several.
_ONNX = {
    2: "f4", 3: "int", 4: "text", 5: "tensor", 6: "graph", 7: "[<f4", 8: "[int", 9: "[text", 10: "[tensor",
    11: "[graph",
}  # fmt: skip
_MINDIR = {
    2: "f4", 3: "int", 4: "f8", 5: "text", 6: "tensor", 7: "graph", 8: "[<f4", 9: "[<f8", 10: "[int",
    11: "[text", 12: "[tensor", 13: "[graph", 17: "[attribute",
}  # fmt: skip
_REFERENCE = "REF::"  # how an operator of MindIR is told that the model lists
_ORDERS = ("UpdateState",)  # what such a node gives only decides the order


@dataclass
class _Node:
    """inputs and outputs: names of values; attributes: serialized AttributeProtos."""

    name: str = ""
    kind: str = ""
    domain: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: list[bytes] = field(default_factory=list)


@dataclass
class _Frame:
    """Of a graph: known: leaves that make its values; outside: what its parameters and constants will be."""

    known: dict[str, int] = field(default_factory=dict)
    outside: dict[str, Leaf] = field(default_factory=dict)


class _Leaves:
    """The leaves of a model's graph, as they are found."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._names: set[str] = set()

    def add(self, leaf: Leaf) -> int:
        """The leaf's number; its name gets one, too, where another has it already."""
        name, count = leaf.name, 1
        while leaf.name in self._names:
            count += 1
            leaf.name = f"{name} ({count})"
        self._names.add(leaf.name)
        self.leaves.append(leaf)
        return len(self.leaves) - 1

    def link(self, number: int, wanted: list[str], frames: list[_Frame]) -> None:
        """Take inputs from the graph, or from those around it, the innermost last. Values that nobody makes
        lie in the scope that takes them first; those of no name are left out.
        """
        leaf = self.leaves[number]
        for name in wanted:
            frame = next((f for f in reversed(frames) if name in f.known or name in f.outside), None)
            if frame is None:
                continue
            if name not in frame.known:
                kept = frame.outside[name]
                path = f"{leaf.scope}/{kept.name}" if leaf.scope else kept.name
                made = Leaf(path, kept.type, leaf.scope, kept.kind, [], kept.type_of, kept.attributes)
                frame.known[name] = self.add(made)
            source = frame.known[name]
            leaf.inputs.append((source, self.leaves[source].type in _ORDERS))


def of_onnx(data: bytes) -> ScopeGraph:
    """A serialized ModelProto of ONNX; scopes are the parts of nodes' names, and the graphs in nodes.

    Errors: ValueError if it is none.
    """
    graph = _one(data, _GRAPH)
    if graph is None:
        raise Broken("an ONNX model has a graph, but there is none")
    found = _Leaves()
    _onnx_graph(graph, "", [], found)
    return ScopeGraph(_text(graph, 2), found.leaves)


def of_mindir(data: bytes) -> ScopeGraph:
    """A serialized ModelProto of MindIR; functions that its graph calls are scopes of their own names.

    Errors: ValueError if it is none.
    """
    graph = _one(data, _GRAPH)
    if graph is None:
        raise Broken("a MindIR model has a graph, but there is none")
    primitives: dict[str, tuple[str, list[bytes]]] = {}
    functions = []
    for number, value in plain(data):
        if number == _PRIMITIVES:
            message = wire.message(value)
            primitives[_text(message, 1)] = _text(message, 2), _all(message, 3)
        elif number == _FUNCTIONS:
            functions.append(wire.message(value))
    found = _Leaves()
    _mindir_graph(graph, "", primitives, found)
    for function in functions:
        _mindir_graph(function, _text(function, 2) or "function", primitives, found)
    return ScopeGraph(_text(graph, 2), found.leaves)


def _onnx_graph(graph: bytes, scope: str, around: list[_Frame], found: _Leaves) -> None:
    frame = _Frame()
    nodes, types, outside, results = [], {}, frame.outside, []
    for number, value in plain(graph):
        if number == 1:
            nodes.append(_node(wire.message(value)))
        elif number == 5:
            tensor = wire.message(value)
            outside[_text(tensor, 8)] = Leaf(
                _text(tensor, 8), "Parameter", "", "parameter", type_of=partial(_tensor_type, tensor)
            )
        elif number in (11, 12, 13):
            message = wire.message(value)
            name = _text(message, 1)
            types[name] = _one(message, 2) or b""
            if number == 11:
                outside.setdefault(
                    name, Leaf(name, "Input", "", "parameter", type_of=partial(_onnx_type, types[name]))
                )
            elif number == 12:
                results.append(name)
    placed = []
    for place, one in enumerate(nodes):
        path = one.name.strip("/") or f"{one.kind}_{place}"
        path = f"{scope}/{path}" if scope else path
        kind = "constant" if one.kind == "Constant" else "operator"
        leaf = Leaf(
            path, one.kind, path.rpartition("/")[0], kind,
            type_of=partial(_onnx_type, types.get(one.outputs[0], b"") if one.outputs else b""),
            attributes=partial(_attributes, one.attributes, _ONNX),
        )  # fmt: skip
        placed.append(found.add(leaf))
        frame.known.update(dict.fromkeys(filter(None, one.outputs), placed[-1]))
    frames = [*around, frame]
    for number, one in zip(placed, nodes, strict=True):
        found.link(number, one.inputs, frames)
        for name, inner in _graphs(one.attributes):
            if len(frames) <= _NESTED:
                _onnx_graph(inner, f"{found.leaves[number].name} {name}", frames, found)
    for name in results:
        path = f"{scope}/output" if scope else "output"
        leaf = Leaf(path, "Output", scope, "output", type_of=partial(_onnx_type, types[name]))
        found.link(found.add(leaf), [name], frames)


def _mindir_graph(
    graph: bytes, scope: str, primitives: dict[str, tuple[str, list[bytes]]], found: _Leaves
) -> None:
    frame = _Frame()
    nodes, outside, results = [], frame.outside, []
    for number, value in plain(graph):
        if number == 1:
            nodes.append(_node(wire.message(value)))
        elif number == 3:
            tensor = wire.message(value)
            name = _text(tensor, 7)
            shown = _text(tensor, 13) or name.rpartition(":")[2]
            outside[name] = Leaf(shown, "Parameter", "", "parameter", type_of=partial(_tensor_type, tensor))
        elif number in (5, 6):
            message = wire.message(value)
            name, tensor = _text(message, 1), _one(message, 2)
            type_of = partial(_tensor_type, tensor or b"")
            if number == 6:
                results.append((name, type_of))
            elif tensor is not None:
                shown = name.rpartition(":")[2]
                outside[name] = Leaf(shown, "Input", "", "parameter", type_of=type_of)
    placed = []
    for place, one in enumerate(nodes):
        kind, attributes = one.kind, one.attributes
        if kind.startswith(_REFERENCE):
            target = kind.removeprefix(_REFERENCE)
            kind, own = primitives.get(target, (f"call {target}", []))
            attributes = own + attributes
        if kind == "Constant":
            attributes_of = partial(_attributes, attributes, _MINDIR)
            for name in one.outputs:
                outside[name] = Leaf(name, "Const", "", "constant", attributes=attributes_of)
            placed.append(-1)
            continue
        kind = kind.removeprefix("S-Prim-")
        path = one.domain or f"{kind}-op{place}"
        path = f"{scope}/{path}" if scope else path
        leaf = Leaf(
            path, kind, path.rpartition("/")[0], type_of=partial(_mindir_type, one.attributes),
            attributes=partial(_attributes, attributes, _MINDIR),
        )  # fmt: skip
        placed.append(found.add(leaf))
        frame.known.update(dict.fromkeys(one.outputs, placed[-1]))
    for number, one in zip(placed, nodes, strict=True):
        if number >= 0:
            found.link(number, one.inputs, [frame])
    for name, type_of in results:
        path = f"{scope}/output" if scope else "output"
        found.link(found.add(Leaf(path, "Output", scope, "output", type_of=type_of)), [name], [frame])


def _node(data: bytes) -> _Node:
    """A NodeProto, whose fields both formats number alike."""
    node = _Node()
    for number, value in plain(data):
        if number in (1, 2):
            (node.inputs if number == 1 else node.outputs).append(wire.text(value))
        elif number == 3:
            node.name = wire.text(value)
        elif number == 4:
            node.kind = wire.text(value)
        elif number == 5:
            node.attributes.append(wire.message(value))
        elif number == 7:
            node.domain = wire.text(value)
    return node


def _one(data: bytes, wanted: int) -> bytes | None:
    """The last message of a field; None if there is none."""
    found = _all(data, wanted)
    return found[-1] if found else None


def _all(data: bytes, wanted: int) -> list[bytes]:
    return [wire.message(value) for number, value in plain(data) if number == wanted]


def _text(data: bytes, wanted: int) -> str:
    return next((wire.text(value) for number, value in plain(data) if number == wanted), "")


def _graphs(attributes: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """(name, GraphProto) of ONNX's attributes that are graphs."""
    for data in attributes:
        for inner in [*_all_messages(data, 6), *_all_messages(data, 11)]:
            yield _text(data, 1), inner


def _all_messages(data: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in plain(data) if number == wanted and isinstance(value, bytes)]


def _tensor_type(tensor: bytes) -> Typed:
    """Of a TensorProto; of a broken one neither."""
    dims, kind = [], 0
    try:
        for number, value in plain(tensor):
            if number == 1:
                dims += _dims(value)
            elif number == 2 and isinstance(value, int):
                kind = value
    except Broken:
        return "", None
    return _DTYPES.get(kind, ""), None if dims == [-2] else tuple(dims)


def _dims(value: object) -> list[int]:
    """Sizes that are written one by one, or packed."""
    if isinstance(value, bytes):
        return [int(one) for one in wire.varints([memoryview(value)])]
    return [signed(value)] if isinstance(value, int) else []


def _onnx_type(data: bytes) -> Typed:
    """Of a TypeProto; a size without a number is -1."""
    try:
        tensor = _one(data, 1)
        if tensor is None:
            return "", None
        kind = next((value for number, value in plain(tensor) if number == 1 and isinstance(value, int)), 0)
        shape = _one(tensor, 2)
        if shape is None:
            return _DTYPES.get(kind, ""), None
        sizes = []
        for dimension in _all(shape, 1):
            known = [v for number, v in plain(dimension) if number == 1 and isinstance(v, int)]
            sizes.append(signed(known[-1]) if known else -1)
        return _DTYPES.get(kind, ""), tuple(sizes)
    except Broken:
        return "", None


def _mindir_type(attributes: list[bytes]) -> Typed:
    """Of the node's attribute `shape`: that of its first output."""
    try:
        for data in attributes:
            if not _is_shape(data):
                continue
            for _ in range(_NESTED):  # of several outputs
                inner = _all(data, 17)
                if not inner:
                    break
                data = inner[0]
            tensor = [*_all_messages(data, 6), *_all_messages(data, 12)]
            return _tensor_type(tensor[0]) if tensor else ("", None)
    except Broken:
        pass
    return "", None


def _is_shape(attribute: bytes) -> bool:
    """Whether it tells of a MindIR node's outputs."""
    return _text(attribute, 1) == "shape" or _text(attribute, 15).startswith("shape:")


def _attributes(found: list[bytes], forms: dict[int, str]) -> dict[str, str]:
    """AttributeProtos by their names, as text; those that are broken are left out."""
    named = {}
    for data in found:
        try:
            if forms is _ONNX or not _is_shape(data):
                named[_text(data, 1)] = _value(data, forms)[:_LONGEST]
        except Broken:
            continue
    return named


def _value(data: bytes, forms: dict[int, str], level: int = 0) -> str:
    parts: list[str] = []
    is_list = False
    for number, value in plain(data):
        form = forms.get(number)
        if form is None:
            continue
        if len(parts) >= _MOST:
            parts = [*parts[:_MOST], "…"]
            break
        is_list |= form.startswith("[")
        if isinstance(value, int):
            parts.append(str(signed(value)))
        elif isinstance(value, float):
            parts.append(f"{value:.9g}")
        elif form.endswith("text"):
            parts.append(f'"{wire.text(value)}"')
        elif form.endswith("tensor"):
            dtype, shape = _tensor_type(value)
            parts.append(f"tensor {dtype}{list(shape or ())}")
        elif form.endswith("graph"):
            parts.append(f"graph {_text(value, 2)}")
        elif form.endswith("attribute"):
            parts.append(_value(value, forms, level + 1) if level < _NESTED else "…")
        elif form.endswith("int"):
            parts += map(str, wire.varints([memoryview(value)])[:_MOST].tolist())
        else:
            parts += (f"{one:.9g}" for one in wire.numbers([memoryview(value)], form[1:])[:_MOST].tolist())
    return f"[{', '.join(parts)}]" if is_list else ", ".join(parts)
