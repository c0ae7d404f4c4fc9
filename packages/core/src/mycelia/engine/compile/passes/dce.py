"""Dead code: nodes nobody uses, results of control flow nobody uses, inputs that regions do not read.

Gradients that are not asked for vanish here: nothing uses them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.walk import substitute


def run(graph: Graph) -> int:
    live: set[Value] = set(graph.outputs)
    kept: list[Node] = []
    changes = 0
    replaced: dict[Value, Value] = {}
    for node in reversed(graph.nodes):
        if not node.has_effect and not any(v in live for v in node.outputs):
            changes += 1
            continue
        prune = _PRUNERS.get(node.op.name)
        if prune is not None:
            pruned = prune(node, [v in live for v in node.outputs])
            if pruned is not None:
                smaller, pairs = pruned
                for old, new in pairs:
                    replaced[old] = new
                node = smaller
                changes += 1
        kept.append(node)
        live.update(v for v in node.inputs if v is not None)
    graph.nodes = kept[::-1]
    substitute(graph, replaced)
    return changes


def _rebuilt(node: Node, inputs: Iterable[Value | None], attrs: dict, kept: list[int]):
    """A node like `node` with only the outputs `kept`, and which output stands for which."""
    smaller = Node(
        node.op, inputs, {**node.attrs, **attrs}, [node.outputs[i].type for i in kept], node.location
    )
    return smaller, list(zip((node.outputs[i] for i in kept), smaller.outputs))


def _with(region: Graph, outputs: Iterable[Value]) -> Graph:
    """`region` with other outputs and without the nodes they do not need."""
    region.outputs = list(outputs)
    run(region)
    return region


def _read(region: Graph) -> set[Value]:
    return {v for node in region.nodes for v in node.inputs if v is not None} | set(region.outputs)


def _keep_parameters(region: Graph, kept: list[int]) -> None:
    region.parameters = [region.parameters[i] for i in kept]


def _prune_cond(node: Node, used: list[bool]):
    sides = [node.attrs["then"], node.attrs["otherwise"]]
    outputs = [i for i, u in enumerate(used) if u]
    if len(outputs) < len(used):
        for side in sides:
            _with(side, [side.outputs[i] for i in outputs])
    read = [_read(side) for side in sides]
    count = len(node.inputs) - 1
    inputs = [i for i in range(count) if any(side.parameters[i] in r for side, r in zip(sides, read))]
    if len(outputs) == len(used) and len(inputs) == count:
        return None
    for side in sides:
        _keep_parameters(side, inputs)
    return _rebuilt(node, [*(node.inputs[i] for i in inputs), node.inputs[-1]], {}, outputs)


def _needed(body: Graph, carried: int, wanted: set[int], also: set[int]) -> set[int]:
    """Carried values that the wanted outputs of `body` depend on, directly or in a later round."""
    reads = [_dependencies(body, [value]) for value in body.outputs]
    needed = {i for i in wanted if i < carried} | also
    pending = list(needed) + [i for i in wanted if i >= carried]
    while pending:
        for i in reads[pending.pop()]:
            if i < carried and i not in needed:
                needed.add(i)
                pending.append(i)
    return needed


def _dependencies(graph: Graph, outputs: list[Value], effects: bool = False) -> set[int]:
    """Positions of the parameters that `outputs` (or nodes with effects) depend on."""
    live = set(outputs)
    for node in reversed(graph.nodes):
        used = [i for i, v in enumerate(node.outputs) if v in live]
        if effects and node.has_effect:
            live.update(v for v in node.inputs if v is not None)
        elif used:
            live.update(_inputs_behind(node, used))
    return {i for i, p in enumerate(graph.parameters) if p in live}


def _inputs_behind(node: Node, used: list[int]) -> list[Value]:
    """Inputs that the outputs `used` depend on; a branch is looked into, other nodes count as a whole."""
    if node.op.name != "cond":
        return [v for v in node.inputs if v is not None]
    sides = [node.attrs["then"], node.attrs["otherwise"]]
    positions = set().union(*(_dependencies(side, [side.outputs[i] for i in used]) for side in sides))
    return [*(node.inputs[i] for i in positions), node.inputs[-1]]


def _prune_while(node: Node, used: list[bool]):
    test, body, carried = node.attrs["test"], node.attrs["body"], node.attrs["carried"]
    history = node.op.name == "while_history"
    wanted = {i % carried for i, u in enumerate(used) if u} if carried else set()
    controlling = _dependencies(test, test.outputs, effects=True) | _dependencies(body, [], effects=True)
    needed = sorted(_needed(body, carried, wanted, {i for i in controlling if i < carried}))
    if not needed and history:
        needed = [0]  # the number of rounds shows in a history
    if len(needed) < carried:
        _with(body, [body.outputs[i] for i in needed])
    read = _read(test) | _read(body)
    invariant = [
        i
        for i in range(carried, len(node.inputs))
        if test.parameters[i] in read or body.parameters[i] in read
    ]
    if len(needed) == carried and len(invariant) == len(node.inputs) - carried:
        return None
    for region in (test, body):
        _keep_parameters(region, needed + invariant)
    outputs = needed + [carried + i for i in needed] if history else needed
    return _rebuilt(node, [node.inputs[i] for i in needed + invariant], {"carried": len(needed)}, outputs)


def _prune_scan(node: Node, used: list[bool]):
    body, carried, scanned = node.attrs["body"], node.attrs["carried"], node.attrs["scanned"]
    rows = [i for i in range(carried, len(used)) if used[i]]
    effects = _dependencies(body, [], effects=True)
    wanted = {i for i in range(carried) if used[i]} | set(rows)
    needed = sorted(_needed(body, carried, wanted, {i for i in effects if i < carried}))
    if len(needed) + len(rows) < len(used):
        _with(body, [body.outputs[i] for i in needed + rows])
    read = _read(body)
    columns = [i for i in range(carried, carried + scanned) if body.parameters[i] in read]
    if not columns and scanned:
        columns = [carried]  # it sets the number of rounds
    rest = [i for i in range(carried + scanned, len(node.inputs)) if body.parameters[i] in read]
    kept = needed + columns + rest
    if len(needed) + len(rows) == len(used) and len(kept) == len(node.inputs):
        return None
    _keep_parameters(body, kept)
    return _rebuilt(
        node, [node.inputs[i] for i in kept], {"carried": len(needed), "scanned": len(columns)}, needed + rows
    )


_PRUNERS = {
    "cond": _prune_cond,
    "while_loop": _prune_while,
    "while_history": _prune_while,
    "scan": _prune_scan,
}
