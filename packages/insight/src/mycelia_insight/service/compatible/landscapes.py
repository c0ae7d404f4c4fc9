"""Loss landscapes: the intervals of a run, and landscapes of several runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.records import landscapes
from mycelia_insight.records.reading import entries, message, turn
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Entry, Run
from mycelia_insight.service.compatible.common import need, route, run_by_id, run_of

_WRONG_ID, _NO_LANDSCAPE = "50540002", "50545017"


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def intervals(request: Request) -> dict:
        need(request, "train_id")
        run = run_of(library, request)
        found = [
            {"id": _id(about), "value": [about.steps[0], about.steps[-1]]}
            for _, about in _all(run)
            if not about.is_final
        ]
        return {"intervals": sorted(found, key=lambda one: one["value"][0])}

    def listed(request: Request) -> dict:
        query = request.query_params
        wanted = query.get("type", "interval"), query.get("interval_id", "")
        return {"landscapes": [_landscape(library, id, *wanted) for id in query.getlist("train_id")]}

    return [
        route("/datavisual/landscape/intervals", intervals),
        route("/datavisual/landscape/landscapes", listed),
    ]


def _landscape(library: Library, id: str, type: str, interval: str) -> dict:
    """The landscape that is asked for, or the code of what is missing.  Errors: Refused for no such run."""
    if not id.startswith("./"):
        return {"error_code": _WRONG_ID, "train_id": id}
    run = run_by_id(library, id)
    for entry, about in _all(run):
        if type == "final" and about.is_final or type == "interval" and _id(about) == interval:
            with turn:
                found = landscapes.decode(message(run, entry))
            return {
                "train_id": id,
                "points": _axes(found.grid),
                **({"path": {**_axes(found.path), "intervals": about.steps}} if found.path else {}),
                "metadata": {
                    "decomposition": about.decomposition,
                    "unit": about.unit,
                    "step_per_epoch": about.steps_per_epoch,
                    **_training(library, run),
                },
                "convergence_point": _point(found.end),
            }
    return {"error_code": _NO_LANDSCAPE, "train_id": id}


def _all(run: Run) -> Iterator[tuple[Entry, landscapes.About]]:
    """The last landscape of each tag."""
    for tag in run.tags():
        if tag.kind == Kind.LANDSCAPE:
            entry = entries(run, Kind.LANDSCAPE, tag.name)[-1]
            yield entry, landscapes.about(message(run, entry))


def _id(about: landscapes.About) -> str:
    """The same for equal steps, in all runs, so that they can be compared."""
    return "" if about.is_final else hashlib.sha256(repr(about.steps).encode()).hexdigest()[:16]


def _axes(points: landscapes.Points) -> dict[str, list]:
    return {axis: _cells(getattr(points, axis)) for axis in "xyz"}


def _cells(values: np.ndarray) -> list:
    """Nested lists; what is not finite is null."""
    cells = values.astype(object)
    cells[~np.isfinite(values)] = None
    return cells.tolist()


def _point(end: landscapes.Points | None) -> list[float | None]:
    return [0, 0, 0] if end is None else [_cells(axis.reshape(-1))[0] for axis in (end.x, end.y, end.z)]


def _training(library: Library, run: Run) -> dict:
    lineage = library.lineages.of(run, run.tags())
    if not lineage.is_whole:
        return {"network": None, "learning_rate": None, "optimizer": None, "metric": {}}
    return {
        "network": lineage.fields.get("network"),
        "optimizer": lineage.fields.get("optimizer"),
        "metric": lineage.metrics,
        "learning_rate": _short(lineage.fields.get("learning_rate")),
        "loss": _short(lineage.fields.get("loss")),
    }


def _short(value: object) -> str | None:
    return f"{value:e}" if isinstance(value, (int, float)) else None
