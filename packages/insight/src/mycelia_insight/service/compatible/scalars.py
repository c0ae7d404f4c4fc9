"""Points of scalars; values that are not finite are null."""

from __future__ import annotations

import math
from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run, Tag
from mycelia_insight.service.compatible.common import Refused, kept, need, route, run_of
from mycelia_insight.service.settings import Settings

_OF_COLUMN = 4  # points of a column that are finite: the first, last, least and greatest


def routes(library: Library, settings: Settings) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    most = settings.max_scalar_step_size_per_tag

    def metadata(request: Request) -> dict:
        return {"metadatas": _values(run_of(library, request), need(request, "tag"), most)}

    def scalars(request: Request) -> dict:
        found = []
        for id in request.query_params.getlist("train_id"):
            run = library.get(id)
            for tag in request.query_params.getlist("tag"):
                if run is not None and _known(run, tag):  # others are left out, as in MindInsight
                    found.append({"train_id": id, "tag": tag, "values": _values(run, tag, most)})
        return {"scalars": found}

    return [
        route("/datavisual/scalar/metadata", metadata),
        route("/datavisual/scalars", scalars),
    ]


def _known(run: Run, tag: str) -> Tag | None:
    name = tag.removesuffix("/scalar")
    return next((one for one in run.tags() if one.kind == Kind.SCALAR and one.name == name), None)


def _values(run: Run, tag: str, most: int) -> list[dict]:
    """About `most` points, those that a drawing needs, if there are more; 0: all."""
    name, known = tag.removesuffix("/scalar"), _known(run, tag)
    if known is None:
        raise Refused(400, "5054500E", f"Scalar is not exist. Detail: {tag}")
    if most and known.count > most:
        ends = sorted((known.first_step, known.last_step))
        points = run.points(name, low=ends[0], high=ends[1], columns=max(1, most // _OF_COLUMN))
    else:
        points = run.points(name)
    if points is None:
        raise Refused(400, "5054500E", f"Scalar is not exist. Detail: {tag}")
    some = kept(points.steps)
    columns = zip(
        points.times[some].tolist(), points.steps[some].tolist(), points.values[some].tolist(), strict=True
    )
    return [
        {"wall_time": time, "step": step, "value": value if math.isfinite(value) else None}
        for time, step, value in columns
    ]
