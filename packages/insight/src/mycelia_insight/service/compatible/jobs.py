"""The list of runs, and the tags that each has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mycelia_insight.runs.dumps import dump_name
from mycelia_insight.runs.graphs import graph_name, sources
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.compatible.common import (
    Refused,
    answer,
    body_or_refused,
    need,
    route,
    run_of,
    whole,
)
from mycelia_insight.service.debugging import Debugging

_PLUGINS = {
    Kind.GRAPH: "graph", Kind.HISTOGRAM: "histogram", Kind.IMAGE: "image", Kind.SCALAR: "scalar",
    Kind.TENSOR: "tensor", Kind.LANDSCAPE: "loss_landscape",
}  # fmt: skip
_KNOWN = ("graph", "optimized_graph", *list(_PLUGINS.values())[1:])
_MOST_RUNS = 999


def routes(library: Library, debugging: Debugging) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def train_jobs(request: Request) -> dict:
        offset, limit = whole(request, "offset", 0, 0, 10**6), whole(request, "limit", 10, 1, _MOST_RUNS)
        rows = sorted((_job(run) for run in library.runs()), key=lambda job: job["update_time"], reverse=True)
        return {
            "load_status": "loaded" if library.loaded else "loading",
            "name": os.path.basename(library.base),
            "total": len(rows),
            "train_jobs": rows[offset * limit : (offset + 1) * limit],
        }

    def plugins(request: Request) -> dict:
        return {"plugins": _plugins(run_of(library, request))}

    def single_job(request: Request) -> dict:
        plugin = need(request, "plugin_name")
        if plugin not in _KNOWN:
            raise Refused(400, "5054500B", f"Plugin is not available. Detail: {plugin[:80]} is unknown.")
        run = run_of(library, request)
        return {"train_jobs": [{"id": run.id, "name": run.id, "tags": _plugins(run)[plugin]}]}

    async def caches(request: Request) -> Response:
        return await answer(lambda: _cached(library, request))

    def ui_config(_request: Request) -> dict:
        return {"enable_debugger": debugging.online is not None}

    return [
        route("/ui-config", ui_config),
        route("/datavisual/train-jobs", train_jobs),
        route("/datavisual/plugins", plugins),
        route("/datavisual/single-job", single_job),
        Route("/datavisual/train-job-caches", caches, methods=["POST"]),
    ]


def _plugins(run: Run) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in _KNOWN}
    for tag in run.tags():
        if tag.kind in _PLUGINS and tag.kind != Kind.GRAPH:
            found[_PLUGINS[tag.kind]].append(f"{tag.name}/{_PLUGINS[tag.kind]}")
    found["graph"] = sorted({graph_name(run, source) for source in sources(run)})
    found["optimized_graph"] = [f"{name} (optimized)" for name in found["graph"]]
    return {plugin: sorted(names) for plugin, names in found.items()}


async def _cached(library: Library, request: Request) -> dict:
    """Runs are always read; those that are not there are left out."""
    body: Any = await body_or_refused(request)
    if not isinstance(body, dict) or not body.get("train_ids") and body.get("train_ids") != []:
        raise Refused(400, "50540003", "Param missing. 'train_ids' is required.")
    if not isinstance(body["train_ids"], list):
        raise Refused(400, "50540001", "Invalid parameter type. 'train_ids' expect <class 'list'> type.")
    known = [id for id in body["train_ids"] if isinstance(id, str) and library.get(id)]
    return {"cache_result": [{"train_id": id, "cache_status": "CACHED"} for id in known]}


def _job(run: Run) -> dict:
    tags = run.tags()

    def text(seconds: float) -> str:
        try:
            return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
        except (ValueError, OverflowError, OSError):  # a time that no calendar has
            return text(0)

    return {
        "train_id": run.id,
        "relative_path": run.id,
        "create_time": text(min((tag.first_time for tag in tags), default=run.written)),
        "update_time": text(max((tag.last_time for tag in tags), default=run.written)),
        "cache_status": "CACHED",
        # As MindInsight has it, but for the folder itself, which it does not look at.
        "dump_dir": dump_name(run.dumps[-1]) if run.dumps else None,
        "profiler_dir": None,
        "profiler_type": "",
        "graph_files": sum(source.step is None for source in sources(run)),
        "summary_files": run.file_count(lineage=False),
        "lineage_files": run.file_count(lineage=True),
        "is_integrity": not run.broken(),
        "plugins": _plugins(run),
    }
