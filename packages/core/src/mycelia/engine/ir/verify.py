"""Checks what every pass may rely on: values defined before use, regions closed,
types that agree with the ops.
"""

from __future__ import annotations

from collections.abc import Collection

from mycelia.engine.ir.graph import Graph, Node, Value, group_inputs
from mycelia.engine.ir.types import TensorType


class InvalidGraph(ValueError):
    """A graph that breaks an invariant; the message names the graph and the node."""


def verify(graph: Graph, hoisted: Collection[Value] = ()) -> None:
    """Raises InvalidGraph if `graph` or one of its regions breaks an invariant.

    `hoisted`: parameters of `graph` that another graph makes.
    """
    _verify(graph, graph.name, hoisted)


def _verify(graph: Graph, path: str, hoisted: Collection[Value] = ()) -> None:
    known: set[Value] = set()
    for value in graph.parameters:
        if value in known:
            raise InvalidGraph(f"graph {path}: parameter {value!r} appears twice")
        if (value.producer is not None and value not in hoisted) or value.is_constant:
            raise InvalidGraph(f"graph {path}: parameter {value!r} must have no producer and no constant")
        known.add(value)
    for position, node in enumerate(graph.nodes):
        place = f"graph {path}, node {position} ({node.op.name})" + (
            f" at {node.location}" if node.location else ""
        )
        for index, value in enumerate(node.inputs):
            if value is not None:
                _check_use(value, known, f"{place}: input {index}")
        for value in node.outputs:
            if value in known:
                raise InvalidGraph(f"{place}: output {value!r} is defined twice")
            if value.producer is not node:
                raise InvalidGraph(f"{place}: output {value!r} names another producer")
            known.add(value)
        for name, attr in node.attrs.items():
            if isinstance(attr, Graph):
                _verify(attr, f"{path}.{node.op.name}.{name}")
        _check_types(node, place)
    for index, value in enumerate(graph.outputs):
        _check_use(value, known, f"graph {path}: result {index}")


def _check_use(value: Value, known: set[Value], place: str) -> None:
    if value.is_constant:
        actual = TensorType(value.constant.dtype, tuple(value.constant.shape))
        if actual != value.type:
            raise InvalidGraph(f"{place}: constant of {actual} is declared as {value.type}")
    elif value not in known:
        raise InvalidGraph(f"{place}: {value!r} is used before it is defined, or belongs to another graph")


def _check_types(node: Node, place: str) -> None:
    types = group_inputs(node.op, [v and v.type for v in node.inputs])
    try:
        inferred = node.op.definition.infer_types(tuple(types), node.attrs)
    except Exception as error:
        raise InvalidGraph(f"{place}: {error}") from error
    declared = tuple(v.type for v in node.outputs)
    if len(inferred) != len(declared) or not all(i.accepts(d) for i, d in zip(inferred, declared)):
        expected = ", ".join(map(str, inferred))
        raise InvalidGraph(
            f"{place}: outputs are declared as ({', '.join(map(str, declared))}), the op gives ({expected})"
        )
