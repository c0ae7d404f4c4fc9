"""Operators of a graph and their precision."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from mycelia_insight.records import sheet
from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.precision import Operator, end_text, operators
from mycelia_insight.runs.graphs import Graphs
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, run_of
from mycelia_insight.service.api.graphs import GRAPH, found
from mycelia_insight.service.endpoints import Parameter, Table

_COLUMNS = (
    "ID",
    "op_name",
    "full name with scope",
    "op_type",
    "precision_flag",
    "is_reduce_op",
    "input",
    "output",
)
_MOST_ENDS = 1000  # of a node that are listed


def add(table: Table, library: Library, graphs: Graphs) -> None:
    """Add the endpoints to `table`."""

    def graph_of(run: str, graph: str) -> ScopeGraph:
        return found(graphs, run_of(library, run), graph, False)

    @table.get(
        "/runs/{run:path}/graphs/precision",
        RUN,
        GRAPH,
        Parameter("text", str, "part of a name, whatever the case", ""),
        Parameter("offset", int, "operators that are passed over", 0, 0),
        Parameter("limit", int, "the most that are given", 20, 1, 1000),
    )
    def precision(_request: Request, run: str, graph: str, text: str, offset: int, limit: int) -> dict:
        """Operators with their precision flags, those that say reduced first, then other flags, then none;
        how many there are (`total`), how many of all are `reduced`, and how many have any `flagged`.
        """
        wanted = graph_of(run, graph)
        every = operators(wanted)
        chosen = [one for one in every if text.lower() in wanted.leaves[one.leaf].name.lower()]
        readers = _readers(wanted, {one.leaf for one in chosen[offset : offset + limit]})
        return {
            "run": run,
            "graph": graph,
            "total": len(chosen),
            "reduced": sum(one.is_reduced for one in every),
            "flagged": sum(bool(one.flag) for one in every),
            "operators": [_told(wanted, one, readers) for one in chosen[offset : offset + limit]],
        }

    @table.get("/runs/{run:path}/graphs/precision.xlsx", RUN, GRAPH)
    def precision_as_sheet(_request: Request, run: str, graph: str) -> Response:
        """All of these operators, as a file of spreadsheets."""
        wanted = graph_of(run, graph)
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in run)[:80]
        headers = {"Content-Disposition": f'attachment; filename="{name or "run"}-precision.xlsx"'}
        data = sheet.workbook("operators", _rows(wanted))
        return Response(data, media_type=sheet.MEDIA_TYPE, headers=headers)


def _readers(graph: ScopeGraph, of: set[int]) -> dict[int, list[int]]:
    """Who takes from some leaves."""
    found: dict[int, list[int]] = {at: [] for at in of}
    for at, leaf in enumerate(graph.leaves):
        for source, _ in leaf.inputs:
            if source in found and len(found[source]) < _MOST_ENDS:
                found[source].append(at)
    return found


def _told(graph: ScopeGraph, one: Operator, readers: dict[int, list[int]]) -> dict:
    leaf = graph.leaves[one.leaf]
    return {
        "id": one.number,
        "name": leaf.name,
        "label": leaf.name.rpartition("/")[2],
        "type": leaf.type,
        "flag": one.flag,
        "reduced": one.is_reduced if one.flag else None,
        "inputs": [end_text(graph.leaves[source]) for source, _ in leaf.inputs[:_MOST_ENDS]],
        "outputs": [end_text(graph.leaves[at]) for at in readers[one.leaf]],
    }


def _rows(graph: ScopeGraph) -> Iterator[tuple[str | int, ...]]:
    yield _COLUMNS
    every = operators(graph)
    readers = _readers(graph, {one.leaf for one in every})
    for one in every:
        told = _told(graph, one, readers)
        is_reduced = "" if told["reduced"] is None else "yes" if told["reduced"] else "no"
        ends = ("\n".join(told[which]) for which in ("inputs", "outputs"))
        yield told["id"], told["label"], told["name"], told["type"], told["flag"], is_reduced, *ends
