"""Tensors: slices with Python's indices, and what their values are like."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.records import tensors as records
from mycelia_insight.records.reading import at_step, entries, message, turn
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, STEP, TAG, numbers, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

MOST_CELLS = 100_000


def add(table: Table, library: Library) -> None:
    """Add the endpoint to `table`."""

    @table.get(
        "/runs/{run:path}/tensor",
        RUN,
        TAG,
        STEP,
        Parameter("dims", str, "indices as Python's, `[0, :, 2:5]`; empty: the first rows and columns", ""),
    )
    def tensor(_request: Request, run: str, tag: str, step: int | None, dims: str) -> dict:
        """A slice of a tensor with at most two dimensions, statistics of it and of all values, and all steps.

        `rows` are lists of one list each if the slice has less than two dimensions.
        """
        of_run = run_of(library, run)
        known = entries(of_run, Kind.TENSOR, tag)
        entry = at_step(known, step)
        with turn:
            found = records.decode(message(of_run, entry), entry.dialect)
            shown = dims or records.first_view(found.values.shape)
            try:
                index = records.parse(shown, found.values.shape)
            except ValueError as error:
                raise RequestError(400, str(error)) from None
            part = found.values[index]
            if part.size > MOST_CELLS:
                raise RequestError(400, f"'dims' select {part.size} values; at most {MOST_CELLS} are shown")
            free = [
                {"dimension": i, "start": one.start, "size": len(range(found.values.shape[i])[one])}
                for i, one in enumerate(index)
                if isinstance(one, slice)
            ]
            table_ = part.reshape((1, -1) if part.ndim < 2 else part.shape)
            if table_.dtype.str in ("<f2", "<f4"):
                table_ = table_.astype("<f8")
            return {
                "run": run,
                "tag": tag,
                "steps": [one.step for one in known],
                "times": [one.time for one in known],
                "step": entry.step,
                "time": entry.time,
                "dtype": found.dtype,
                "shape": found.values.shape,
                "dims": shown,
                "free": free,
                "rows": [numbers(row.copy()) for row in table_],
                "statistics": records.statistics(part),
                "overall": records.statistics(found.values),
            }
