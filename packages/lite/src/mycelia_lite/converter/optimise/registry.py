"""The table of rules. A rule has the name of MindSpore Lite's pass, by which it is switched off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.pattern import Match, Op, match

Pass = Callable[[FileGraph], int]
PASSES: dict[str, list[Pass]] = {}


def fusion(name: str, *patterns: Op) -> Callable:
    """Decorator: ``function(graph, match) -> bool`` is a rule for what matches one of the patterns.

    It changes the graph and returns True, or leaves it alone and returns False. Results that are not float32
    are not offered to it.
    """
    kinds = {kind for p in patterns for kind in p.kinds}

    def enter(function: Callable[[FileGraph, Match], bool]) -> Callable:
        def at(graph: FileGraph, node: FileNode) -> bool:
            if not graph.is_float(node.output):
                return False
            return any(function(graph, found) for p in patterns for found in match(graph, p, node))

        PASSES.setdefault(name, []).append(over_nodes(kinds, at))
        return function

    return enter


def node_fusion(name: str, *kinds: str) -> Callable:
    """Decorator: ``function(graph, node) -> bool`` is a rule for nodes of these kinds."""

    def enter(function: Callable[[FileGraph, FileNode], bool]) -> Callable:
        PASSES.setdefault(name, []).append(over_nodes(set(kinds), function))
        return function

    return enter


def graph_fusion(name: str) -> Callable:
    """Decorator: ``function(graph) -> int`` changes the whole graph; how often it did."""

    def enter(function: Pass) -> Pass:
        PASSES.setdefault(name, []).append(function)
        return function

    return enter


def over_nodes(kinds: set[str], function: Callable[[FileGraph, FileNode], bool]) -> Pass:
    """A pass that offers each node of these kinds to `function`."""

    def run(graph: FileGraph) -> int:
        fired = 0
        for node in [n for n in graph.nodes if n.kind in kinds]:
            if node.outputs and graph.maker.get(node.outputs[0]) is node:  # it may be gone
                fired += function(graph, node)
        return fired

    return run


@dataclass(frozen=True)
class Fired:
    """One use of a rule: its name and the node that it left."""

    rule: str
    node: str
