"""Points of scalars."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, numbers, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_MOST_COLUMNS = 20000


def add(table: Table, library: Library) -> None:
    """Add the endpoint to `table`."""

    @table.get(
        "/runs/{run:path}/scalars",
        RUN,
        Parameter("tag", str, "tags of scalars", many=True),
        Parameter("axis", str, "'step' or 'time', seconds since 1970", "step"),
        Parameter("from", float, "the least step or time", -np.inf),
        Parameter("to", float, "the greatest step or time", np.inf),
        Parameter("smoothing", float, "weight of what came before in the moving average", 0.0, 0, 0.9999),
        Parameter("points", int, "columns of the drawing; 0: all points", 0, 0, _MOST_COLUMNS),
    )
    def scalars(
        _request: Request, run: str, tag: list[str], axis: str, smoothing: float, points: int, **limits: float
    ) -> dict:
        """Points of scalars.

        Of each column of the drawing the first, the last, the least, the greatest and all points that are not
        finite are given. Values that are not finite are the texts "NaN", "Infinity" and "-Infinity".
        """
        if axis not in ("step", "time"):
            raise RequestError(400, f"'axis' must be 'step' or 'time', got {axis[:80]!r}")
        found = run_of(library, run)
        ranges = {t.name: t for t in found.tags() if t.kind == Kind.SCALAR}
        series = []
        for name in tag:
            if name not in ranges:
                raise RequestError(404, f"run {run!r} has no scalar {name!r}")
            known = ranges[name]
            first, last = (
                (known.first_time, known.last_time) if axis == "time" else (known.first_step, known.last_step)
            )
            low, high = max(limits["from"], min(first, last)), min(limits["to"], max(first, last))
            drawn = found.points(
                name, by_time=axis == "time", low=low, high=high, columns=points, smoothing=smoothing
            )
            if drawn is None:
                raise RequestError(404, f"run {run!r} has no scalar {name!r} any more")
            smoothed = {"smoothed": numbers(drawn.smoothed)} if smoothing else {}
            series.append(
                {"tag": name, "count": known.count, "first_time": known.first_time, "steps": drawn.steps,
                 "times": drawn.times, "values": numbers(drawn.values), **smoothed}
            )  # fmt: skip
        return {"run": run, "axis": axis, "series": series}
