"""Points of scalars; values that are not finite are null."""

from __future__ import annotations

import math
from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.compatible.common import Refused, need, route, run_by_id, run_of


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def metadata(request: Request) -> dict:
        return {"metadatas": _values(run_of(library, request), need(request, "tag"))}

    def scalars(request: Request) -> dict:
        found = []
        for id in request.query_params.getlist("train_id"):
            run = run_by_id(library, id)
            for tag in request.query_params.getlist("tag"):
                found.append({"train_id": id, "tag": tag, "values": _values(run, tag)})
        return {"scalars": found}

    return [
        route("/datavisual/scalar/metadata", metadata),
        route("/datavisual/scalars", scalars),
    ]


def _values(run: Run, tag: str) -> list[dict]:
    points = run.points(tag.removesuffix("/scalar"))
    if points is None:
        raise Refused(400, "5054500E", f"Scalar is not exist. Detail: {tag}")
    columns = zip(points.times.tolist(), points.steps.tolist(), points.values.tolist(), strict=True)
    return [
        {"wall_time": time, "step": step, "value": value if math.isfinite(value) else None}
        for time, step, value in columns
    ]
