"""Files of runs: what each run was made of and made, and which run made a file."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.runs.artifacts import Makers, around, folded, graph
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import QUERY, chosen, name_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_MOST = 2000  # nodes of a drawing


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get("/artifacts", QUERY, Parameter("all", bool, "whether all checkpoints are given", False))
    def artifacts(_request: Request, query: str, all: bool) -> dict:
        """The graph of data, runs and files around the runs that `query` chooses.

        Nodes have a `kind`: data, run (one opening of its folder), checkpoint or export; `edges` are pairs of
        their places. Of checkpoints that nothing was made of only the last of each run is given unless `all`;
        a run's `left_out` counts the others. `more`: nodes beyond 2,000, which are left out.
        """
        runs = [run for run, *_ in chosen(library, query)]
        found = around(graph(library.runs(), library.sessions), {run.id for run in runs})
        if not all:
            found = folded(found)
        keys = list(found.nodes)[:_MOST]
        places = {key: i for i, key in enumerate(keys)}
        nodes = [found.nodes[key] for key in keys]
        return {
            "loading": not library.loaded,
            "more": len(found.nodes) - len(keys),
            "nodes": [
                {
                    "key": key, "kind": node.kind, "label": node.label, **node.facts,
                    "run": name_of(node.run) if node.run else None,
                }
                for key, node in zip(keys, nodes, strict=True)
            ],
            "edges": [[places[a], places[b]] for a, b in found.edges if a in places and b in places],
        }  # fmt: skip

    @table.get("/files/{sha256}", Parameter("sha256", str, "SHA-256 of a file, 64 hexadecimal digits"))
    def file(_request: Request, sha256: str) -> dict:
        """Which runs made a file, and which were made of it; 404 if no run lists it."""
        found = Makers((run.id, library.sessions.of(run)) for run in library.runs()).of(sha256.lower())
        if not any(found.values()):
            raise RequestError(404, f"no run lists a file with the SHA-256 {sha256[:80]!r}")
        return {"sha256": sha256.lower(), **found}
