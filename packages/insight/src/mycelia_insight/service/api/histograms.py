"""Distributions over steps, of recorded histograms and of tensors."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.records import histograms, tensors
from mycelia_insight.records.reading import entries, message, spread, turn
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Entry, Run
from mycelia_insight.service.api.common import RUN, TAG, run_of
from mycelia_insight.service.endpoints import Parameter, Table

_MOST_STEPS = 1000
_MOST_TENSORS = 50  # their buckets are counted anew for each answer


def add(table: Table, library: Library) -> None:
    """Add the endpoint to `table`."""

    @table.get(
        "/runs/{run:path}/histograms",
        RUN,
        TAG,
        Parameter("steps", int, "at most so many steps", 100, 2, _MOST_STEPS),
        Parameter(
            "begin", int, "place of the first of consecutive steps; -1: evenly over all", -1, -1, 2**62
        ),
        Parameter(
            "bins", int, "buckets that all steps share; 0: at most 30, by the number of values", 0, 0, 500
        ),
        Parameter("tensor", bool, "of the tensors of that tag", False),
    )
    def distributions(
        _request: Request, run: str, tag: str, steps: int, begin: int, bins: int, tensor: bool
    ) -> dict:
        """Counts [steps, bins] between edges that all steps share, quantiles, what is not finite.

        `begin` is the place of the first one among all `count` steps, 0 if they are spread.
        """
        of_run = run_of(library, run)
        known = entries(of_run, Kind.TENSOR if tensor else Kind.HISTOGRAM, tag)
        most = min(steps, _MOST_TENSORS) if tensor else steps
        first = max(0, min(begin, len(known) - most))
        chosen = spread(known, most) if begin < 0 else known[first : first + most]
        with turn:
            found = [_read(of_run, entry, tensor) for entry in chosen]
        edges, counts = histograms.shared(found, bins)
        return {
            "run": run,
            "tag": tag,
            "count": len(known),
            "begin": first,
            "steps": [entry.step for entry in chosen],
            "times": [entry.time for entry in chosen],
            "edges": edges,
            "counts": counts,
            "probabilities": histograms.QUANTILES,
            "quantiles": [histograms.quantiles(one) for one in found],
            "nan": [one.nan for one in found],
            "positive_infinity": [one.positive for one in found],
            "negative_infinity": [one.negative for one in found],
        }


def _read(run: Run, entry: Entry, tensor: bool) -> histograms.Distribution:
    if tensor:
        return histograms.of_values(tensors.decode(message(run, entry), entry.dialect).values)
    return histograms.decode(message(run, entry, histograms.MOST_BYTES), entry.dialect)
