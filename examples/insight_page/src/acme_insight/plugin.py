"""The hook, and what the page asks for."""

from __future__ import annotations

from pathlib import Path

from mycelia.hookspecs import hookimpl

HOOK_API = 1
FILES = Path(__file__).parent / "files"


@hookimpl
def mycelia_dashboards(app):
    from starlette.routing import Route

    from mycelia_insight.dashboards import Dashboard

    async def best(request):
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        return JSONResponse(await run_in_threadpool(ranked, app, request.query_params.get("part", "loss")))

    title = {"en": "Ranking", "zh": "排行"}
    return [Dashboard("acme-ranking", title, FILES, [Route("/best", best)])]


def ranked(app, part: str) -> list[dict]:
    """Of each run the scalar whose name has `part` in it and reached the least value, the best run first."""
    import numpy as np

    rows = []
    for run in app.runs():
        for tag in app.scalars(run):
            if part in tag:
                points = app.points(run, tag)
                finite = np.isfinite(points.values)
                if finite.any():
                    at = int(np.where(finite, points.values, np.inf).argmin())
                    value, step = float(points.values[at]), int(points.steps[at])
                    rows.append({"run": run, "tag": tag, "value": value, "step": step})
    return sorted(rows, key=lambda row: (row["value"], row["run"]))
