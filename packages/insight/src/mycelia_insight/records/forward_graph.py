"""A graph without what trains it: gradients, the optimizer, and nodes that only keep an order."""

from __future__ import annotations

import dataclasses

from mycelia_insight.records.graph import Leaf, ScopeGraph

_GRADIENTS, _OPTIMIZER = "Gradients", "optimizer-"  # how scopes of MindSpore and ours are called
_PASSED = "Load"  # reads a parameter, in an order: what it reads stands for it
_ORDER = "UpdateState"


def forward_graph(graph: ScopeGraph) -> ScopeGraph:
    """The part that computes results and losses.

    Parameters and constants stay if a node of that part takes them, in the scope of the first that does.
    """
    leaves = graph.leaves
    kept = [number for number, leaf in enumerate(leaves) if leaf.inputs and not _trains(leaf)]
    found: list[Leaf] = []
    places: dict[int, int] = {}  # in `leaves` -> in `found`
    for number in kept:
        places[number] = len(found)
        found.append(dataclasses.replace(leaves[number], inputs=[]))
    for number in kept:
        copy = found[places[number]]
        for source, control in leaves[number].inputs:
            source = _read(leaves, source)
            if source not in places:
                if leaves[source].inputs or leaves[source].kind == "operator":
                    continue  # trains, or only keeps the order
                places[source] = len(found)
                found.append(dataclasses.replace(leaves[source], scope=_placed(leaves[source], copy)))
            copy.inputs.append((places[source], control))
    return ScopeGraph(graph.name, found)


def _trains(leaf: Leaf) -> bool:
    if leaf.type in (_PASSED, _ORDER):
        return True
    parts = leaf.scope.split("/")
    return parts[0] == _GRADIENTS or any(part.startswith(_OPTIMIZER) for part in parts)


def _read(leaves: list[Leaf], source: int) -> int:
    while leaves[source].type == _PASSED and leaves[source].inputs:
        source = leaves[source].inputs[0][0]
    return source


def _placed(leaf: Leaf, user: Leaf) -> str:
    return user.scope if _trains(leaf) else leaf.scope
