"""The interface of pages and of programs: `/api/v1`. One module a topic, each with `add`."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.runs.graphs import Graphs
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api import (
    alerts,
    artifacts,
    debugger,
    embeddings,
    files,
    graph_differences,
    graphs,
    histograms,
    landscapes,
    lineages,
    manage,
    precision,
    runs,
    scalars,
    tensors,
    texts,
)
from mycelia_insight.service.debugging import Debugging
from mycelia_insight.service.endpoints import Table
from mycelia_insight.service.extensions import Extensions

_TOPICS = (
    lineages, artifacts, runs, scalars, files, histograms, tensors, texts, embeddings, landscapes, alerts,
    manage,
)  # fmt: skip


def routes(
    library: Library, extensions: Extensions | None = None, debugging: Debugging | None = None
) -> Sequence[BaseRoute]:
    """Routes below `/api/v1`."""
    table = Table("Mycelia Insight")

    @table.get("/openapi.json")
    def openapi(_request: Request) -> dict:
        """This document."""
        return table.document()

    decoded = Graphs()
    graphs.add(table, library, decoded)
    precision.add(table, library, decoded)
    graph_differences.add(table, library, decoded)
    for topic in _TOPICS:
        topic.add(table, library)
    if debugging is not None:
        debugger.add(table, debugging)
    if extensions is not None:
        extensions.add(table)
    return table.routes
