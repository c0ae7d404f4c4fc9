"""Two graphs compared: the graph of a run, on the left, with one of this or another run, on the right."""

from __future__ import annotations

import dataclasses

from starlette.requests import Request

from mycelia_insight.records.graph_difference import GraphDifference
from mycelia_insight.runs.graphs import Differences, Graphs
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import run_of
from mycelia_insight.service.api.graphs import WHICH, described, found, matching, named, seen
from mycelia_insight.service.endpoints import Parameter, Table

_BOTH = (
    *WHICH,
    Parameter("other_run", str, "the run of the graph on the right"),
    Parameter("other", str, "id of that graph; the last of the event files", ""),
)
_BASE = "/runs/{run:path}/graphs/difference"


def add(table: Table, library: Library, graphs: Graphs) -> None:
    """Add the endpoints to `table`."""
    differences = Differences()

    def compared(which: dict) -> GraphDifference:
        mine = found(graphs, run_of(library, which["run"]), which["graph"], which["forward"])
        its = found(graphs, run_of(library, which["other_run"]), which["other"], which["forward"])
        return differences.get(mine, its)

    @table.get(
        f"{_BASE}/view", *_BOTH, Parameter("open", str, "names of scopes that are open", [], many=True)
    )
    def difference_view(_request: Request, open: list[str], **which) -> dict:
        """What is seen of both graphs together when some of their scopes are open.

        As `graphs/view`; a node has in `difference` how many of its leaves are alike in both (`same`), not
        alike (`changed`), only on the left (`left`) or on the right (`right`); an edge has a `side`.
        """
        both = compared(which)
        answer = seen(both.graph, open)
        for node in answer["nodes"]:
            node["difference"] = both.counts(node["id"])
        return {**answer, "difference": both.counts()}

    @table.get(
        f"{_BASE}/nodes", *_BOTH, Parameter("limit", int, "the most nodes that are given", 1000, 1, 1000)
    )
    def difference_nodes(_request: Request, limit: int, **which) -> dict:
        """Nodes that are not alike in both, in the order of the tree, with the scopes that they lie in."""
        both = compared(which)
        numbers, total = both.differing(limit)
        return {
            "total": total,
            "nodes": [
                {**named(both.graph, number), "path": both.graph.path(number), "state": both.state(number)}
                for number in numbers
            ],
        }

    @table.get(
        f"{_BASE}/search",
        *_BOTH,
        Parameter("text", str, "part of a name, whatever the case"),
        Parameter("limit", int, "the most nodes that are given", 1000, 1, 1000),
    )
    def difference_search(_request: Request, text: str, limit: int, **which) -> dict:
        """Nodes and scopes of both whose names have a text in them, with the scopes that they lie in."""
        return matching(compared(which).graph, text, limit)

    @table.get(f"{_BASE}/node", *_BOTH, Parameter("name", str, "a name"))
    def difference_node(_request: Request, name: str, **which) -> dict:
        """A node or scope as `graphs/node` has it; `changes` are what differs, as texts of both sides."""
        both = compared(which)
        answer = described(both.graph, name)
        return {
            **answer,
            "difference": both.counts(answer["id"]),
            "changes": [dataclasses.asdict(one) for one in both.changes(answer["id"])],
        }
