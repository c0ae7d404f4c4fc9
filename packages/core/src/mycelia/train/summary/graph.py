"""Compiled graphs as messages `GraphProto` of `mindspore.irpb`, which Insight shows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mycelia.engine.base.errors import Place
from mycelia.engine.base.origins import ROOT, Origin
from mycelia.engine.base.wire import field
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.observing.operator_names import operators_of
from mycelia.io import irpb
from mycelia.nn.cell import Cell
from mycelia.train.summary.events import text
from mycelia.train.summary.precision import precision_flags

_TUPLE = 31

_MOST_WITHIN = 1000  # operators of branches that are listed


def graph_of(cell: Cell) -> Graph | None:
    """The graph that was compiled or used last for a call of `cell`; None for one that runs as Python."""
    caches = cell.__dict__.get("_compiled") or {}
    found = [run for run in (cache.latest() for cache in caches.values()) if run is not None]
    return found[-1].graph if found else None


def graph_message(graph: Graph) -> bytes:
    """A serialized `GraphProto`: nodes in order, parameters, constants and the output.

    Nodes are called by their numbers from 1 on, constants cst1, cst2, ...; a node's scope is the path of the
    Cell that it belongs to, or the function whose line it is, its attribute `source` the file and the line,
    `operator` how dumps and messages call it, without the scope where that is the node's, `operators` those
    of its branches or its loop, by their full names, `precision_flag` whether it computes in fewer or more
    bits than it was given (`precision.py`).
    What a node has several results of, or what the graph returns several values of, goes through nodes
    TupleGetItem and MakeTuple, as in MindSpore.
    """
    return b"".join(_Writer(graph).parts())


def node_names(graph: Graph) -> dict[Node, str]:
    """The full names that `graph_message` gives to the nodes."""
    found, count = {}, 0
    for node in graph.nodes:
        count += 1
        found[node] = f"{_scope(node.location)}/{_instance(node.op.name, count)}"
        count += len(node.outputs) if len(node.outputs) != 1 else 0
    return found


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operators = operators_of(graph)
        self.precision = precision_flags(graph)
        self.names: dict[Value, str] = {}
        self.constants: list[bytes] = []
        self.count = 0

    def parts(self) -> Iterator[bytes]:
        parameters = []
        for position, value in enumerate(self.graph.parameters):
            self.names[value] = value.name or f"argument{position}"
            parameters.append(field(3, text(1, self.names[value]) + field(2, _type(value))))
        for node in self.graph.nodes:
            yield from self.node(node)
        outputs = self.graph.outputs
        if len(outputs) == 1:
            result, kind = self.name(outputs[0]), _type(outputs[0])
        else:
            kind = field(1, _TUPLE) + field(3, b"".join(field(1, _type(v)) for v in outputs))
            result = self.next()
            inputs = b"".join(_input(self.name(v)) for v in outputs)
            yield _node(result, "MakeTuple", "Default", inputs, b"", kind)
        yield text(2, self.graph.name)
        yield from parameters
        yield field(4, text(1, result) + field(2, kind))
        for constant in self.constants:
            yield field(5, constant)

    def next(self) -> str:
        self.count += 1
        return str(self.count)

    def name(self, value: Value) -> str:
        found = self.names.get(value)
        if found is None:  # a constant: all others were made before they are used
            found = self.names[value] = f"cst{len(self.constants) + 1}"
            self.constants.append(text(1, found) + field(2, _constant(value)))
        return found

    def index(self, number: int) -> str:
        name = f"cst{len(self.constants) + 1}"
        self.constants.append(text(1, name) + field(2, irpb.value(number)))
        return name

    def within(self, node: Node) -> list[str]:
        """Full names of the operators in the branches or the loop of a node."""
        inner = (one for region in node.regions for one in operators_of(region))
        return [self.operators[one].name for one in islice(inner, _MOST_WITHIN)]

    def node(self, node: Node) -> Iterator[bytes]:
        name = self.next()
        place = node.location
        scope = _scope(place)
        inputs = b"".join(_input(self.name(v)) for v in node.inputs if v is not None)
        attributes = b"".join(
            field(5, text(1, key) + field(2, irpb.value(value)))
            for key, value in node.attrs.items()
            if not isinstance(value, Graph)
        )
        if place is not None and place.file:
            attributes += field(5, text(1, "source") + field(2, irpb.value(f"{place.file}:{place.line}")))
        operator = self.operators.get(node)
        if operator is not None:
            known_as = operator.name.removeprefix(f"{scope}/")
            attributes += field(5, text(1, "operator") + field(2, irpb.value(known_as)))
        if within := self.within(node):
            attributes += field(5, text(1, "operators") + field(2, irpb.value(", ".join(within))))
        if flag := self.precision.get(node):
            attributes += field(5, text(1, "precision_flag") + field(2, irpb.value(flag)))
        several = len(node.outputs) != 1
        if several:
            kind = field(1, _TUPLE) + field(3, b"".join(field(1, _type(v)) for v in node.outputs))
        else:
            kind = _type(node.outputs[0])
            self.names[node.outputs[0]] = name
        yield _node(name, node.op.name, scope, inputs, attributes, kind)
        if several:
            for position, value in enumerate(node.outputs):
                picked = self.names[value] = self.next()
                inputs = _input(name) + _input(self.index(position))
                yield _node(picked, "TupleGetItem", scope, inputs, b"", _type(value))


def _scope(place: Place | None) -> str:
    if isinstance(place, Origin):
        return place.scope
    return f"{ROOT}/{place.function}" if place is not None and place.function else ROOT


def _instance(kind: str, number: str | int) -> str:
    return f"{kind}-op{number}"


def _node(name: str, kind: str, scope: str, inputs: bytes, attributes: bytes, result: bytes) -> bytes:
    instance = _instance(kind, name)
    content = inputs + text(2, name) + text(3, kind) + text(4, scope) + attributes + field(6, result)
    return field(1, content + text(8, f"{scope}/{instance}") + text(10, instance))


def _input(name: str) -> bytes:
    return field(1, text(1, name) + field(2, 0))  # an edge of data


def _type(value: Value) -> bytes:
    shape = b"".join(field(1, field(1, n if isinstance(n, int) else -1)) for n in value.type.shape)
    tensor = field(1, irpb.DATA_TYPES.get(str(value.type.dtype), 0)) + field(2, shape)
    return field(1, irpb.TENSOR) + field(2, tensor)


def _constant(value: Value) -> bytes:
    if value.type.shape == () and value.type.dtype.name != "bfloat16":
        return irpb.value(value.constant.asnumpy().item())
    dims = b"".join(field(1, n) for n in value.type.shape)
    kind = irpb.DATA_TYPES.get(str(value.type.dtype), 0)
    return irpb.tensor(dims + field(2, kind))
