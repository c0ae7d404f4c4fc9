"""The part of MindInsight's interface that its clients use: `/v1/mindinsight`. One module a topic."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from mycelia_insight.runs.library import Library
from mycelia_insight.service.compatible import graphs, histograms, images, jobs, lineages, scalars, tensors

_TOPICS = (jobs, lineages, scalars, images, histograms, tensors, graphs)


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    return [route for topic in _TOPICS for route in topic.routes(library)]
