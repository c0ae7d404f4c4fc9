"""Constant folding: nodes whose inputs are all constants are computed once."""

from __future__ import annotations

from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.interpret import apply
from mycelia.engine.ir.sizes import is_symbolic
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import substitute

LARGEST = 1 << 14  # bytes; a larger result would cost more memory than computing it costs time


def run(graph: Graph) -> int:
    folded: dict[Value, Value] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        node.inputs = [folded.get(v, v) for v in node.inputs]
        if not _is_foldable(node):
            kept.append(node)
            continue
        outputs = apply(node.op, [v and v.constant for v in node.inputs], node.attrs)
        for value, tensor in zip(node.outputs, outputs):
            folded[value] = Value(TensorType(tensor.dtype, tensor.shape), constant=tensor._detach())
    graph.nodes = kept
    substitute(graph, folded)
    return len(folded)


def _is_foldable(node: Node) -> bool:
    if node.has_effect or node.regions:
        return False
    if not all(v is None or v.is_constant for v in node.inputs) or is_symbolic(node.attrs):
        return False
    return all(
        v.type.is_static and not is_symbolic(v.type) and v.type.nbytes <= LARGEST for v in node.outputs
    )
