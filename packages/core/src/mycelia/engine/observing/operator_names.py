"""What operators are called: scope, type, and a number that tells those of one type in a scope apart.

In a graph that is the number in the graph as it was captured, before any pass: `number_operators` notes it in
the origins of nodes, which passes hand on. So an operator has one name whatever passes leave out, join or put
into another order, and the one that it has in eager mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from mycelia.engine.base.errors import Place
from mycelia.engine.base.origins import ROOT, Numbered, Origin
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.ops.type_names import type_name


class Operator:
    """One use of an op, in a graph or in eager calls.

    `type`: MindSpore's name of the operator (`Conv2D`); `name`: its full name with scope, ending in ``-op``
    and a number; `origin`: the user's lines, None if it comes from none; `attrs`: the op's attributes.
    """

    __slots__ = ("attrs", "made_by", "name", "numbers", "op", "origin", "parts", "type")

    def __init__(self, op: Any, name: str, origin: Place | None, attrs: dict[str, Any], kind: str) -> None:
        self.op, self.name, self.origin, self.attrs, self.type = op, name, origin, attrs, kind
        self.parts: tuple[Operator, ...] = ()  # of a fused operator: what it was made of, in order
        self.made_by = ""  # of a fused operator: the pass of the compiler
        self.numbers: dict[int, Any] = {}  # of an eager call: inputs that are Python numbers, by position

    @property
    def stack(self) -> tuple[tuple[str, int, str], ...]:
        """(file, line, function) of the user's lines that lead to it, the innermost first."""
        place = self.origin
        if place is None:
            return ()
        return place.stack if isinstance(place, Origin) else ((place.file, place.line, place.function),)

    def __repr__(self) -> str:
        return f"Operator({self.name})"


class Names:
    """Gives eager operators their full names, as they come."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def operator(self, op: Any, origin: Place | None, attrs: dict[str, Any], rank: int) -> Operator:
        kind = type_name(op, rank)
        scope = origin.scope if isinstance(origin, Origin) else ROOT
        number = self.counts[scope, kind]
        self.counts[scope, kind] += 1
        return Operator(op, f"{scope}/{kind}-op{number}", origin, attrs, kind)


class _Numbers:
    """Which numbers operators of a type have in a scope."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str, int]] = set()
        self._next: Counter[tuple[str, str]] = Counter()

    def take(self, scope: str, kind: str, number: int) -> bool:
        """Whether `number` was free; it is no more."""
        key = scope, kind, number
        if key in self._taken:
            return False
        self._taken.add(key)
        return True

    def next(self, scope: str, kind: str) -> int:
        """The least one that is free; it is no more."""
        while not self.take(scope, kind, number := self._next[scope, kind]):
            self._next[scope, kind] += 1
        return number


def number_operators(graph: Graph) -> None:
    """Notes in the origin of each node of a graph that was just captured which operator of it that is. Those
    that come from a graph captured before, as a gradient's do, keep the numbers that they have.
    """
    nodes, numbers = list(operating(graph)), _Numbers()
    known = {
        node: node.location.numbered
        for node in nodes
        if isinstance(node.location, Origin)
        and node.location.numbered is not None
        and numbers.take(*_label(node))
    }
    free = max([len(nodes), *(max(n.number, n.free + n.place) + 1 for n in known.values() if n)])
    for place, node in enumerate(nodes):
        origin = node.location
        if node in known or not isinstance(origin, Origin):  # others say where in a file it comes from
            continue
        scope, kind, _ = _label(node)
        node.location = origin.of_operator(Numbered(kind, numbers.next(scope, kind), place, free))


def named_operators(nodes: Sequence[Node]) -> list[Operator]:
    """The operators that nodes of one graph are, in their order, each with a name of its own."""
    numbers, found = _Numbers(), dict[int, int]()
    labels = [_label(node) for node in nodes]
    for place, (scope, kind, number) in enumerate(labels):
        if number is not None and numbers.take(scope, kind, number):
            found[place] = number
    for place, (scope, kind, _) in enumerate(labels):
        if place not in found:
            found[place] = numbers.next(scope, kind)
    return [
        Operator(node.op, f"{scope}/{kind}-op{found[place]}", node.location, node.attrs, kind)
        for place, (node, (scope, kind, _)) in enumerate(zip(nodes, labels))
    ]


def operators_of(graph: Graph) -> dict[Node, Operator]:
    """The operators of a graph and its regions, named, in order of execution."""
    nodes = list(operating(graph))
    return dict(zip(nodes, named_operators(nodes)))


def operating(graph: Graph) -> Iterator[Node]:
    """The nodes that compute, those of branches and loops where these stand."""
    for node in graph.nodes:
        if node.regions:
            for region in node.regions:
                yield from operating(region)
        else:
            yield node


def _label(node: Node) -> tuple[str, str, int | None]:
    """Scope, type, and the number in the captured graph, None if nobody numbered it."""
    first = node.inputs[0] if node.inputs else None
    kind = type_name(node.op, 0 if first is None else len(first.type.shape))
    place = node.location
    return (place.scope, kind, place.number_of(kind)) if isinstance(place, Origin) else (ROOT, kind, None)
