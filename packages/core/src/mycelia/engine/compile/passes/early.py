"""Sums over processes start as soon as what they add is there, so that they are made beside what follows.

Captured code starts them behind the whole backward pass. Each moves up behind the last of its inputs, with
what only prepares these: casts, divisions by a loss scale, new shapes. Their order stays, which all processes
share; other effects are passed, since messages of started sums are a lane of their own. Sums that are taken
before the next ones are started, so that few are on their way, move up with these.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from mycelia.engine.compile.draft import VIEW, Draft, reorder
from mycelia.engine.ir.graph import Graph, Node, Value

_START, _FINISH = "start_sums", "finish_sums"
_FUSED = ("fused_map",)
_KERNEL = 0  # kind of a Plan


def run(graph: Graph, draft: Draft) -> int:
    """Returns how many places changed."""
    starts = [node for node in graph.nodes if node.op.name == _START]
    if not starts:
        return 0
    lane = [node for node in graph.nodes if node.op.name in (_START, _FINISH)]
    del lane[lane.index(starts[-1]) + 1 :]  # the last sums are taken when all has been started
    moving = _preparing(graph, draft, starts)
    moving.update(lane)
    waits: Counter[Node] = Counter()
    followers: dict[Node, list[Node]] = defaultdict(list)
    inside, lane_before = set(graph.nodes), []
    for node in graph.nodes:
        if node in moving:
            before = {v.producer for v in node.inputs if v is not None and v.producer in inside}
            if node.op.name in (_START, _FINISH):
                before.update(lane_before)
                lane_before = [node]
            for other in before:
                followers[other].append(node)
            waits[node] = len(before)
    order: list[Node] = []
    placed: set[Node] = set()
    for node in graph.nodes:
        ready = [] if node in placed or waits[node] else [node]
        while ready:
            order.append(ready[0])
            placed.add(ready[0])
            for other in followers[ready.pop(0)]:
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)
    return reorder(graph, order)


def _preparing(graph: Graph, draft: Draft, starts: list[Node]) -> set[Node]:
    """The starts, and nodes that do little, and that for nothing but the sums."""
    given = {value for node in starts for value in node.inputs}  # which is seen there, but by whom else?
    seen = {u for u, _ in draft.updates}.union(draft.seen() - given, graph.outputs)
    found = set(starts)
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None:
                readers[value].append(node)
    for node in reversed(graph.nodes):
        mine = [reader for value in node.outputs for reader in readers[value]]
        if mine and found.issuperset(mine) and seen.isdisjoint(node.outputs) and _is_light(node, draft):
            found.add(node)
    return found


def _is_light(node: Node, draft: Draft) -> bool:
    plan, definition = draft.plans.get(node), node.op.definition
    if plan is None or plan.kind not in (_KERNEL, VIEW) or node.has_effect or definition.updates:
        return False
    return bool(definition.elementwise or definition.moves or definition.view or node.op.name in _FUSED)
