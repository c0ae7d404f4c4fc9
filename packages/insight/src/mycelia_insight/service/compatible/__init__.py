"""The part of MindInsight's interface that its clients use: `/v1/mindinsight`. One module a topic."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from mycelia_insight.runs.library import Library
from mycelia_insight.service.compatible import (
    debugger,
    graphs,
    histograms,
    images,
    jobs,
    landscapes,
    lineages,
    scalars,
    tensors,
)
from mycelia_insight.service.compatible.common import Refused
from mycelia_insight.service.debugging import Debugging
from mycelia_insight.service.settings import Settings

_TOPICS = (lineages, graphs, landscapes)
_BOUNDED = (scalars, images, histograms, tensors)  # settings bound what they answer


def routes(library: Library, settings: Settings, debugging: Debugging) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    known = [route for topic in _TOPICS for route in topic.routes(library)]
    known += jobs.routes(library, debugging)
    known += [route for topic in _BOUNDED for route in topic.routes(library, settings)]
    known += debugger.routes(debugging)

    async def nothing(request: Request) -> Response:
        if any(route.matches(request.scope)[0] == Match.PARTIAL for route in known):
            return Refused(405, "50545002", "405 Method Not Allowed.").answer
        return Refused(404, "50545001", "404 Not Found.").answer

    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    return [*known, Route("/{path:path}", nothing, methods=methods)]
