"""A `cond` whose predicate is a constant becomes the branch that it takes."""

from __future__ import annotations

from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.walk import inline


def run(graph: Graph) -> int:
    known = [n for n in graph.nodes if n.op.name == "cond" and n.inputs[-1].is_constant]
    for node in known:
        taken = node.attrs["then" if node.inputs[-1].constant else "otherwise"]
        inline(graph, node, taken, node.inputs[:-1])
    return len(known)
