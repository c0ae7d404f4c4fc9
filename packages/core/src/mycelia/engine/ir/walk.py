"""Going through graphs: users, order, free values, clone, substitute, inline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mycelia.engine.ir.graph import Graph, Node, Value


def all_nodes(graph: Graph) -> Iterator[tuple[Graph, Node]]:
    """Every node of `graph` and of its regions, regions before the node that holds them."""
    for node in graph.nodes:
        for region in node.regions:
            yield from all_nodes(region)
        yield graph, node


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """The regions of `graph`, innermost first, then `graph`."""
    for node in graph.nodes:
        for region in node.regions:
            yield from all_graphs(region)
    yield graph


def users(graph: Graph) -> dict[Value, list[tuple[Node, int]]]:
    """For each value that a node uses: the nodes with the input position.
    Outputs of the graph are not counted.
    """
    found: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for index, value in enumerate(node.inputs):
            if value is not None:
                found.setdefault(value, []).append((node, index))
    return found


def constants(graph: Graph) -> list[Value]:
    """Constants used by the graph itself (not by its regions), each once, in order of first use."""
    used = [v for node in graph.nodes for v in node.inputs if v is not None] + graph.outputs
    return list(dict.fromkeys(v for v in used if v.is_constant))


def free_values(graph: Graph) -> list[Value]:
    """Values used by the graph itself that it does not define; a well-formed graph has none."""
    known = set(graph.parameters)
    free: dict[Value, None] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value not in known and not value.is_constant:
                free[value] = None
        known.update(node.outputs)
    for value in graph.outputs:
        if value not in known and not value.is_constant:
            free[value] = None
    return list(free)


def order(graph: Graph) -> list[Node]:
    """The nodes, each after the producers of its inputs,
    otherwise in the present order; ValueError on a cycle.
    """
    state: dict[Node, bool] = {}  # False: being visited, True: placed
    mine = set(graph.nodes)
    result: list[Node] = []
    for root in graph.nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in state:
                stack.pop()
                if not state[node]:
                    state[node] = True
                    result.append(node)
                continue
            state[node] = False
            for value in reversed(node.inputs):
                producer = value.producer if value is not None else None
                if producer is None or producer not in mine:
                    continue
                if producer not in state:
                    stack.append(producer)
                elif not state[producer]:
                    raise ValueError(f"graph {graph.name}: {producer!r} depends on its own output")
    return result


def substitute(graph: Graph, mapping: dict[Value, Value]) -> None:
    """Replaces uses of the keys by their values, in place; chains (a -> b -> c) are followed."""

    def final(value: Value) -> Value:
        while value in mapping:
            value = mapping[value]
        return value

    for node in graph.nodes:
        node.inputs = [v if v is None else final(v) for v in node.inputs]
    graph.outputs = [final(v) for v in graph.outputs]


def copy_nodes(nodes: Sequence[Node], mapping: dict[Value, Value]) -> list[Node]:
    """Copies of `nodes` with inputs replaced by `mapping`, which receives the copies'
    outputs. Regions are shared.
    """
    copies = []
    for node in nodes:
        inputs = [v if v is None else mapping.get(v, v) for v in node.inputs]
        copy = Node(node.op, inputs, node.attrs, [v.type for v in node.outputs], node.location)
        copy.parts = node.parts
        for old, new in zip(node.outputs, copy.outputs):
            new.name = old.name
            mapping[old] = new
        copies.append(copy)
    return copies


def clone(graph: Graph, name: str | None = None) -> Graph:
    """A copy with values and nodes of its own, regions included."""
    copy = Graph(graph.name if name is None else name)
    mapping = {p: copy.add_parameter(p.type, p.name) for p in graph.parameters}
    copy.nodes = copy_nodes(graph.nodes, mapping)
    for node in copy.nodes:
        if node.regions:
            node.attrs = {k: clone(a) if isinstance(a, Graph) else a for k, a in node.attrs.items()}
    copy.outputs = [mapping.get(v, v) for v in graph.outputs]
    return copy


def inline(graph: Graph, node: Node, region: Graph, arguments: Sequence[Value] | None = None) -> None:
    """Puts the nodes of `region` in the place of `node`; `arguments` (default: the node's inputs) stand
    for the region's parameters and its outputs take over the uses of the node's outputs."""
    given = node.inputs if arguments is None else arguments
    mapping: dict[Value, Value] = dict(zip(region.parameters, given, strict=True))
    position = graph.nodes.index(node)
    graph.nodes[position : position + 1] = copy_nodes(region.nodes, mapping)
    results = [mapping.get(v, v) for v in region.outputs]
    substitute(graph, dict(zip(node.outputs, results, strict=True)))


def without_effects(graph: Graph) -> Graph:
    """A copy that computes the same results and does nothing else: for gradients,
    which evaluate a region again.
    """
    cached = graph.cache.get("without_effects")
    if cached is not None:
        return cached
    copy = graph
    if any(node.has_effect for node in graph.nodes):
        copy = clone(graph)
        used = {v for node in copy.nodes for v in node.inputs} | set(copy.outputs)
        kept = []
        for node in copy.nodes:
            node.attrs = {k: without_effects(a) if isinstance(a, Graph) else a for k, a in node.attrs.items()}
            if not node.has_effect or any(v in used for v in node.outputs):
                kept.append(node)
        copy.nodes = kept
    graph.cache["without_effects"] = copy
    return copy
