"""Loss landscapes of a run."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request

from mycelia_insight.records import landscapes
from mycelia_insight.records.reading import entries, message, turn
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, numbers, run_of
from mycelia_insight.service.endpoints import Parameter, Table

_LANDSCAPE = Parameter("tag", str, "a landscape, as the list has it")


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get("/runs/{run:path}/landscapes", RUN)
    def landscape_list(_request: Request, run: str) -> dict:
        """Landscapes of a run: the steps of the path of each, none for one around the trained weights."""
        found = run_of(library, run)
        listed = []
        for tag in found.tags():
            if tag.kind == Kind.LANDSCAPE:
                entry = entries(found, Kind.LANDSCAPE, tag.name)[-1]
                about = landscapes.about(message(found, entry))
                listed.append({"tag": tag.name, "time": entry.time, **_about(about)})
        listed.sort(key=lambda one: (not one["steps"], one["steps"][:1]))
        return {"run": run, "landscapes": listed}

    @table.get("/runs/{run:path}/landscapes/view", RUN, _LANDSCAPE)
    def landscape_view(_request: Request, run: str, tag: str) -> dict:
        """A landscape: places along both axes, losses row after row, the path and the trained weights."""
        found = run_of(library, run)
        entry = entries(found, Kind.LANDSCAPE, tag)[-1]
        with turn:
            one = landscapes.decode(message(found, entry))
        return {
            "run": run,
            "tag": tag,
            **_about(one.about),
            "x": numbers(one.grid.x),
            "y": numbers(one.grid.y),
            "z": [numbers(row) for row in np.ascontiguousarray(one.grid.z)],
            "path": one.path and {axis: numbers(getattr(one.path, axis)) for axis in "xyz"},
            "end": one.end and [numbers(getattr(one.end, axis).reshape(-1))[0] for axis in "xyz"],
        }


def _about(about: landscapes.About) -> dict:
    return {
        "steps": about.steps,
        "decomposition": about.decomposition,
        "unit": about.unit,
        "steps_per_epoch": about.steps_per_epoch,
    }
