"""Histograms with buckets that all steps share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.records import histograms
from mycelia_insight.records.reading import message, spread
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.compatible.common import need, route, run_of, values_of
from mycelia_insight.service.settings import Settings

_MOST_STEPS = 1000  # the original keeps 50


def routes(library: Library, settings: Settings) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    most = min(settings.max_histogram_step_size_per_tag or _MOST_STEPS, _MOST_STEPS)

    def of_tag(request: Request) -> dict:
        run, tag = run_of(library, request), need(request, "tag")
        chosen = spread(values_of(run, Kind.HISTOGRAM, tag, "5054500F"), most)
        found = [histograms.decode(message(run, one, histograms.MOST_BYTES), one.dialect) for one in chosen]
        edges, counts = histograms.shared(found)
        return {
            "train_id": request.query_params["train_id"],
            "tag": tag,
            "histograms": [
                {"step": one.step, "wall_time": one.time, "buckets": buckets(edges, np.ceil(row))}
                for one, row in zip(chosen, counts, strict=True)
            ],
        }

    return [route("/datavisual/histograms", of_tag)]


def buckets(edges: np.ndarray, counts: np.ndarray) -> list[list[float]]:
    """[left, width, count] of each bucket."""
    return np.stack([edges[:-1], np.diff(edges), counts], 1).tolist()
