"""Computation graphs scope by scope, as MindInsight's pages ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.records.graph import End, ScopeGraph
from mycelia_insight.runs.graphs import Graphs, graph_name, sources
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.compatible.common import Refused, need, route, run_of, whole

_TYPES = {"scope": "name_scope", "aggregation": "aggregation_scope", "part": "name_scope"}
_MODES = ("normal", "optimize")


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    graphs = Graphs()

    def graph_of(request: Request) -> ScopeGraph:
        run, mode = run_of(library, request), request.query_params.get("mode", "normal")
        if mode not in _MODES:
            raise Refused(400, "50540002", f"Invalid parameter value. 'mode' must be one of {list(_MODES)}.")
        tag = request.query_params.get("tag", "").removesuffix(" (optimized)")
        return _found(graphs, run, tag, mode == "optimize")

    def nodes(request: Request) -> dict:
        graph = graph_of(request)
        number = _number(graph, request.query_params.get("name", ""))
        return {"nodes": [_node(graph, child) for child in graph.branches[number].children]}

    def names(request: Request) -> dict:
        graph, text = graph_of(request), request.query_params.get("search", "")
        offset, limit = whole(request, "offset", 0, 0, 10**6), whole(request, "limit", 100, 1, 1000)
        found, _ = graph.search(text, (offset + 1) * limit)
        return {"nodes": _tree(graph, found[offset * limit :])}

    def single_node(request: Request) -> dict:
        graph = graph_of(request)
        number = _number(graph, need(request, "name"))
        answer: dict[str, Any] = {}
        inner = answer
        for scope in ["", *graph.path(number)]:
            children = graph.branches[_number(graph, scope)].children
            inner |= {
                "nodes": [_node(graph, child) for child in children],
                "scope_name": scope,
                "children": {},
            }
            inner = inner["children"]
        return answer

    def all_nodes(request: Request) -> dict:
        graph = graph_of(request)
        return {"all_nodes_detail": [_node(graph, n) for n in range(1, len(graph.branches))]}

    return [
        route("/datavisual/graphs/nodes", nodes),
        route("/datavisual/graphs/nodes/names", names),
        route("/datavisual/graphs/single-node", single_node),
        route("/datavisual/graphs/nodes/all", all_nodes),
    ]


def _found(graphs: Graphs, run: Run, tag: str, optimized: bool) -> ScopeGraph:
    names = {graph_name(run, source): source.id for source in sources(run)}
    if tag and tag not in names:
        raise Refused(400, "5054500C", "Graph is not exist.")
    id = names.get(tag, "")
    try:
        found = graphs.get(run, id, optimized)
    except (ValueError, OSError) as error:
        raise Refused(400, "50540002", f"The graph cannot be read. Detail: {error}") from error
    if found is None:
        raise Refused(400, "5054500C", "Graph is not exist.")
    return found


def _number(graph: ScopeGraph, name: str) -> int:
    number = graph.find(name)
    if number is None:
        text = f"Can not find node in graph by the given node name. node name: {name[:200]}."
        raise Refused(400, "50545009", text)
    return number


def _node(graph: ScopeGraph, number: int) -> dict:
    branch, leaf = graph.branches[number], graph.leaf(number)
    inputs, outputs = graph.neighbours(number)
    return {
        "name": branch.name,
        "type": branch.type if leaf else _TYPES[branch.kind],
        "attr": leaf.attributes() if leaf else {},
        "input": {graph.leaves[end[0]].name: _edge(graph, end) for end in inputs},
        "output": {graph.leaves[end[0]].name: _edge(graph, end) for end in outputs},
        "output_i": 0,
        "proxy_input": _proxies(graph, number, inputs),
        "proxy_output": _proxies(graph, number, outputs),
        "subnode_count": len(branch.children),
        "independent_layout": False,
        "is_dynamic_shape_node": bool(leaf and leaf.is_dynamic),
        "stack_info": [leaf.source] if leaf and leaf.source else [],
    }


def _edge(graph: ScopeGraph, end: End) -> dict:
    leaf = graph.leaves[end[0]]
    return {
        "data_type": f"DT_TENSOR[DT_{leaf.dtype.upper()}]" if leaf.shape is not None else "DT_UNDEFINED",
        "edge_type": "control" if end[1] else "data",
        "independent_layout": False,
        "shape": [] if leaf.shape is None else [list(leaf.shape)],
    }


def _proxies(graph: ScopeGraph, number: int, ends: list[End]) -> dict:
    """Of ends that lie in other scopes: the outermost scope that does not hold this node."""
    above = {0, number, *(graph.find(name) for name in graph.path(number))}
    found = {}
    for leaf, control in ends:
        at = int(graph.branch_of_leaf[leaf])
        while graph.branches[at].parent not in above:
            at = graph.branches[at].parent
        if graph.branches[at].parent != graph.branches[number].parent:
            found[graph.branches[at].name] = {"edge_type": "control" if control else "data"}
    return found


def _tree(graph: ScopeGraph, numbers: list[int]) -> list[dict]:
    roots: list[dict] = []
    made: dict[str, dict] = {}
    for number in numbers:
        siblings = roots
        for name in [*graph.path(number), graph.branches[number].name]:
            if name not in made:
                at = graph.find(name) or 0
                leaf, branch = graph.leaf(at), graph.branches[at]
                made[name] = {
                    "name": name,
                    "type": branch.type if leaf else _TYPES[branch.kind],
                    "is_dynamic_shape_node": bool(leaf and leaf.is_dynamic),
                    "nodes": [],
                }
                siblings.append(made[name])
            siblings = made[name]["nodes"]
    return roots
