"""Operators of a graph with what its attribute `precision_flag` says, those of reduced precision first."""

from __future__ import annotations

from dataclasses import dataclass

from mycelia_insight.records.graph import Leaf, ScopeGraph

_FLAG = "precision_flag"


@dataclass(frozen=True, slots=True)
class Operator:
    """number: its place among the operators of the graph, from 1, as MindInsight counts; leaf: which leaf."""

    number: int
    leaf: int
    flag: str

    @property
    def is_reduced(self) -> bool:
        return "reduce" in self.flag


def operators(graph: ScopeGraph) -> list[Operator]:
    """All operators: those whose flag says reduced, other flags, none, each in the order of the graph."""
    found: list[Operator] = []
    for at, leaf in enumerate(graph.leaves):
        if leaf.kind == "operator":
            flag = leaf.attributes().get(_FLAG, "").strip('"')
            found.append(Operator(len(found) + 1, at, flag))
    return sorted(found, key=lambda one: 0 if one.is_reduced else 1 if one.flag else 2)


def end_text(leaf: Leaf) -> str:
    """A node with what it gives."""
    dtype, shape = leaf.type_of()
    sizes = "" if shape is None else f"[{', '.join('?' if n < 0 else str(n) for n in shape)}]"
    return f"{leaf.name} {dtype}{sizes}".rstrip()
