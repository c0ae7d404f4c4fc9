"""The interface of the pages and of programs: `/api/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_BASE = "@"  # how the base folder itself is called in paths
_RUN = Parameter("run", str, f"path of the run below the base folder, '{_BASE}' for that itself")
_MOST_COLUMNS = 20000
_WORDS = {np.inf: "Infinity", -np.inf: "-Infinity"}


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/api/v1`."""
    table = Table("Mycelia Insight")

    def run_of(name: str) -> Run:
        found = library.get(
            "./" if name == _BASE else f"./{name.removeprefix(_BASE) if name[:2] == '@@' else name}"
        )
        if found is None:
            raise RequestError(404, f"run {name!r} does not exist")
        return found

    @table.get("/openapi.json")
    def openapi(_request: Request) -> dict:
        """This document."""
        return table.document()

    @table.get("/runs")
    def runs(_request: Request) -> dict:
        """All runs, the one that was written to last first."""
        rows = [_row(run) for run in library.runs()]
        return {
            "base": library.base,
            "loading": not library.loaded,
            "runs": sorted(rows, key=lambda row: (-row["updated"], row["run"])),
        }

    @table.get("/runs/{run:path}/tags", _RUN)
    def tags(_request: Request, run: str) -> dict:
        """Tags of a run by their kinds, and broken records of its files."""
        found = run_of(run)
        kinds: dict[str, list[dict]] = {}
        for tag in found.tags():
            kinds.setdefault(tag.kind.name.lower(), []).append({
                "tag": tag.name, "count": tag.count, "first_step": tag.first_step, "last_step": tag.last_step,
                "first_time": tag.first_time, "last_time": tag.last_time,
                **({"last_value": _number(tag.last_value)} if tag.kind == Kind.SCALAR else {}),
            })  # fmt: skip
        broken = [
            {"file": path, "records": count, "first": [{"offset": at, "what": what} for at, what in first]}
            for path, count, first in found.broken()
        ]
        return {"run": run, "kinds": kinds, "broken": broken}

    @table.get(
        "/runs/{run:path}/scalars",
        _RUN,
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
        found = run_of(run)
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
            smoothed = {"smoothed": _numbers(drawn.smoothed)} if smoothing else {}
            series.append(
                {"tag": name, "count": known.count, "first_time": known.first_time, "steps": drawn.steps,
                 "times": drawn.times, "values": _numbers(drawn.values), **smoothed}
            )  # fmt: skip
        return {"run": run, "axis": axis, "series": series}

    @table.get("/stream")
    async def stream(request: Request) -> Response:
        """Runs that have changed, as server-sent events: `data: {"runs": [...]}`."""
        return StreamingResponse(_changes(library, request), media_type="text/event-stream")

    return table.routes


async def _changes(library: Library, request: Request) -> AsyncIterator[bytes]:
    loop, waiting, changed = asyncio.get_running_loop(), asyncio.Event(), set()

    def note(id: str) -> None:
        changed.add(_name(id))
        waiting.set()

    end = library.listen(lambda id: loop.call_soon_threadsafe(note, id))
    try:
        yield b"retry: 1000\n\n"
        while not await request.is_disconnected():
            try:
                await asyncio.wait_for(waiting.wait(), 15)
            except TimeoutError:
                yield b": still here\n\n"
                continue
            waiting.clear()
            names, _ = sorted(changed), changed.clear()
            yield b"data: " + orjson.dumps({"runs": names}) + b"\n\n"
    finally:
        end()


def _name(id: str) -> str:
    """How a run is called in paths: `./a/b` is `a/b`."""
    name = id.removeprefix("./")
    return f"@{name}" if name.startswith("@") else name or _BASE


def _row(run: Run) -> dict:
    tags = run.tags()
    counts: dict[str, int] = {}
    for tag in tags:
        counts[tag.kind.name.lower()] = counts.get(tag.kind.name.lower(), 0) + 1
    return {
        "run": _name(run.id),
        "created": min((tag.first_time for tag in tags), default=0),
        "updated": max((tag.last_time for tag in tags), default=0),
        "step": max((tag.last_step for tag in tags if tag.kind == Kind.SCALAR), default=None),
        "tags": counts,
        "broken": sum(count for _, count, _ in run.broken()),
    }


def _number(value: float) -> float | str:
    return value if np.isfinite(value) else _WORDS.get(value, "NaN")


def _numbers(values: np.ndarray) -> np.ndarray | list:
    """Values as JSON has them: what is not finite as words."""
    odd = np.flatnonzero(~np.isfinite(values))
    if not len(odd):
        return values
    listed = values.tolist()
    for i in odd.tolist():
        listed[i] = _number(listed[i])
    return listed
