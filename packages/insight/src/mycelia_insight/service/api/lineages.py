"""What runs were made of, remarks and tags, and what tells of a target."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
from starlette.requests import Request

from mycelia_insight.runs import importance
from mycelia_insight.runs.forest import FEWEST, permutation
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.lineages import METRIC, columns
from mycelia_insight.service.api.common import QUERY, RUN, chosen, name_of, number, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get("/lineages", QUERY)
    def lineages(_request: Request, query: str) -> dict:
        """Values that runs were made with and reached, by column; pipelines of their data.

        `datasets` are the distinct pipelines; a row's `dataset` is its place among them, null for none.
        """
        rows, datasets, places = [], [], {}
        for run, tags, found, note in _with_lineage(library, query):
            place = None
            if found.dataset:
                key = repr(found.dataset)
                if key not in places:
                    places[key] = len(datasets)
                    datasets.append(found.dataset)
                place = places[key]
            rows.append({
                "run": name_of(run.id), "updated": max(tag.last_time for tag in tags), "dataset": place,
                "values": found.values(), "remark": note.remark, "tag": note.tag,
            })  # fmt: skip
        rows.sort(key=lambda row: (-row["updated"], row["run"]))
        told = columns(row["values"] for row in rows)
        for row in rows:
            row["values"] = {name: _written(value) for name, value in row["values"].items()}
        return {"loading": not library.loaded, "columns": told, "datasets": datasets, "rows": rows}

    @table.get(
        "/targets",
        Parameter("target", str, "name of the column", ""),
        QUERY,
        Parameter("forest", bool, "whether a random forest is grown", False),
    )
    def targets(_request: Request, target: str, query: str, forest: bool) -> dict:
        """What the other columns tell of a target: absolute correlation and mutual information, 0 to 1, and
        `forest`, if it is asked for, the permutation importance in a random forest, null where there is none;
        then `forest_reason` is 2 for fewer than 6 runs, 3 where the parameter or the target does not vary.

        `reason`, where there is no correlation: 1 not all are numbers, 2 fewer than 3 runs have both, 3 it is
        not a number. `information` is told of texts, too.
        """
        rows = [found.values() for _, _, found, _ in _with_lineage(library, query)]
        listed = columns(rows)
        known = [one["name"] for one in listed if one["type"] == "number"]
        preferred = [name for name in known if name.startswith(METRIC)] or [n for n in known if n == "loss"]
        if target and target not in known:
            raise RequestError(404, f"'target': there is no column of numbers {target!r}")
        if not target and known:  # the one that most runs have
            counts = {name: sum(row.get(name) is not None for row in rows) for name in preferred or known}
            target = max(counts, key=counts.__getitem__)
        if not target:
            return {"targets": [], "target": "", "count": 0, "buckets": [], "parameters": []}
        aims = importance.numbers([row.get(target) for row in rows])
        parameters: list[dict[str, Any]] = []
        for name in (one["name"] for one in listed):
            if name == target or name.startswith(METRIC) or name == "loss":
                continue
            given = [row.get(name) for row in rows]
            as_numbers = importance.numbers(given)
            correlation, reason = (
                (0.0, importance.NOT_NUMBERS) if as_numbers is None else importance.pearson(as_numbers, aims)
            )
            told, _ = importance.information(given, aims)
            parameters.append(
                {"name": name, "correlation": correlation, "reason": reason, "information": told}
            )
        if forest:
            given = [[row.get(one["name"]) for row in rows] for one in parameters]
            shares = permutation(given, aims)
            few = np.isfinite(aims).sum() < FEWEST
            for i, one in enumerate(parameters):
                share = math.nan if shares is None else float(shares[i])
                one["forest"] = None if math.isnan(share) else share
                reason = importance.TOO_FEW if few else importance.NOT_A_NUMBER
                one["forest_reason"] = reason if math.isnan(share) else 0
        return {
            "targets": known,
            "target": target,
            "count": int((aims == aims).sum()),
            "buckets": importance.buckets(aims),
            "parameters": parameters,
        }

    @table.put("/runs/{run:path}/notes", RUN)
    def notes(_request: Request, run: str, body: Any) -> dict:
        """Changes a run's `remark`, null or 1 to 128 of A-Z a-z 0-9 _ . -, its `tag`, 0 to 10, its `labels`,
        at most 10 of 1 to 40 characters, or whether it is `archived`.
        """
        try:
            note = library.notes.change(run_of(library, run).folder, body)
        except ValueError as error:
            raise RequestError(400, str(error)) from error
        except OSError as error:
            raise RequestError(507, f"the note cannot be kept: {error.strerror}") from error
        return {"run": run, **asdict(note)}


def _with_lineage(library: Library, query: str) -> list:
    return [one for one in chosen(library, query) if one[2].is_whole or one[2].user]


def _written(value: Any) -> Any:
    return number(value) if isinstance(value, float) else value
