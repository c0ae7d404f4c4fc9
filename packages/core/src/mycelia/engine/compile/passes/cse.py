"""Common subexpressions: equal nodes on equal inputs are computed once.

In a graph that may be differentiated, casts stay apart. Their gradients are rounded, to integers and bools
even, and the sum of two rounded gradients is not the rounded sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.walk import substitute

_SMALL = 16  # elements; larger constants are compared by identity only
_PLAIN = (int, bool, str, type(None))


def run(graph: Graph) -> int:
    """For graphs that may be differentiated; returns how many nodes went."""
    return _merge(graph, lambda node: node.op.name == "cast")


def run_device(graph: Graph) -> int:
    """For lowered graphs."""
    return _merge(graph, lambda node: False)


def _merge(graph: Graph, stays: Callable[[Node], bool]) -> int:
    same: dict[Value, Value] = {}
    first: dict[Any, Node] = {}
    kept: list[Node] = []
    removed = 0
    for node in graph.nodes:
        node.inputs = [same.get(v, v) for v in node.inputs]
        if node.has_effect or stays(node):
            kept.append(node)
            continue
        key = (
            node.op.name,
            tuple(map(value_key, node.inputs)),
            tuple((k, hashable(a)) for k, a in node.attrs.items()),
        )
        earlier = first.setdefault(key, node)
        if earlier is node:
            kept.append(node)
        else:
            same.update(zip(node.outputs, earlier.outputs))
            removed += 1
    graph.nodes = kept
    substitute(graph, same)
    return removed


def value_key(value: Value | None) -> Any:
    """Equal keys mean equal values: small constants by content, bit for bit."""
    if value is None or not value.is_constant or not 0 <= value.type.size <= _SMALL:
        return value
    return value.type, value.constant._bits().tobytes()


def hashable(attr: Any) -> Any:
    """A hashable stand-in; values that are equal in Python but differ in type (1, 1.0, True) or sign of zero
    differ.
    """
    kind = type(attr)
    if kind in _PLAIN:
        return kind, attr
    if kind is SymInt:
        return SymInt, attr.index
    if isinstance(attr, (list, tuple)):
        return tuple(map(hashable, attr))
    try:
        hash(attr)
    except TypeError:
        return id(attr)
    return type(attr), repr(attr) if isinstance(attr, float) else attr
