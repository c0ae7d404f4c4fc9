"""The list of runs, their tags, and what of them has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mycelia_insight.runs.discovery import GRAPHS
from mycelia_insight.runs.dumps import dump_name
from mycelia_insight.runs.embeddings import CONFIG, has_projector
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.lineages import Lineage
from mycelia_insight.runs.notes import Note
from mycelia_insight.runs.run import Run, Tag
from mycelia_insight.runs.status import status_of
from mycelia_insight.service.api.common import QUERY, RUN, chosen, kind_of, name_of, number, run_of
from mycelia_insight.service.endpoints import Table


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get("/runs", QUERY)
    def runs(_request: Request, query: str) -> dict:
        """All runs that a query is true of, the one that was written to last first.

        `status`: running, finished, failed, stalled, or unknown, where a file of TensorBoard's has no end and
        nothing was written for a while. `best`: of a metric, with its step where the metric is a scalar.
        `dumps`: those in the run's folder, as the debugger opens them.
        """
        rows = [_row(library, *one) for one in chosen(library, query)]
        return {
            "base": library.base,
            "loading": not library.loaded,
            "may_delete": library.may_delete,
            "runs": sorted(rows, key=lambda row: (-row["updated"], row["run"])),
        }

    @table.get("/runs/{run:path}/tags", RUN)
    def tags(_request: Request, run: str) -> dict:
        """Tags of a run by their kinds, and broken records of its files.

        The configuration of TensorBoard's projector, a file, stands under `projector`, files of graphs as one
        tag under `graph`, scalars of the machine (`system/...`) under `system`.
        """
        found = run_of(library, run)
        kinds: dict[str, list[dict]] = {}
        for tag in found.tags():
            kinds.setdefault(kind_of(tag), []).append({
                "tag": tag.name, "count": tag.count, "first_step": tag.first_step, "last_step": tag.last_step,
                "first_time": tag.first_time, "last_time": tag.last_time,
                **({"last_value": number(tag.last_value)} if tag.kind == Kind.SCALAR else {}),
            })  # fmt: skip
        if has_projector(found):
            kinds["projector"] = [_file_row(CONFIG)]
        if found.has_graph_files:
            kinds.setdefault("graph", []).append(_file_row(", ".join(f"*{one}" for one in GRAPHS)))
        broken = [
            {"file": path, "records": count, "first": [{"offset": at, "what": what} for at, what in first]}
            for path, count, first in found.broken()
        ]
        return {"run": run, "kinds": kinds, "broken": broken}

    @table.get("/stream")
    async def stream(request: Request) -> Response:
        """Runs that have changed, as server-sent events: `data: {"runs": [...]}`."""
        return StreamingResponse(_changes(library, request), media_type="text/event-stream")


def _file_row(name: str) -> dict:
    """Of what lies in files beside the event files."""
    return {"tag": name, "count": 1, "first_step": 0, "last_step": 0, "first_time": 0, "last_time": 0}


async def _changes(library: Library, request: Request) -> AsyncIterator[bytes]:
    loop, waiting, changed = asyncio.get_running_loop(), asyncio.Event(), set()

    def note(id: str) -> None:
        changed.add(name_of(id))
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


def row_of(library: Library, run: Run) -> dict:
    """A run as the list has it."""
    tags = run.tags()
    return _row(library, run, tags, library.lineages.of(run, tags), library.notes.of(run.folder))


def _row(library: Library, run: Run, tags: list[Tag], lineage: Lineage, note: Note) -> dict:
    counts: dict[str, int] = {}
    for tag in tags:
        counts[kind_of(tag)] = counts.get(kind_of(tag), 0) + 1
    if has_projector(run):
        counts["projector"] = 1
    if run.has_graph_files:
        counts["graph"] = counts.get("graph", 0) + 1
    loss, best = library.highlights.loss(tags, lineage), library.highlights.best(run, tags, lineage)
    return {
        "run": name_of(run.id),
        "created": min((tag.first_time for tag in tags), default=0),
        "updated": max((tag.last_time for tag in tags), default=run.written),
        "step": max((tag.last_step for tag in tags if tag.kind == Kind.SCALAR), default=None),
        "status": status_of(run, tags, lineage, time.time()),
        "loss": None if loss is None else number(loss),
        "best": best and {
            "name": best.name, "value": number(best.value), "step": best.step, "greatest": best.is_greatest,
        },
        "remark": note.remark, "tag": note.tag, "labels": note.labels, "archived": note.archived,
        "has_lineage": lineage.is_whole or bool(lineage.user),
        "tags": counts,
        "dumps": list(map(dump_name, run.dumps)),
        "broken": sum(count for _, count, _ in run.broken()),
    }  # fmt: skip
