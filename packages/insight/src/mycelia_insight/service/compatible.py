"""The part of MindInsight's interface that its clients use: `/v1/mindinsight`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.endpoints import json

_PLUGINS = {
    Kind.GRAPH: "graph", Kind.HISTOGRAM: "histogram", Kind.IMAGE: "image", Kind.SCALAR: "scalar",
    Kind.TENSOR: "tensor", Kind.LANDSCAPE: "loss_landscape",
}  # fmt: skip
_MOST_RUNS = 999


class _Refused(Exception):
    """An answer with an error's code and text."""

    def __init__(self, status: int, code: str, text: str):
        super().__init__(text)
        self.answer = JSONResponse({"error_code": code, "error_msg": text}, status)


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def run_of(request: Request) -> Run:
        id = _need(request, "train_id")
        run = library.get(id if id.startswith("./") else f"./{id}")
        if run is None:
            raise _Refused(400, "50545005", f"Train job is not exist. Detail: {id}")
        return run

    def train_jobs(request: Request) -> dict:
        offset, limit = _whole(request, "offset", 0, 0, 10**6), _whole(request, "limit", 10, 1, _MOST_RUNS)
        rows = sorted((_job(run) for run in library.runs()), key=lambda job: job["update_time"], reverse=True)
        return {
            "load_status": "loaded" if library.loaded else "loading",
            "name": library.base,
            "total": len(rows),
            "train_jobs": rows[offset * limit : (offset + 1) * limit],
        }

    def plugins(request: Request) -> dict:
        return {"plugins": _plugins(run_of(request))}

    def single_job(request: Request) -> dict:
        run, plugin = run_of(request), _need(request, "plugin_name")
        known = _plugins(run)
        if plugin not in known:
            raise _Refused(
                400, "50540002", f"Invalid parameter value. 'plugin_name' must be one of {sorted(known)}."
            )
        return {"train_jobs": [{"id": run.id, "name": run.id, "tags": known[plugin]}]}

    def metadata(request: Request) -> dict:
        return {"metadatas": _values(run_of(request), _need(request, "tag"))}

    def scalars(request: Request) -> dict:
        found = []
        for id in request.query_params.getlist("train_id"):
            run = library.get(id)
            if run is None:
                raise _Refused(400, "50545005", f"Train job is not exist. Detail: {id}")
            for tag in request.query_params.getlist("tag"):
                found.append({"train_id": id, "tag": tag, "values": _values(run, tag)})
        return {"scalars": found}

    def ui_config(_request: Request) -> dict:
        return {"enable_debugger": False}

    return [
        _route("/ui-config", ui_config),
        _route("/datavisual/train-jobs", train_jobs),
        _route("/datavisual/plugins", plugins),
        _route("/datavisual/single-job", single_job),
        _route("/datavisual/scalar/metadata", metadata),
        _route("/datavisual/scalars", scalars),
    ]


def _route(path: str, function) -> Route:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        try:
            return json(await run_in_threadpool(function, request))
        except _Refused as refused:
            return refused.answer

    return Route(path, endpoint)


def _need(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if not value:
        raise _Refused(400, "50540003", f"Param missing. '{name}' is required.")
    return value


def _whole(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or not low <= int(text) <= high:
        raise _Refused(400, "50540002", f"Invalid parameter value. '{name}' should be in [{low}, {high}].")
    return int(text)


def _plugins(run: Run) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {
        name: [] for name in ("graph", "optimized_graph", *list(_PLUGINS.values())[1:])
    }
    for tag in run.tags():
        if tag.kind in _PLUGINS:
            plugin = _PLUGINS[tag.kind]
            found[plugin].append(f"{tag.name}/{plugin}" if tag.name else run.id)
    return found


def _values(run: Run, tag: str) -> list[dict]:
    points = run.points(tag.removesuffix("/scalar"))
    if points is None:
        raise _Refused(400, "5054500E", f"Scalar is not exist. Detail: {tag}")
    columns = zip(points.times.tolist(), points.steps.tolist(), points.values.tolist(), strict=True)
    return [
        {"wall_time": time, "step": step, "value": value if math.isfinite(value) else None}
        for time, step, value in columns
    ]


def _job(run: Run) -> dict:
    tags = run.tags()

    def text(seconds: float) -> str:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")

    return {
        "train_id": run.id,
        "relative_path": run.id,
        "create_time": text(min((tag.first_time for tag in tags), default=0)),
        "update_time": text(max((tag.last_time for tag in tags), default=0)),
        "cache_status": "CACHED",
        "dump_dir": None,
        "profiler_dir": "",
        "profiler_type": "",
        "graph_files": 0,
        "summary_files": run.file_count(lineage=False),
        "lineage_files": run.file_count(lineage=True),
        "is_integrity": not run.broken(),
        "plugins": _plugins(run),
    }
