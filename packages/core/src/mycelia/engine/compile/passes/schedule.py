"""The order in which the nodes of a program run, and which updates are written straight into their target.

An update writes into its Parameter's own memory when nothing reads the old value afterwards, and when nothing
can fail any more: after an error all Parameters are what they were. It runs as soon as that holds, since a
gradient that is used up makes room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mycelia.engine import _C
from mycelia.engine.compile.draft import Draft, reorder, view_bases
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ops.define import LIST

_KERNEL, _VIEW = 0, 1  # kinds of a Plan
_IN_PLACE = 1

Plans = dict[Node, _C.Plan | None]


def run(graph: Graph, draft: Draft) -> int:
    """Returns how many nodes moved. Decides which updates are in place."""
    nodes, draft.in_place = arrange(graph, draft.plans, draft.outside, draft.updates)
    return reorder(graph, nodes)


def arrange(
    graph: Graph, plans: Plans, outside: set[Value], updates: Sequence[tuple[Value, Value]]
) -> tuple[list[Node], set[Value]]:
    """The nodes in order of execution, and the values of `updates` that are written in place.

    `plans`: of each node, None for what Python code or inner programs do; `outside`: values that these get
    or that the program returns; `updates`: (new value, parameter that takes it).
    """
    targets = _candidates(graph, plans, outside, updates)
    if not targets:
        return list(graph.nodes), set()
    risky = _risky(graph, plans)
    nodes = _early(graph, targets, risky)
    return nodes, _confirmed(nodes, targets, risky)


def _candidates(
    graph: Graph, plans: Plans, outside: set[Value], updates: Sequence[tuple[Value, Value]]
) -> dict[Value, Value]:
    """new value -> parameter, for updates that may be in place if the order allows."""
    base = view_bases(graph.nodes, plans)
    seen = {base.get(v, v) for v in outside}
    values, parameters = Counter(u for u, _ in updates), Counter(p for _, p in updates)
    needed = {base.get(u, u) for u, _ in updates if u.producer is None or u in base}
    found = {}
    for value, parameter in updates:
        if value.type != parameter.type or values[value] > 1 or parameters[parameter] > 1:
            continue
        if (
            value in base
            or value.producer is None
            or value in seen
            or parameter in seen
            or parameter in needed
        ):
            continue
        plan = plans.get(value.producer)
        if plan is not None and plan.kind == _KERNEL and _may_overwrite(value, parameter, plan, base):
            found[value] = parameter
    return found


def _may_overwrite(value: Value, parameter: Value, plan: _C.Plan, base: Mapping[Value, Value]) -> bool:
    """Whether the kernel that makes `value` may write it over `parameter`."""
    node = value.producer
    reads = [i for i, v in enumerate(node.inputs) if v is not None and base.get(v, v) is parameter]
    if not reads:
        return True
    if len(reads) > 1 or not plan.flags & _IN_PLACE or node.inputs[reads[0]] is not parameter:
        return False
    position = node.outputs.index(value)
    definition = node.op.definition
    if not definition.updates:
        return position == 0
    if position >= len(definition.updates):
        return False
    index = definition.param_names.index(definition.updates[position])
    if definition.params[0][1] == LIST:
        index += len(node.inputs) - len(definition.params)
    return index == reads[0]


def _risky(graph: Graph, plans: Plans) -> set[Node]:
    """Nodes that may fail because of the values they get: Python code and inner programs, and kernels that
    take integers from outside, such as indices. Integers that kernels made from other numbers, such as the
    places of maxima, are right, and so are those that another kernel has taken before."""
    suspect = {p for p in graph.parameters if _is_index(p)}
    found: set[Node] = set()
    for node in graph.nodes:
        plan = plans.get(node)
        if plan is None or plan.kind not in (_KERNEL, _VIEW):
            found.add(node)
            suspect.update(v for v in node.outputs if _is_index(v))
            continue
        taken = [v for v in node.inputs if v is not None and v in suspect]
        if taken and not node.op.definition.updates:
            if plan.kind == _KERNEL and any(not _is_index(v) for v in node.outputs):
                found.add(node)
                suspect.difference_update(taken)
            else:
                suspect.update(v for v in node.outputs if _is_index(v))
    return found


def _is_index(value: Value) -> bool:
    dtype = value.type.dtype
    return not (dtype.is_floating or dtype.is_complex) and dtype.short != "bool"


def _early(graph: Graph, targets: Mapping[Value, Value], risky: set[Node]) -> list[Node]:
    """The nodes with each update as soon as its inputs are there, the old value is not needed
    and nothing can fail any more."""
    updating = {v.producer for v in targets if all(out in targets for out in v.producer.outputs)} - risky
    mine = set(graph.nodes)
    after: dict[Node, list[Node]] = {}  # a node -> updates that wait for it
    waits: Counter[Node] = Counter()
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None:
                readers.setdefault(value, []).append(node)
                if node.op.definition.view:
                    readers.setdefault(node.outputs[0], readers[value])
    for node in updating:
        before = {v.producer for v in node.inputs if v is not None and v.producer in mine}
        before.update(r for v in node.outputs for r in readers.get(targets[v], ()))
        for other in before - {node}:
            after.setdefault(other, []).append(node)
            waits[node] += 1
    order: list[Node] = []
    placed: set[Node] = set()
    fragile = len(risky)
    ready: list[Node] = []

    def put(node: Node) -> None:
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [
                v.producer for v in top.inputs
                if v is not None and v.producer in updating and v.producer not in placed
            ]  # fmt: skip
            if missing and missing[-1] is not top:
                stack.append(missing[-1])
                continue
            stack.pop()
            if top in placed:
                continue
            placed.add(top)
            order.append(top)
            for other in after.get(top, ()):
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)

    for node in graph.nodes:
        if node in updating:
            continue
        put(node)
        fragile -= node in risky
        while ready and not fragile:
            put(ready.pop(0))
    for node in graph.nodes:
        if node not in placed:
            put(node)
    return order


def _confirmed(nodes: Sequence[Node], targets: Mapping[Value, Value], risky: set[Node]) -> set[Value]:
    """The updates among `targets` that this order lets be in place."""
    last_read: dict[Value, int] = {}
    shown: dict[Value, Value] = {}
    calm = 0  # nothing fails from here on
    for position, node in enumerate(nodes):
        if node in risky:
            calm = position
        for value in node.inputs:
            if value is not None:
                last_read[shown.get(value, value)] = position
        if node.op.definition.view:
            shown[node.outputs[0]] = shown.get(node.inputs[0], node.inputs[0])
    positions = {node: i for i, node in enumerate(nodes)}
    return {
        value
        for value, parameter in targets.items()
        if positions[value.producer] >= max(calm, last_read.get(parameter, -1))
    }
