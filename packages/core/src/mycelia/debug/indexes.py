"""Records of a dump by the names of operators, and nodes by what they read: each made in one pass, so that a
question about one node looks at what belongs to it alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mycelia.debug.reading.folders import Record

if TYPE_CHECKING:
    from mycelia.debug.analyzer import Node

Graph = tuple[int, int]  # rank, number of the graph


class RecordIndex:
    """`records`: those of each (rank, graph, iteration), in order of execution."""

    def __init__(self, records: Mapping[tuple[int, int, int], Sequence[Record]]) -> None:
        self._named: dict[Graph, dict[int, dict[str, list[tuple[int, Record]]]]] = {}
        for (rank, graph, iteration), found in sorted(records.items()):
            named = self._named.setdefault((rank, graph), {}).setdefault(iteration, {})
            for place, record in enumerate(found):
                named.setdefault(record.name, []).append((place, record))

    def find(
        self, graph: Graph, names: Iterable[str], iterations: Collection[int] | None = None
    ) -> Iterator[tuple[int, Record]]:
        """(iteration, record) of all with one of these names, by iteration and in order of execution."""
        steps = self._named.get(graph, {})
        names = set(names)
        wanted = steps if iterations is None else sorted(steps.keys() & set(iterations))
        for iteration in wanted:
            found = [entry for name in names for entry in steps[iteration].get(name, ())]
            for _, record in sorted(found, key=lambda entry: entry[0]):
                yield iteration, record

    def operators(self, graph: Graph) -> set[tuple[str, str]]:
        """(name, type) of all that was dumped of a graph."""
        steps = self._named.get(graph, {}).values()
        return {(name, r.kind) for named in steps for name, found in named.items() for _, r in found}


class NodeIndex:
    """`nodes`: all of a dump, in order of execution."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._place: dict[Node, int] = {}
        self._named: dict[str, list[Node]] = defaultdict(list)
        self._readers: dict[tuple[Graph, str], list[Node]] = defaultdict(list)
        for node in nodes:
            self._place[node] = len(self._place)
            self._named[node.name].append(node)
            for feed in dict.fromkeys(node.feeds):
                self._readers[(node.rank, node.graph), feed].append(node)

    def read_by(self, node: Node) -> list[Node]:
        """The nodes that `node` reads, in order of execution."""
        found = [
            n for feed in dict.fromkeys(node.feeds) for n in self._named.get(feed, ())
            if (n.rank, n.graph) == (node.rank, node.graph)
        ]  # fmt: skip
        return sorted(found, key=self._place.__getitem__)

    def readers_of(self, node: Node) -> list[Node]:
        """The nodes that read `node`, in order of execution."""
        return list(self._readers.get(((node.rank, node.graph), node.name), ()))

    def on_other_ranks(self, node: Node) -> list[Node]:
        """The nodes of this name on other ranks, in any of their graphs."""
        return [n for n in self._named.get(node.name, ()) if n.rank != node.rank]
