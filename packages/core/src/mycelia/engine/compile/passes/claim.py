"""Parts of a graph that the backend compiles as a whole become one node each, `subgraph`."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

from mycelia.engine.backends.base import Backend
from mycelia.engine.base import errors
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.walk import copy_nodes
from mycelia.engine.ops.control_flow.device import subgraph


def run(graph: Graph, *, backend: Backend) -> int:
    """Joins the groups that `backend` claims.

    Errors: ValueError if a node is not of `graph` or in two groups, or if a group cannot run as a whole.
    """
    groups = [set(group) for group in backend.claims(graph) if group]
    if not groups:
        return 0
    _check(graph, groups, backend.name)
    for group in groups:
        _fix_sizes(group)
    _join(graph, groups, backend.name)
    return len(groups)


def _check(graph: Graph, groups: Sequence[Collection[Node]], backend: str) -> None:
    claimed = [node for group in groups for node in group]
    nodes = set(graph.nodes)
    for problem, wrong in (
        ("is not in the graph", [n for n in claimed if n not in nodes]),
        ("is claimed twice", [n for n in set(claimed) if claimed.count(n) > 1]),
        ("has effects or regions", [n for n in claimed if n.has_effect or n.regions]),
    ):
        if wrong:
            raise errors.value_error(f"backend {backend}", f"claims: {wrong[0].op.name} {problem}")


def _fix_sizes(group: Collection[Node]) -> None:
    """What is compiled as a whole has its sizes fixed: open ones are tied to their present values."""
    for node in group:
        for value in (*node.inputs, *node.outputs):
            if value is not None:
                tuple(int(n) for n in value.type.shape)


def _join(graph: Graph, groups: Sequence[Collection[Node]], backend: str) -> None:
    """Replaces each group by a node, in an order in which everything is computed before it is read."""
    group_of = {node: i for i, group in enumerate(groups) for node in group}
    units: dict[
        object, list[Node]
    ] = {}  # what runs as a whole, by the number of the group or the node itself
    for node in graph.nodes:
        units.setdefault(group_of.get(node, node), []).append(node)
    renamed: dict[Value, Value] = {}
    ordered: list[Node] = []
    for key in _in_order(graph, units, group_of, backend):
        ordered += [_joined(graph, units[key], backend, renamed)] if isinstance(key, int) else units[key]
    for node in ordered:
        node.inputs = [renamed.get(v, v) for v in node.inputs]
    graph.nodes = ordered
    graph.outputs = [renamed.get(v, v) for v in graph.outputs]


def _in_order(
    graph: Graph, units: dict[object, list[Node]], group_of: dict[Node, int], backend: str
) -> Iterator[object]:
    """The keys of `units` in an order in which they may run, as near to the present one as can be."""
    last = {}
    for place, node in enumerate(graph.nodes):
        last[group_of.get(node, node)] = place
    at = {place: key for key, place in last.items()}
    waiting: dict[object, set[object]] = {key: set() for key in units}
    waiters: dict[object, list[object]] = {key: [] for key in units}
    effects = [node for node in graph.nodes if node.has_effect]
    before = dict(zip(effects[1:], effects))  # these keep their order
    for key, members in units.items():
        needed = {v.producer for node in members for v in node.inputs if v is not None} - {None}
        needed.update(before[node] for node in members if node in before)
        waiting[key] = {group_of.get(node, node) for node in needed} - {key}
        for other in waiting[key]:
            waiters[other].append(key)
    ready = [last[key] for key in units if not waiting[key]]
    heapq.heapify(ready)
    while ready:
        key = at.pop(heapq.heappop(ready))
        yield key
        for other in waiters[key]:
            waiting[other].discard(key)
            if not waiting[other]:
                heapq.heappush(ready, last[other])
    if at:
        stuck = next(key for key in at.values() if isinstance(key, int))
        names = sorted({node.op.name for node in units[stuck]})
        problem = f"claims: a group of {names} needs what others compute from its own results"
        raise errors.value_error(f"backend {backend}", problem)


def _joined(graph: Graph, members: Sequence[Node], backend: str, renamed: dict[Value, Value]) -> Node:
    """The node that stands for `members`; what it gives is put into `renamed`."""
    group = set(members)
    inside = {v for node in members for v in node.outputs}
    given = list(dict.fromkeys(
        v for node in members for v in node.inputs if v is not None and v not in inside and not v.is_constant
    ))  # fmt: skip
    wanted = {v for node in graph.nodes if node not in group for v in node.inputs} | set(graph.outputs)
    made = [v for node in members for v in node.outputs if v in wanted]
    part = Graph(f"{graph.name}.{backend}")
    mapping = {v: part.add_parameter(v.type, v.name) for v in given}
    part.nodes = copy_nodes(members, mapping)
    part.outputs = [mapping[v] for v in made]
    node = Node(subgraph, given, {"graph": part, "backend": backend}, [v.type for v in made])
    renamed.update(zip(made, node.outputs))
    return node
