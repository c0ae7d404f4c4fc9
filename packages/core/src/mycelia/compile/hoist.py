"""What depends only on Parameters that the graph does not update, and on constants, is computed once.

Packed weights, folded normalization, transposed matrices: these nodes become a prologue, a program of its own
whose results are kept and computed again when one of the Parameters has changed. In a loop the same is done
with what does not depend on the values that it carries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mycelia.ir.graph import Graph, Node, Value

_SMALL = 1 << 16  # bytes: such results are kept even if they are larger than what they come from
_GROWTH = 4  # more than that, a result is made again rather than kept: a broadcast, a one-hot table


class Split(NamedTuple):
    """`prologue` takes the parameters at `inputs` of the graph and gives `values`, which `main` uses."""

    prologue: Graph
    inputs: list[int]
    values: list[Value]
    main: Graph


def split(graph: Graph, stable: Collection[int]) -> Split | None:
    """Takes out of `graph` what depends only on constants and the parameters at `stable`."""
    steady = {graph.parameters[i] for i in stable}
    hoisted: list[Node] = []
    views: set[Node] = set()
    for node in graph.nodes:
        if not all(v is None or v.is_constant or v in steady for v in node.inputs):
            continue
        if node.op.definition.view:  # costs nothing: done on either side
            views.add(node)
            steady.update(node.outputs)
        elif _is_worth_keeping(node):
            hoisted.append(node)
            steady.update(node.outputs)
    moved = set(hoisted)
    rest = [node for node in graph.nodes if node not in moved]
    used = {v for node in rest if node not in views for v in node.inputs} | set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in views and node.outputs[0] in used:
            used.add(node.inputs[0])
    values = [v for node in hoisted for v in node.outputs if v in used]
    if not values:
        return None
    needed = set(values)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if (node in moved or node in views) and any(v in needed for v in node.outputs):
            nodes.append(node)
            needed.update(v for v in node.inputs if v is not None)
    inputs = [i for i, v in enumerate(graph.parameters) if v in needed]
    prologue, main = Graph(f"{graph.name}.prologue"), Graph(graph.name)
    prologue.parameters = [graph.parameters[i] for i in inputs]
    prologue.nodes, prologue.outputs = nodes[::-1], values
    main.parameters, main.outputs = [*graph.parameters, *values], graph.outputs
    main.nodes = [node for node in rest if node not in views or node.outputs[0] in used]
    return Split(prologue, inputs, values, main)


def _is_worth_keeping(node: Node) -> bool:
    definition = node.op.definition
    if node.has_effect or node.regions or definition.dynamic or definition.composed:
        return False
    if not all(v is None or v.type.is_static for v in (*node.inputs, *node.outputs)):
        return False
    made = sum(v.type.nbytes for v in node.outputs)
    read = sum(v.type.nbytes for v in node.inputs if v is not None)
    return made <= max(_SMALL, _GROWTH * read)
