"""Computation graphs node by node, as MindInsight's pages ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.records.graph_nodes import NodeGraph, tree
from mycelia_insight.runs.graphs import NodeGraphs, graph_name, sources
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.compatible.common import Refused, need, route, run_of, whole

_MODES = ("normal", "optimize")


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    graphs = NodeGraphs()

    def graph_of(request: Request) -> NodeGraph:
        mode = request.query_params.get("mode", "normal")
        if mode not in _MODES:
            raise Refused(400, "50540002", f"Invalid parameter value. 'mode' must be one of {list(_MODES)}.")
        return _found(graphs, run_of(library, request), request.query_params.get("tag"), mode == "optimize")

    def nodes(request: Request) -> dict:
        return {"nodes": _below(graph_of(request), request.query_params.get("name", ""))}

    def names(request: Request) -> dict:
        graph, text = graph_of(request), request.query_params.get("search", "")
        offset, limit = whole(request, "offset", 0, 0, 10**6), whole(request, "limit", 100, 1, 1000)
        found = graph.search(text)[offset * limit : (offset + 1) * limit]
        return {"nodes": tree(graph, found)}

    def single_node(request: Request) -> dict:
        graph = graph_of(request)
        name = need(request, "name")
        _check(graph, name)
        answer: dict[str, Any] = {}
        inner, scope = answer, ""
        while True:
            inner |= {"nodes": _below(graph, scope), "scope_name": scope, "children": {}}
            at = name.find("/", len(scope) + 1 if scope else 0)
            if at < 0:
                return answer
            inner, scope = inner["children"], name[:at]

    def all_nodes(request: Request) -> dict:
        graph, scope = graph_of(request), request.query_params.get("name", "")
        _check(graph, scope)
        return {"all_nodes_detail": [node.told() for node in graph.leaves(scope)]}

    return [
        route("/datavisual/graphs/nodes", nodes),
        route("/datavisual/graphs/nodes/names", names),
        route("/datavisual/graphs/single-node", single_node),
        route("/datavisual/graphs/nodes/all", all_nodes),
    ]


def _found(graphs: NodeGraphs, run: Run, tag: str | None, optimized: bool) -> NodeGraph:
    end = " (optimized)" if optimized else ""
    names = {graph_name(run, source) + end: source.id for source in sources(run)}
    if tag is not None and tag not in names:
        raise Refused(400, "5054500C", "Graph is not exist.")
    try:
        found = graphs.get(run, "" if tag is None else names[tag], optimized)
    except (ValueError, OSError) as error:
        raise Refused(400, "50540002", f"The graph cannot be read. Detail: {error}") from error
    if found is None:
        raise Refused(400, "5054500C", "Graph is not exist.")
    return found


def _check(graph: NodeGraph, name: str) -> None:
    if name and name not in graph.nodes:
        text = f"Can not find node in graph by the given node name. node name: {name[:200]}."
        raise Refused(400, "50545009", text)


def _below(graph: NodeGraph, scope: str) -> list[dict[str, Any]]:
    _check(graph, scope)
    return [node.told() for node in graph.below(scope)]
