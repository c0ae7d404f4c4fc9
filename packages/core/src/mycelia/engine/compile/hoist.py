"""What depends only on Parameters that the graph does not update, and on constants, is computed once.

Packed weights, folded normalization, transposed matrices: these nodes become prologues, programs of their
own whose results are kept and computed again when one of the Parameters has changed. Programs that need the
same of the same Parameters share it, so weights are packed once, whatever sizes and functions they are used
with. In a loop the same is done with what does not depend on the values that it carries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.sizes import is_symbolic

_SMALL = 1 << 16  # bytes: such results are kept even if they are larger than what they come from
_GROWTH = 4  # more than that, a result is made again rather than kept: a broadcast, a one-hot table


class Part(NamedTuple):
    """`prologue` takes the parameters at `inputs` of the graph and gives `values`."""

    prologue: Graph
    inputs: list[int]
    values: list[Value]


class Split(NamedTuple):
    """`main` takes the values of `parts`, one after the other, behind the parameters of the graph."""

    parts: list[Part]
    main: Graph


def split(graph: Graph, frozen: Collection[int]) -> Split | None:
    """Takes out of `graph` what depends only on constants and the parameters at `frozen`. What has nothing in
    common is a part of its own, so that other programs may share it.
    """
    _, hoisted, views = frozen_part(graph, frozen)
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
    parts = [_part(graph, group, needed, values) for group in _groups(nodes[::-1])]
    main = Graph(graph.name)
    main.parameters = [*graph.parameters, *(v for part in parts for v in part.values)]
    main.outputs = graph.outputs
    main.nodes = [node for node in rest if node not in views or node.outputs[0] in used]
    return Split(parts, main)


def frozen_part(graph: Graph, frozen: Collection[int]) -> tuple[set[Value], list[Node], set[Node]]:
    """The values that depend only on constants and the parameters at `frozen` and are worth keeping, the
    nodes that compute them, and those nodes that are views, which cost nothing on either side.
    """
    values = {graph.parameters[i] for i in frozen}
    hoisted: list[Node] = []
    views: set[Node] = set()
    for node in graph.nodes:
        if not all(v is None or v.is_constant or v in values for v in node.inputs):
            continue
        if node.op.definition.view:
            views.add(node)
        elif _is_worth_keeping(node):
            hoisted.append(node)
        else:
            continue
        values.update(node.outputs)
    return values, hoisted, views


def _groups(nodes: list[Node]) -> list[list[Node]]:
    """The nodes that depend on each other, together."""
    group = {node: [node] for node in nodes}
    for node in nodes:
        for value in node.inputs:
            mine, other = group[node], group.get(value.producer) if value is not None else None
            if other is not None and other is not mine:
                other += mine
                group.update((member, other) for member in mine)
    places = {node: i for i, node in enumerate(nodes)}
    found = {id(members): members for members in group.values()}
    return [sorted(members, key=places.__getitem__) for members in found.values()]


def _part(graph: Graph, nodes: list[Node], needed: set[Value], values: list[Value]) -> Part:
    read = {v for node in nodes for v in node.inputs}
    made = {v for node in nodes for v in node.outputs}
    inputs = [i for i, v in enumerate(graph.parameters) if v in read and v in needed]
    prologue = Graph(f"{graph.name}.prologue")
    prologue.parameters = [graph.parameters[i] for i in inputs]
    prologue.nodes, prologue.outputs = nodes, [v for v in values if v in made]
    return Part(prologue, inputs, prologue.outputs)


def _is_worth_keeping(node: Node) -> bool:
    definition = node.op.definition
    if node.has_effect or node.regions or definition.dynamic or definition.composed:
        return False
    if not all(v is None or v.type.is_static for v in (*node.inputs, *node.outputs)):
        return False
    made = sum(v.type.nbytes for v in node.outputs)
    read = sum(v.type.nbytes for v in node.inputs if v is not None)
    if is_symbolic(made):  # kept for each size
        return made <= _SMALL
    return made <= max(_SMALL, _GROWTH * read)
