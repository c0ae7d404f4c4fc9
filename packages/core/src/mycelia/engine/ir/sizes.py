"""Types, attributes and graphs with sizes that follow from those of arguments: what they hold, and copies for
other numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.symint import Number, Symbol, SymInt, applied
from mycelia.engine.ir.types import TensorType


def is_open(value: Any) -> bool:
    """True for a SymInt that has no present value: only the finished graph knows it."""
    return type(value) is SymInt and value.table.open


def symbols_of(value: Any) -> set[int]:
    """The symbols that a SymInt, or the Sizes in an attribute, are made from."""
    if type(value) is SymInt:
        function, *operands = value.made_of()
        return {operands[0]} if function is Symbol else symbols_of(operands)
    if isinstance(value, dict):
        value = tuple(value.values())
    return set().union(*map(symbols_of, value)) if isinstance(value, (tuple, list)) else set()


def with_symbols(value: Any, known: dict[int, Any]) -> Any:
    """A SymInt, or an attribute with Sizes, computed from other values of the symbols."""
    kind = type(value)
    if kind is SymInt:
        function, *operands = value.made_of()
        if function is None or function is Symbol:
            return operands[0] if function is None else known[operands[0]]
        return applied(function, *(with_symbols(o, known) for o in operands))
    if kind is tuple or kind is list:
        return kind(with_symbols(v, known) for v in value)
    return {k: with_symbols(v, known) for k, v in value.items()} if kind is dict else value


def hint_of(size: Any) -> Any:
    """The present value of a size, specializing nothing."""
    return size.hint if type(size) is SymInt else size


def exact(value: Any) -> Any:
    """`operator.index`, but a SymInt stays one."""
    return value if type(value) is SymInt else operator.index(value)


def key_of(shape: tuple) -> tuple:
    """A key for tables that is the same for the same formulas, specializing nothing."""
    return tuple((SymInt, n.index) if type(n) is SymInt else n for n in shape)


def is_symbolic(value: Any) -> bool:
    """True for a SymInt, a type or an attribute (nested tuples included) with one."""
    kind = type(value)
    if kind is SymInt:
        return True
    if kind is TensorType:
        return any(type(n) is SymInt for n in value.shape)
    if kind is tuple or kind is list:
        return any(is_symbolic(v) for v in value)
    if kind is dict:
        return any(is_symbolic(v) for v in value.values())
    if kind is slice:
        return is_symbolic((value.start, value.stop, value.step))
    return False


def is_open_graph(graph: Graph) -> bool:
    """Whether a type or an attribute in `graph` or one of its regions is symbolic."""
    if any(is_symbolic(v.type) for v in (*graph.parameters, *graph.outputs)):
        return True
    for node in graph.nodes:
        if any(is_symbolic(v.type) for v in node.outputs) or is_symbolic(node.attrs):
            return True
        if any(map(is_open_graph, node.regions)):
            return True
    return False


class Numbers:
    """Puts the numbers `values` (of `SizeTable.resolve`; None: the present ones) in the place of sizes."""

    def __init__(self, values: Sequence[Number] | None) -> None:
        self.values = values
        self.types: dict[int, TensorType] = {}

    def type(self, type_: TensorType) -> TensorType:
        found = self.types.get(id(type_))
        if found is None:
            found = type_
            if is_symbolic(type_):
                found = TensorType(type_.dtype, self.attribute(type_.shape))
            self.types[id(type_)] = found
        return found

    def attribute(self, value: Any) -> Any:
        kind = type(value)
        if kind is SymInt:
            return value.hint if self.values is None else self.values[value.index]
        if kind is Graph:
            return self.graph(value, {})
        if kind is tuple or kind is list:
            return kind(self.attribute(v) for v in value)
        if kind is dict:
            return {k: self.attribute(v) for k, v in value.items()}
        if kind is slice:
            return slice(*map(self.attribute, (value.start, value.stop, value.step)))
        return value

    def graph(self, graph: Graph, mapping: dict[Value, Value]) -> Graph:
        """`mapping`: values that stand for parameters, which the copy then does not have."""
        made = Graph(graph.name)
        for parameter in graph.parameters:
            if parameter not in mapping:
                mapping[parameter] = made.add_parameter(self.type(parameter.type), parameter.name)
        made.nodes = self.nodes(graph.nodes, mapping)
        made.outputs = [mapping.get(v, v) for v in graph.outputs]
        return made

    def nodes(self, nodes: Sequence[Node], mapping: dict[Value, Value]) -> list[Node]:
        """Copies of `nodes`; their results come into `mapping`, which has values that stand for others."""
        made = []
        for node in nodes:
            inputs = [v if v is None else mapping.get(v, v) for v in node.inputs]
            attrs = {k: self.attribute(v) for k, v in node.attrs.items()}
            copy = Node(node.op, inputs, attrs, [self.type(v.type) for v in node.outputs], node.location)
            mapping.update(zip(node.outputs, copy.outputs))
            made.append(copy)
        return made


def instantiate(graph: Graph, values: Sequence[Number], constants: dict[Value, Value]) -> Graph:
    """A copy of `graph` for the numbers `values` (of `SizeTable.resolve`).

    `constants` takes the place of some parameters.
    """
    return Numbers(values).graph(graph, dict(constants))
