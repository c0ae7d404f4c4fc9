"""Computation graphs and data pipelines."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.records.graph import End, Leaf, ScopeGraph
from mycelia_insight.runs.graphs import Graphs, pipelines, sources
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.measures import Measures
from mycelia_insight.runs.run import Run
from mycelia_insight.service.api.common import RUN, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

GRAPH = Parameter("graph", str, "id of a graph, as the list has it; the last of the event files", "")
_FORWARD = Parameter("forward", bool, "whether gradients and the optimizer are left out", False)
#: What names a graph.
WHICH = (RUN, GRAPH, _FORWARD)
_SIDES = {1: "left", 2: "right", 3: "both"}  # which of two graphs have an edge


def add(table: Table, library: Library, graphs: Graphs) -> None:
    """Add the endpoints to `table`."""
    measures = Measures()

    def graph_of(name: str, id: str, forward: bool) -> ScopeGraph:
        return found(graphs, run_of(library, name), id, forward)

    @table.get("/runs/{run:path}/graphs", RUN)
    def graph_list(_request: Request, run: str) -> dict:
        """Graphs of a run: those in its event files (with a step), files `.pb`, `.ir`, `.onnx` and
        `.mindir`; whether `measures`
        has times of nodes, and something about values that are not finite.
        """
        wanted = run_of(library, run)
        listed = sources(wanted)
        times, nonfinite = measures.has(wanted)
        return {
            "run": run,
            "measures": {"times": times, "nonfinite": nonfinite},
            "graphs": [{"id": s.id, "step": s.step, "time": s.time, "size": s.size} for s in listed],
        }

    @table.get(
        "/runs/{run:path}/graphs/view",
        *WHICH,
        Parameter("open", str, "names of scopes that are open", [], many=True),
    )
    def graph_view(_request: Request, run: str, graph: str, forward: bool, open: list[str]) -> dict:
        """What is seen of a graph when some of its scopes are open.

        Nodes in the order of the tree, `parent` is the `id` of the open scope that holds one, 0 for none;
        edges between nodes that are not open, `count` is the number of edges that one stands for.
        """
        return {"run": run, "graph": graph, **seen(graph_of(run, graph, forward), open)}

    @table.get(
        "/runs/{run:path}/graphs/outputs",
        *WHICH,
        Parameter("open", str, "names of scopes that are open", [], many=True),
    )
    def graph_outputs(_request: Request, run: str, graph: str, forward: bool, open: list[str]) -> dict:
        """Of each node of the `view` with these scopes open, by its `id`: `bytes` of all outputs in it whose
        dtype and shape are known, null if none is; `unknown`, how many are not; how many are of each dtype.
        """
        wanted = graph_of(run, graph, forward)
        outputs = wanted.outputs
        return {
            "run": run,
            "graph": graph,
            "outputs": {
                str(number): {
                    "bytes": outputs.bytes(number),
                    "unknown": outputs.unknown(number),
                    "dtypes": outputs.dtypes(number),
                }
                for number in wanted.view(open)[0]
            },
        }

    @table.get(
        "/runs/{run:path}/graphs/measures",
        *WHICH,
        Parameter("open", str, "names of scopes that are open", [], many=True),
        Parameter("nonfinite", bool, "whether to look for NaN and infinities, in dumps if need be", False),
    )
    def graph_measures(
        _request: Request, run: str, graph: str, forward: bool, open: list[str], nonfinite: bool
    ) -> dict:
        """What the nodes of the `view` with these scopes open cost, and which were not finite, by their `id`.

        `nanoseconds` is the median of a step, of all nodes in one that have a time, null if none has;
        `fused`, how many have theirs in others, `in` which one, of a single node. `nonfinite`: how many
        nodes in one made NaN or infinities, in how many of them that began (`first`), the first `step`, and
        elements by kind; null if none did. `times` and `faults` say what was measured, null if nothing was;
        a dump is looked at to the first such iteration.
        """
        wanted = run_of(library, run)
        scopes = found(graphs, wanted, graph, forward)
        try:
            known = measures.of(wanted, scopes, nonfinite)
        except (ValueError, OSError) as error:
            raise RequestError(400, f"the dump cannot be read: {error}") from error
        times, faults, dump = known.times, known.faults, known.dump
        return {
            "run": run,
            "graph": graph,
            "times": times
            and {"steps": known.steps, "nodes": times.timed, "unattributed": known.unattributed},
            "faults": faults
            and {
                "dump": dump and dump.name,
                "looked": dump.looked if dump else None,
                "iterations": dump.iterations if dump else None,
            },
            "nodes": {
                str(number): {
                    "nanoseconds": times and times.nanoseconds(number),
                    "fused": times.fused(number) if times else 0,
                    "in": times.owner(number) if times else "",
                    "nonfinite": faults and faults.told(number),
                }
                for number in scopes.view(open)[0]
            },
        }

    @table.get(
        "/runs/{run:path}/graphs/search",
        *WHICH,
        Parameter("text", str, "part of a name, whatever the case"),
        Parameter("limit", int, "the most nodes that are given", 1000, 1, 1000),
    )
    def graph_search(_request: Request, run: str, graph: str, forward: bool, text: str, limit: int) -> dict:
        """Nodes and scopes whose names have a text in them, with the scopes that they lie in."""
        return matching(graph_of(run, graph, forward), text, limit)

    @table.get("/runs/{run:path}/graphs/node", *WHICH, Parameter("name", str, "a name"))
    def graph_node(_request: Request, run: str, graph: str, forward: bool, name: str) -> dict:
        """A node or scope: attributes, what it takes and who takes from it, 1000 of each at most.

        `output_bytes` is the sum of all outputs in it whose dtype and shape are known, null if none is;
        `unknown_outputs` is how many are not.
        """
        return described(graph_of(run, graph, forward), name)

    @table.get("/runs/{run:path}/pipelines", RUN)
    def pipeline_list(_request: Request, run: str) -> dict:
        """Data pipelines of a run: the last operator with its parameters, those before it in `children`."""
        try:
            return {"run": run, "pipelines": pipelines(run_of(library, run))}
        except (ValueError, OSError) as error:
            raise RequestError(400, f"the pipeline cannot be read: {error}") from error


def seen(graph: ScopeGraph, opened: list[str]) -> dict:
    """What is seen of a graph when these scopes are open."""
    numbers, edges = graph.view(opened)
    parents = {graph.branches[number].parent for number in numbers}
    return {
        "name": graph.name,
        "leaves": len(graph.leaves),
        "nodes": [_node(graph, number, number in parents) for number in numbers],
        "edges": [
            {"from": edge["from"], "to": edge["to"], "count": edge["count"], "control": edge["control"],
             **({} if graph.sides is None else {"side": _SIDES[edge["sides"]]}),
             **(_type(graph.leaves[edge["leaf"]]) if edge["count"] == 1 else {})}
            for edge in edges
        ],
    }  # fmt: skip


def matching(graph: ScopeGraph, text: str, limit: int) -> dict:
    """Nodes and scopes whose names have a text in them, `limit` at most, with the scopes around them."""
    numbers, total = graph.search(text, limit)
    return {
        "total": total,
        "nodes": [{**named(graph, number), "path": graph.path(number)} for number in numbers],
    }


def described(graph: ScopeGraph, name: str) -> dict:
    """A node or scope, with what it takes and who takes from it.  Errors: RequestError (404)."""
    number = graph.find(name)
    if not number:
        raise RequestError(404, f"the graph has no node {name[:200]!r}")
    branch, leaf = graph.branches[number], graph.leaf(number)
    inputs, outputs = graph.neighbours(number)
    return {
        **_node(graph, number, False),
        "path": graph.path(number),
        "children": len(branch.children),
        "attributes": leaf.attributes() if leaf else {},
        "source": leaf.source if leaf else "",
        "output_bytes": graph.outputs.bytes(number),
        "unknown_outputs": graph.outputs.unknown(number),
        "inputs": [_end(graph, end) for end in inputs],
        "outputs": [_end(graph, end) for end in outputs],
    }


def found(graphs: Graphs, run: Run, id: str, forward: bool) -> ScopeGraph:
    """The graph that a request names.  Errors: RequestError (400 if it cannot be read, 404)."""
    try:
        graph = graphs.get(run, id, forward)
    except (ValueError, OSError) as error:
        raise RequestError(400, f"graph {id[:200]!r} cannot be read: {error}") from error
    if graph is None:
        raise RequestError(404, f"run {run.id!r} has no graph {id[:200]!r}")
    return graph


def _type(leaf: Leaf) -> dict:
    dtype, shape = leaf.type_of()
    return {"dtype": dtype, "shape": shape}


def named(graph: ScopeGraph, number: int) -> dict:
    """What a branch is called."""
    branch = graph.branches[number]
    return {"name": branch.name, "label": branch.label, "kind": branch.kind, "type": branch.type}


def _node(graph: ScopeGraph, number: int, is_open: bool) -> dict:
    branch, leaf = graph.branches[number], graph.leaf(number)
    return {
        "id": number,
        "parent": branch.parent,
        **named(graph, number),
        "leaves": branch.end - branch.begin,
        "open": is_open,
        **(_type(leaf) | {"dynamic": leaf.is_dynamic} if leaf else {}),
    }


def _end(graph: ScopeGraph, end: End) -> dict:
    leaf = graph.leaves[end[0]]
    return {"name": leaf.name, "type": leaf.type, "control": end[1], **_type(leaf)}
