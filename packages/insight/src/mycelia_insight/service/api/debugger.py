"""What the debugger's pages ask beside MindInsight's interface, which opens and moves the sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from starlette.requests import Request

from mycelia_insight.runs.dumps import find_dumps
from mycelia_insight.service.api.common import number as as_json
from mycelia_insight.service.api.common import numbers
from mycelia_insight.service.api.graphs import described, matching, seen
from mycelia_insight.service.debugging import Debugging
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_SESSION = Parameter("session", str, "number of a session")
_RANK = Parameter("rank", int, "a rank", 0, 0, 2**31 - 1)
_STEP = Parameter("step", int, "a step, counted from 1", low=1, high=2**31 - 1)
_GRAPH = Parameter("graph", str, "name of a graph, such as graph_0; the first one", "")
_TOLERANCE = Parameter(
    "tolerance", float, "share of the other value that a difference may have", 0.0, 0.0, 1e9
)
_AGAINST = Parameter("against", str, "number of the session that `other` is a step of; this one", "")
_TENSOR = Parameter("name", str, "NODE:SLOT, an output, or NODE:input:SLOT")


def add(table: Table, debugging: Debugging) -> None:
    """Add the endpoints to `table`."""

    def get(path: str, *parameters: Parameter) -> Callable:
        """Of a session; what it refuses is an error of the request."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def asked(_request: Request, session: str, **given: Any) -> Any:
                from mycelia_insight.debugger.session import Wrong

                try:
                    return function(debugging.views(session), **given)
                except Wrong as wrong:
                    raise RequestError(404 if wrong.code == "5054B282" else 400, str(wrong)) from None

            return table.get(f"/debugger/{{session}}/{path}", _SESSION, *parameters)(asked)

        return decorate

    @table.get("/debugger")
    def debugger(_request: Request) -> dict:
        """Where sessions are opened and moved, how many over dumps there may be at a time, and whether
        trainings may connect to be debugged.
        """
        sessions = f"{debugging.prefix}/debugger/sessions"
        return {"sessions": sessions, "limit": debugging.limit, "online": debugging.online is not None}

    @table.get("/debugger/dumps")
    def dumps(_request: Request) -> dict:
        """Dumps below the base folder, with the numbers of the sessions that are open."""
        opened = debugging.opened()
        found = dict(find_dumps(debugging.base))
        rows = [{"dump": d, "ranks": found[d], "session": opened.get(d)} for d in found]
        others = [{"dump": d, "ranks": [], "session": n} for d, n in opened.items() if d not in found]
        return {"dumps": rows + others}

    @get("steps", _RANK)
    def debugger_steps(views: Any, rank: int) -> dict:
        """Recorded steps, with the graphs that ran in them."""
        return {"rank": rank, "steps": views.steps(rank)}

    @get("health", _RANK, _STEP)
    def debugger_health(views: Any, rank: int, step: int) -> dict:
        """Of a step: outputs, those with values that are not finite, and how many of which kind."""
        return views.health(rank, step)

    @get("nodes", _RANK, Parameter("known", int, "the version whose nodes the asker has", -1))
    def debugger_nodes(views: Any, rank: int, known: int) -> dict:
        """All nodes in order of execution, with what they read and the lines of code that made them; null if
        the asker has them.
        """
        return views.nodes(rank, known)

    @get("why", _RANK, _STEP, Parameter("name", str, "a node, for the way back from it", ""),
         Parameter("limit", int, "the most outputs that are given", 200, 1, 100_000))  # fmt: skip
    def debugger_why(views: Any, rank: int, step: int, name: str, limit: int) -> dict:
        """What is not finite in a step, with lines of code; what was made of finite inputs comes first."""
        return views.why(rank, step, name, limit)

    @get(
        "tensor", _RANK, _STEP, _TENSOR,
        Parameter("dims", str, "indices as Python's, `[0, :, 2:5]`; empty: the first rows and columns", ""),
        Parameter("other", int, "a step to compare with", None, 1, 2**31 - 1),
        _TOLERANCE, _AGAINST,
    )  # fmt: skip
    def debugger_tensor(
        views: Any, rank: int, step: int, name: str, dims: str, other: int | None, tolerance: float,
        against: str,
    ) -> dict:  # fmt: skip
        """A slice of a tensor, statistics of it and of all values, and its distance from another step's, or
        from that of another session.
        """
        them = debugging.views(against) if against else None
        found = views.tensor(name, rank, step, dims, other, tolerance, them)
        for rows in ("rows", "before", "apart"):
            if rows in found:
                found[rows] = [_cells(row) for row in found[rows]]
        return found

    @get(
        "difference", _RANK, _STEP,
        Parameter("other", int, "the step to compare with", low=1, high=2**31 - 1), _TOLERANCE, _AGAINST,
        Parameter("limit", int, "the most outputs that are given", 200, 1, 100_000),
    )  # fmt: skip
    def debugger_difference(
        views: Any, rank: int, step: int, other: int, tolerance: float, against: str, limit: int
    ) -> dict:
        """Outputs of a step that differ from those of another step, or of another session, in order of
        execution, with counts of all.
        """
        them = debugging.views(against) if against else views
        return views.difference(rank, step, them, other, tolerance, limit)

    @get("history", _RANK, _TENSOR)
    def debugger_history(views: Any, rank: int, name: str) -> dict:
        """Statistics of a tensor in each step in which it was recorded."""
        return {"name": name, "steps": views.history(name, rank)}

    @get("graph", _RANK, _GRAPH, Parameter("open", str, "names of scopes that are open", [], many=True))
    def debugger_graph(views: Any, rank: int, graph: str, open: list[str]) -> dict:
        """What is seen of a graph when some of its scopes are open, as of the graph of a run."""
        return seen(views.graph(rank, graph), open)

    @get("graph/search", _RANK, _GRAPH, Parameter("text", str, "part of a name, whatever the case"),
         Parameter("limit", int, "the most nodes that are given", 1000, 1, 1000))  # fmt: skip
    def debugger_graph_search(views: Any, rank: int, graph: str, text: str, limit: int) -> dict:
        """Nodes and scopes whose names have a text in them."""
        return matching(views.graph(rank, graph), text, limit)

    @get("graph/node", _RANK, _GRAPH, Parameter("name", str, "a name"))
    def debugger_graph_node(views: Any, rank: int, graph: str, name: str) -> dict:
        """A node or scope, with what it takes, who takes from it, and the lines of code that made it."""
        return {**described(views.graph(rank, graph), name), "stack": views.stack(rank, graph, name)}


def _cells(row: Any) -> Any:
    if row.dtype.kind == "f":
        return numbers(row)
    return [as_json(one) if isinstance(one, float) else one for one in row.tolist()]
