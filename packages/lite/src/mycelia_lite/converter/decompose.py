"""Ops without a rule, as graphs of ops that have one."""

from __future__ import annotations

from collections.abc import Collection

from mycelia.io.compositions import composed
from mycelia.ir import Graph, Node, TensorType, Value
from mycelia.ir.graph import group_inputs
from mycelia.ir.walk import substitute
from mycelia_lite.converter.wide import composed_wide


def _moved(node: Node) -> list[Value] | None:
    """Results of an op that only moves elements of constants, as constants; None if it is no such op."""
    given = [v for v in node.inputs if v is not None]
    if not node.op.definition.moves or not given or not all(v.is_constant for v in given):
        return None
    tensors = group_inputs(node.op, [None if v is None else v.constant for v in node.inputs])
    made = node.op(*tensors, *(node.attrs[a.name] for a in node.op.definition.attrs))
    made = made if isinstance(made, tuple) else (made,)
    return [Value(TensorType(t.dtype, t.shape), name=given[0].name, constant=t) for t in made]


def expand(graph: Graph, known: Collection[str]) -> list[str]:
    """Replace, in place, nodes of ops that are not known by what they are composed of; those of nothing.

    Errors: ConversionError for an op in float64 that can be computed in float32 alone.
    """
    missing = {name for node in graph.nodes for region in node.regions for name in expand(region, known)}
    while True:
        nodes, results = [], {}
        for node in graph.nodes:
            node.inputs = [results.get(v, v) for v in node.inputs]
            if (moved := _moved(node)) is not None:
                results.update(zip(node.outputs, moved, strict=True))
                continue
            inner = composed_wide(node)
            if inner is None and node.op.name not in known and node.op.name not in missing:
                inner = composed(node)
            if inner is None:
                if node.op.name not in known:
                    missing.add(node.op.name)
                nodes.append(node)
                continue
            given = [v for v in node.inputs if v is not None]
            substitute(inner, dict(zip(inner.parameters, given, strict=True)))
            for made in inner.nodes:
                made.location = node.location
            nodes += inner.nodes
            results.update(zip(node.outputs, inner.outputs, strict=True))
        graph.nodes = nodes
        if not results:
            return sorted(missing)
        substitute(graph, results)
