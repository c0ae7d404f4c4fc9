"""The list of runs, and the tags that each has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.compatible.common import Refused, need, route, run_of, whole

_PLUGINS = {
    Kind.GRAPH: "graph", Kind.HISTOGRAM: "histogram", Kind.IMAGE: "image", Kind.SCALAR: "scalar",
    Kind.TENSOR: "tensor", Kind.LANDSCAPE: "loss_landscape",
}  # fmt: skip
_MOST_RUNS = 999


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def train_jobs(request: Request) -> dict:
        offset, limit = whole(request, "offset", 0, 0, 10**6), whole(request, "limit", 10, 1, _MOST_RUNS)
        rows = sorted((_job(run) for run in library.runs()), key=lambda job: job["update_time"], reverse=True)
        return {
            "load_status": "loaded" if library.loaded else "loading",
            "name": library.base,
            "total": len(rows),
            "train_jobs": rows[offset * limit : (offset + 1) * limit],
        }

    def plugins(request: Request) -> dict:
        return {"plugins": _plugins(run_of(library, request))}

    def single_job(request: Request) -> dict:
        run, plugin = run_of(library, request), need(request, "plugin_name")
        known = _plugins(run)
        if plugin not in known:
            raise Refused(
                400, "50540002", f"Invalid parameter value. 'plugin_name' must be one of {sorted(known)}."
            )
        return {"train_jobs": [{"id": run.id, "name": run.id, "tags": known[plugin]}]}

    def ui_config(_request: Request) -> dict:
        return {"enable_debugger": False}

    return [
        route("/ui-config", ui_config),
        route("/datavisual/train-jobs", train_jobs),
        route("/datavisual/plugins", plugins),
        route("/datavisual/single-job", single_job),
    ]


def _plugins(run: Run) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {
        name: [] for name in ("graph", "optimized_graph", *list(_PLUGINS.values())[1:])
    }
    for tag in run.tags():
        if tag.kind in _PLUGINS:
            plugin = _PLUGINS[tag.kind]
            found[plugin].append(f"{tag.name}/{plugin}" if tag.name else run.id)
    return found


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
