"""Texts and tables of texts."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.records import texts as records
from mycelia_insight.records.reading import entries, message
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, TAG, run_of
from mycelia_insight.service.endpoints import Parameter, Table


def add(table: Table, library: Library) -> None:
    """Add the endpoint to `table`."""

    @table.get(
        "/runs/{run:path}/texts",
        RUN,
        TAG,
        Parameter(
            "before", int, "values before this place in the order they were written; -1: the last ones", -1
        ),
        Parameter("limit", int, "at most so many values", 20, 1, 200),
    )
    def texts(_request: Request, run: str, tag: str, before: int, limit: int) -> dict:
        """Texts, the newest last: rows of cells; one text is one row with one cell."""
        of_run = run_of(library, run)
        known = entries(of_run, Kind.TEXT, tag)
        end = len(known) if before < 0 else min(before, len(known))
        begin = max(0, end - limit)
        return {
            "run": run,
            "tag": tag,
            "count": len(known),
            "first": begin,
            "values": [
                {"step": entry.step, "time": entry.time,
                 "rows": records.decode(message(of_run, entry, records.MOST_BYTES))}
                for entry in known[begin:end]
            ],
        }  # fmt: skip
