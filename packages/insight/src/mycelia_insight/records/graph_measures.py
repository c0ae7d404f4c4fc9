"""What the nodes of a graph cost, and which were not finite, in whatever is shown as one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.graph_outputs import running
from mycelia_insight.records.node_measurements import MOST_WITHIN, NodeMeasurements, NotFinite, Within

_ARGUMENT = re.compile(r"argument(\d{1,9})")  # what core calls one in a graph
_NEVER = 1 << 53  # a step that never was


class Times:
    """Of a graph's nodes in a step; sums over a branch are differences of running sums."""

    def __init__(self, graph: ScopeGraph, measured: NodeMeasurements) -> None:
        self._graph, self._measured = graph, measured
        self._branches = graph.branches
        names = [graph.leaves[at].name for at in graph.order.tolist()]
        spent = [measured.nanoseconds.get(name) for name in names]
        #: How many nodes of the graph have a time.
        self.timed = sum(one is not None for one in spent)
        self._spent = running(np.array([one or 0 for one in spent], object))
        self._known = running(np.array([one is not None for one in spent], np.int64))
        self._fused = running(np.array([name in measured.fused for name in names], np.int64))

    def nanoseconds(self, number: int) -> int | None:
        """Of all nodes in a branch; None if none has a time of its own."""
        branch = self._branches[number]
        if self._known[branch.begin] == self._known[branch.end]:
            return None
        return int(self._spent[branch.end] - self._spent[branch.begin])

    def fused(self, number: int) -> int:
        """How many nodes in a branch the compiler fused with others, which have their time."""
        branch = self._branches[number]
        return int(self._fused[branch.end] - self._fused[branch.begin])

    def owner(self, number: int) -> str:
        """The full name of the node that has the time of a leaf; "" if it has its own, or none."""
        leaf = self._graph.leaf(number)
        return "" if leaf is None else self._measured.fused.get(leaf.name, "")


class Faults:
    """Nodes whose outputs were not finite. `found`: by the numbers of leaves."""

    def __init__(self, graph: ScopeGraph, found: Mapping[int, NotFinite]) -> None:
        self._branches = graph.branches
        self._rows = rows = [found.get(at) for at in graph.order.tolist()]
        self._steps = np.array([row.step if row else _NEVER for row in rows], np.int64)
        self._sums = {
            name: running(np.array([int(getattr(row, name)) if row else 0 for row in rows], object))
            for name in ("nan", "inf", "negative_inf", "is_first")
        }
        self._bad = running(np.array([row is not None for row in rows], np.int64))

    def told(self, number: int) -> dict[str, Any] | None:
        """Of a branch: how many nodes, in how many of them it began, the first step, elements by kind, and,
        if it is one node, what is `within`.
        """
        branch = self._branches[number]
        nodes = int(self._bad[branch.end] - self._bad[branch.begin])
        if not nodes:
            return None
        sums = {name: int(one[branch.end] - one[branch.begin]) for name, one in self._sums.items()}
        return {
            "nodes": nodes, "first": sums["is_first"], "nan": sums["nan"], "inf": sums["inf"],
            "-inf": sums["negative_inf"], "step": int(self._steps[branch.begin : branch.end].min()),
            "within": self._within(branch.begin) if branch.end - branch.begin == 1 else [],
        }  # fmt: skip

    def _within(self, place: int) -> list[dict[str, Any]]:
        row = self._rows[place]
        return [
            {
                "name": one.name,
                "first": one.is_first,
                "nan": one.nan,
                "inf": one.inf,
                "-inf": one.negative_inf,
            }
            for one in (row.within if row else ())
        ]


def faults_of_training(graph: ScopeGraph, measured: NodeMeasurements) -> dict[int, NotFinite]:
    """What a training noted, by the numbers of leaves."""
    noted = measured.nonfinite or {}
    return {at: noted[leaf.name] for at, leaf in enumerate(graph.leaves) if leaf.name in noted}


def faults_of_dump(graph: ScopeGraph, dumped: Mapping[str, NotFinite]) -> dict[int, NotFinite]:
    """What a dump has, by the numbers of leaves; a node with branches or a loop has what is within."""
    known, holders = _leaves_by_dumped_name(graph), _holders(graph)
    found = {known[name]: one for name, one in dumped.items() if name in known}
    inner: dict[int, list[tuple[str, NotFinite]]] = {}
    for name, one in dumped.items():
        if name not in known and name in holders:
            inner.setdefault(holders[name], []).append((name, one))
    for at, rows in inner.items():
        rows.sort(key=lambda row: not row[1].is_first)
        within = [Within(name, one.nan, one.inf, one.negative_inf, one.is_first) for name, one in rows]
        found[at] = NotFinite(
            min(one.step for _, one in rows),
            *(sum(getattr(one, kind) for one in within) for kind in ("nan", "inf", "negative_inf")),
            is_first=any(one.is_first for one in within),
            within=tuple(within[:MOST_WITHIN]),
        )
    return found


def _holders(graph: ScopeGraph) -> dict[str, int]:
    """Operators of branches and loops, by their full names -> the leaf that holds them."""
    return {
        name: at
        for at, leaf in enumerate(graph.leaves)
        if leaf.kind == "operator"
        for name in leaf.attributes().get("operators", "").strip('"').split(", ")
        if name
    }


def _leaves_by_dumped_name(graph: ScopeGraph) -> dict[str, int]:
    """Leaves by their full names and by what dumps call them: operators as core's graphs tell, Parameters by
    their own names, arguments `inputs0`, `inputs1`, ... in their order.
    """
    found: dict[str, int] = {}
    arguments: dict[int, int] = {}
    for at, leaf in enumerate(graph.leaves):
        found.setdefault(leaf.name, at)
        if leaf.kind == "operator":
            operator = leaf.attributes().get("operator", "").strip('"')
            if operator:
                found.setdefault(operator if "/" in operator else f"{leaf.scope}/{operator}", at)
        elif leaf.kind == "parameter":
            name = leaf.name.removeprefix(f"{leaf.scope}/")
            found.setdefault(name, at)
            if place := _ARGUMENT.fullmatch(name):
                arguments.setdefault(int(place[1]), at)
    for number, place in enumerate(sorted(arguments)):
        found.setdefault(f"inputs{number}", arguments[place])
    return found
