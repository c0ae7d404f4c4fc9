"""Points of scalars, of one run or of many; all of them as a table; which runs have which."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mycelia_insight.runs.curves import Curve, Drawing, curve
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run, Tag
from mycelia_insight.runs.smoothing import SMOOTHERS
from mycelia_insight.service.api import arrow
from mycelia_insight.service.api.common import QUERY, RUN, chosen, kind_of, name_of, numbers, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_MOST_COLUMNS, _WIDEST = 20000, 100_000
_AXES = ("step", "time", "relative", "scalar")
_DRAWING = (
    Parameter("axis", str, "'step', 'time' since 1970, 'relative', both in seconds, or 'scalar'", "step"),
    Parameter("x", str, "the scalar that is the axis; a point stands at its value of the same step", ""),
    Parameter("from", float, "the least place on the axis", -np.inf),
    Parameter("to", float, "the greatest place on the axis", np.inf),
    Parameter("smoother", str, "'ema', 'average' or 'gaussian'", SMOOTHERS[0]),
    Parameter(
        "smoothing", float, "ema: weight of what came before, < 1; else a width in points", 0.0, 0, _WIDEST
    ),
    Parameter("points", int, "columns of the drawing; 0: all points", 0, 0, _MOST_COLUMNS),
)


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get(
        "/runs/{run:path}/scalars", RUN, Parameter("tag", str, "tags of scalars", [], many=True),
        Parameter("tags", str, "more of them, with commas between", ""), *_DRAWING,
    )  # fmt: skip
    def scalars(request: Request, run: str, tag: list[str], tags: str, **drawn: Any) -> dict | Response:
        """Points of scalars.

        Of each column of the drawing the first, the last, the least, the greatest and all points that are not
        finite are given. Values that are not finite are the texts "NaN", "Infinity" and "-Infinity". With
        `Accept: application/vnd.apache.arrow.stream` the answer is a table of Apache Arrow.
        """
        drawing = _drawing(**drawn)
        found = run_of(library, run)
        known = _scalars(found)
        wanted = [*tag, *filter(None, tags.split(","))]
        if not wanted:
            raise RequestError(400, "'tag' is required, or 'tags': tags of scalars")
        series: list[tuple[Run, Tag, Curve]] = []
        for name in wanted:
            if name not in known:
                raise RequestError(404, f"run {run!r} has no scalar {name!r}")
            if drawing.x and drawing.x not in known:
                raise RequestError(404, f"'x': run {run!r} has no scalar {drawing.x!r}")
            one = curve(found, known[name], drawing)
            if one is None:
                raise RequestError(404, f"run {run!r} has no scalar {name!r} any more")
            series.append((found, known[name], one))
        return _answer(request, series, drawing, {"run": run})

    @table.get(
        "/scalars",
        Parameter("run", str, "runs", many=True),
        Parameter("tag", str, "a tag of scalars"),
        *_DRAWING,
    )
    def scalars_of_runs(request: Request, run: list[str], tag: str, **drawn: Any) -> dict | Response:
        """Points of one scalar of many runs, of those that have it; drawn as those of one run."""
        drawing = _drawing(**drawn)
        series: list[tuple[Run, Tag, Curve]] = []
        for name in run:
            found = run_of(library, name)
            known = _scalars(found)
            if tag in known and (not drawing.x or drawing.x in known):
                one = curve(found, known[tag], drawing)
                series += [(found, known[tag], one)] if one else []
        return _answer(request, series, drawing, {"tag": tag})

    @table.get(
        "/scalars.csv",
        Parameter("run", str, "runs", many=True),
        Parameter("tag", str, "tags of scalars", many=True),
    )
    def scalars_as_csv(_request: Request, run: list[str], tag: list[str]) -> Response:
        """All points of scalars of runs, as a file; what is not finite is nan, inf or -inf."""
        found = [run_of(library, name) for name in run]
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in "-".join([*run[:1], *tag[:1]]))
        headers = {"Content-Disposition": f'attachment; filename="{name[:80] or "scalars"}.csv"'}
        return StreamingResponse(_rows(found, tag), media_type="text/csv; charset=utf-8", headers=headers)

    @table.get("/comparison", QUERY)
    def comparison(_request: Request, query: str) -> dict:
        """Runs that a query is true of and that have scalars, the oldest first, with their tags.

        Scalars of the machine are left out. `sets` are the distinct lists of tags; a run's `set` is its place
        among them.
        """
        places: dict[tuple[str, ...], int] = {}
        rows = []
        for run, tags, _, note in chosen(library, query):
            own = tuple(tag.name for tag in tags if kind_of(tag) == "scalar")
            if own:
                created = min(tag.first_time for tag in tags)
                place = places.setdefault(own, len(places))
                rows.append(
                    {"run": name_of(run.id), "created": created, "set": place, "archived": note.archived}
                )
        rows.sort(key=lambda row: (row["created"], row["run"]))
        return {"loading": not library.loaded, "sets": list(places), "runs": rows}


def _drawing(axis: str, x: str, smoother: str, smoothing: float, points: int, **limits: float) -> Drawing:
    if axis not in _AXES:
        raise RequestError(400, f"'axis' must be one of {', '.join(_AXES)}, got {axis[:80]!r}")
    if (axis == "scalar") != bool(x):
        raise RequestError(400, "'x' is the scalar of the axis 'scalar', and of no other")
    if smoother not in SMOOTHERS:
        raise RequestError(400, f"'smoother' must be one of {', '.join(SMOOTHERS)}, got {smoother[:80]!r}")
    if smoother == "ema" and smoothing >= 1:
        raise RequestError(400, f"'smoothing' must be a weight below 1, got {smoothing:g}")
    return Drawing(axis, x, limits["from"], limits["to"], points, smoother, smoothing)


def _scalars(run: Run) -> dict[str, Tag]:
    return {tag.name: tag for tag in run.tags() if tag.kind == Kind.SCALAR}


def _answer(
    request: Request, series: list[tuple[Run, Tag, Curve]], drawing: Drawing, told: dict
) -> dict | Response:
    if arrow.is_wanted(request):
        named = [(name_of(run.id), tag.name, one) for run, tag, one in series]
        return arrow.answer(named, bool(drawing.smoothing))
    return {**told, "axis": drawing.axis, "series": [_series(*one, drawing) for one in series]}


def _series(run: Run, tag: Tag, found: Curve, drawing: Drawing) -> dict:
    points = found.points
    return {
        "run": name_of(run.id), "tag": tag.name, "count": tag.count, "first_time": tag.first_time,
        "steps": points.steps, "times": points.times, "values": numbers(points.values),
        **({"smoothed": numbers(points.smoothed)} if drawing.smoothing else {}),
        **({} if found.x is None else {"x": numbers(found.x)}),
    }  # fmt: skip


def _rows(runs: list[Run], tags: list[str]) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "tag", "step", "wall_time", "value"])
    for run in runs:
        known = _scalars(run)
        for tag in tags:
            for piece in run.walk(tag) if tag in known else ():
                rows = zip(piece.steps.tolist(), piece.times.tolist(), piece.values, strict=True)
                writer.writerows([run.id, tag, step, time, str(value)] for step, time, value in rows)
                yield text.getvalue()
                text.seek(0), text.truncate()
    yield text.getvalue()
