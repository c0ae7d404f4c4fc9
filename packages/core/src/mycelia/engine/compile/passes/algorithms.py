"""The algorithm of lowered products and convolutions on packed weights, as a backend chooses it.

`layout` and `matmul` emit these ops with a plain sum. A backend that has more to offer brings a pass that
calls `choose`: the op and the pack that it reads get the chosen value of their attribute `algorithm`.
"""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine.ir.graph import Builder, Graph, Node, Value

_PACKS = {"conv_last": "conv_pack", "linear": "linear_pack"}  # op -> what packs its weights, the second input


def choose(graph: Graph, op: str, algorithm_of: Callable[[Node], str]) -> int:
    """Gives the nodes of `op`, "conv_last" or "linear", and their packs the algorithms of `algorithm_of`.

    Returns how many nodes got another one. A pack that nodes of several algorithms read is made for each.
    """
    changed: dict[Node, str] = {}
    kept: set[Value] = set()
    for node in graph.nodes:
        if node.op.name == op and node.inputs[1].producer is not None:
            algorithm = algorithm_of(node)
            if algorithm != node.attrs["algorithm"] and node.inputs[1].producer.op.name == _PACKS[op]:
                changed[node] = algorithm
                continue
        kept.update(v for v in node.inputs if v is not None)
    if not changed:
        return 0
    wanted: dict[Value, dict[str, Value | None]] = {}  # plain pack -> its other forms
    for node, algorithm in changed.items():
        wanted.setdefault(node.inputs[1], {})[algorithm] = None
    kept.update(graph.outputs)
    nodes: list[Node] = []
    builder = Builder(graph)
    builder.added = nodes
    for node in graph.nodes:
        forms = wanted.get(node.outputs[0], {})
        if not forms or node.outputs[0] in kept:
            nodes.append(node)
        for algorithm in forms:
            builder.location = node.location
            forms[algorithm] = builder.emit(node.op, node.inputs, {**node.attrs, "algorithm": algorithm})[0]
        if node in changed:
            weights = wanted[node.inputs[1]][changed[node]]
            node.inputs = [node.inputs[0], weights, *node.inputs[2:]]
            node.attrs = {**node.attrs, "algorithm": changed[node]}
    graph.nodes = nodes
    return len(changed)
