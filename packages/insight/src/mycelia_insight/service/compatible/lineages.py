"""Lineage: searched by conditions, remarks and tags changed, importance of parameters for targets."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mycelia_insight.runs import importance
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.lineages import FIELDS, METRIC, USER
from mycelia_insight.service.compatible.common import (
    Refused,
    answer,
    body_or_refused,
    need,
    route,
    run_by_id,
    run_of,
)

_NAMES = {"summary_dir", "dataset_mark", *FIELDS}
_TEXTS = {
    "summary_dir", "dataset_mark", "loss_function", "network", "optimizer", "train_dataset_path",
    "test_dataset_path", "lineage_type",
}  # fmt: skip
_NUMBERS = {"loss", "learning_rate"}
_WHOLE = _NAMES - _TEXTS - _NUMBERS
_CONDITIONS = {"eq", "lt", "gt", "le", "ge", "in", "not_in"}
_OF_TEXTS = {"eq", "in", "not_in"}
_PARTS = ["dataset", "model"]
_MOST_LIMIT, _MOST_OFFSET = 100, 100_000
_NOT_TUNABLE = {"loss", "device_num", "model_size", "test_dataset_count", "train_dataset_count"}


def routes(library: Library) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def search(condition: Any) -> dict:
        _check(condition)
        found = _found(library, condition)
        offset, limit = condition.get("offset", 0), condition.get("limit", 10)
        if "offset" in condition or "limit" in condition:
            shown = found[offset * limit : (offset + 1) * limit]
        else:
            shown = found
        types = condition.get("lineage_type") or {"in": _PARTS}
        wanted = types["in"] if "in" in types else [types.get("eq")]
        return {
            "customized": _customized(shown),
            "object": [_object(row, wanted) for row in shown],
            "count": len(found),
        }

    def targets(condition: Any) -> dict:
        _check(condition)
        return _targets(_found(library, condition))

    def change(request: Request, body: Any) -> dict:
        run = run_by_id(library, need(request, "train_id"))
        if not library.lineages.of(run, run.tags()).is_whole:
            raise _value(f"Cannot update the lineage for tran job {run.id}, because it does not exist.")
        try:
            library.notes.change(run.folder, body)
        except ValueError as error:
            raise _value(str(error)) from error
        except OSError as error:
            raise Refused(
                500, "50540000", f"System error. The note cannot be kept: {error.strerror}"
            ) from error
        return {"status": "success"}

    def dataset_graph(request: Request) -> dict:
        run = run_of(library, request)
        graph = library.lineages.of(run, run.tags()).dataset
        return {"dataset_graph": graph, "summary_dir": run.id} if graph else {}

    async def lineages(request: Request) -> Response:
        async def ask() -> Any:
            if request.method == "PUT":
                return await run_in_threadpool(change, request, await body_or_refused(request))
            return await run_in_threadpool(search, await body_or_refused(request))

        return await answer(ask)

    async def optimizer(request: Request) -> Response:
        async def ask() -> Any:
            return await run_in_threadpool(targets, await body_or_refused(request))

        return await answer(ask)

    return [
        Route("/lineagemgr/lineages", lineages, methods=["POST", "PUT"]),
        Route("/optimizer/targets/search", optimizer, methods=["POST"]),
        route("/datasets/dataset_graph", dataset_graph),
    ]


def _value(text: str) -> Refused:
    return Refused(400, "50540002", f"Invalid parameter value. {text}")


def _wrong(text: str) -> Refused:
    return Refused(400, "50542218", f"Search_condition param error: {text}")


def _is_custom(name: Any) -> bool:
    return isinstance(name, str) and any(name.startswith(p) and name != p for p in (METRIC, USER))


def _check(condition: Any) -> None:
    """Errors: Refused, as MindInsight does."""
    if not isinstance(condition, dict):
        raise _wrong("TypeError. Invalid search_condition type, it should be dict.")
    for name, low, high in (("limit", 1, _MOST_LIMIT), ("offset", 0, _MOST_OFFSET)):
        if name in condition:
            if type(condition[name]) is not int:
                raise _wrong(f"TypeError. The {name} must be int.")
            if not low <= condition[name] <= high:
                raise _wrong(f"Invalid input {name}. {low} <= {name} <= {high}")
    if "sorted_name" in condition:
        name = condition["sorted_name"]
        if not (isinstance(name, str) and (name in _NAMES or name == "tag" or _is_custom(name))):
            raise _wrong(
                f"ValueError. The sorted_name must be in {sorted(_NAMES)} or start with `metric/` or "
                "`user_defined/`."
            )
    if "sorted_type" in condition:
        if "sorted_name" not in condition:
            raise _wrong("ValueError. The sorted_name must exist when sorted_type exists.")
        if condition["sorted_type"] not in ("ascending", "descending", None):
            raise _wrong("ValueError. The sorted_type must be ascending or descending.")
    for name, wanted in condition.items():
        if name not in ("limit", "offset", "sorted_name", "sorted_type"):
            _check_one(name, wanted)


def _check_one(name: str, wanted: Any) -> None:
    if name not in _NAMES and name != "lineage_type" and not _is_custom(name):
        raise _wrong("ValueError. The search attribute not supported.")
    if not isinstance(wanted, dict):
        raise _wrong(f"TypeError. The search_condition element {name} should be dict.")
    if not wanted.keys() <= _CONDITIONS:
        raise _wrong(
            "ValueError. The compare condition should be in ('eq', 'lt', 'gt', 'le', 'ge', 'in', 'not_in')."
        )
    if name in _TEXTS and not wanted.keys() <= _OF_TEXTS:
        raise _wrong(f"The parameter {name} is invalid. Its operation should be `eq`, `in` or `not_in`.")
    for how, value in wanted.items():
        if how in ("in", "not_in"):
            if not isinstance(value, list):
                raise _wrong(
                    f"The parameter {name} is invalid. The value of `in` operation must be list or tuple."
                )
            if name == "lineage_type" and not all(one in _PARTS for one in value):
                raise _wrong(f"Given lineage type should be one of {_PARTS}.")
        elif (
            (name in _TEXTS and not isinstance(value, str))
            or (name in _WHOLE and not (type(value) is int and 0 <= value < 1 << 63))
            or ((name in _NUMBERS or name.startswith(METRIC)) and type(value) not in (int, float))
        ):
            raise _wrong(f"The parameter {name} is invalid. Wrong value type.")
        elif name == "lineage_type" and value not in _PARTS:
            raise _wrong(f"Given lineage type should be one of {_PARTS}.")


def _found(library: Library, condition: dict) -> list[dict]:
    """Rows that the conditions are true of, in the order asked for."""
    rows, marks = [], []
    for run in library.runs():
        tags = run.tags()
        found, note = library.lineages.of(run, tags), library.notes.of(run.folder)
        if not found.is_whole:
            continue
        rows.append({
            "summary_dir": run.id, "updated": max(tag.last_time for tag in tags), "dataset": found.dataset,
            "values": {**dict.fromkeys(FIELDS), **found.fields}, "metric": found.metrics,
            "user_defined": found.user, "added_info": {"remark": note.remark, "tag": note.tag},
        })  # fmt: skip
    rows.sort(key=lambda row: row["summary_dir"])
    for row in rows:  # runs of equal pipelines have equal marks, from "2" on
        if row["dataset"] not in marks:
            marks.append(row["dataset"])
        row["dataset_mark"] = str(marks.index(row["dataset"]) + 2)
    rows.sort(key=lambda row: row["updated"], reverse=True)
    rows = [
        row
        for row in rows
        if all(
            _is_match(how, value, _of(row, name))
            for name, wanted in condition.items()
            if name in _NAMES or _is_custom(name)
            for how, value in wanted.items()
        )
    ]
    if name := condition.get("sorted_name"):
        rows.sort(
            key=functools.cmp_to_key(lambda a, b: _order(_of(a, name), _of(b, name))),
            reverse=condition.get("sorted_type") == "descending",
        )
    return rows


def _of(row: dict, name: str) -> Any:
    if name in ("summary_dir", "dataset_mark"):
        return row[name]
    if name == "tag":
        return row["added_info"]["tag"]
    part, _, rest = name.partition("/")
    return row[part].get(rest) if rest else row["values"].get(name)


def _is_match(how: str, wanted: Any, value: Any) -> bool:
    if how in ("in", "not_in"):
        return (value in wanted) == (how == "in")
    if how == "eq":
        return value == wanted
    try:
        return value is not None and bool(getattr(operator, how)(value, wanted))
    except TypeError:
        return False


def _order(left: Any, right: Any) -> int:
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, str) != isinstance(right, str):
        left, right = type(left).__name__, type(right).__name__
    return (left > right) - (left < right)


def _customized(rows: list[dict]) -> dict:
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for part in ("metric", "user_defined"):
            for name, value in row[part].items():
                kinds.setdefault(f"{part}/{name}", set()).add(type(value).__name__)
    return {
        label: {
            "label": label,
            "required": label.startswith(METRIC),
            "type": min(of) if len(of) == 1 else "float" if of <= {"int", "float"} else "mixed",
        }
        for label, of in kinds.items()
    }


def _object(row: dict, wanted: list) -> dict:
    found: dict[str, Any] = {"summary_dir": row["summary_dir"]}
    if "model" in wanted:
        values = {name: row["values"][name] for name in FIELDS}
        found["model_lineage"] = {
            **values, "dataset_mark": row["dataset_mark"], "metric": row["metric"],
            "user_defined": row["user_defined"],
        }  # fmt: skip
    if "dataset" in wanted:
        found["dataset_graph"] = row["dataset"]
    given = {name: value for name, value in row["added_info"].items() if value}
    return {**found, "added_info": given}


def _targets(rows: list[dict]) -> dict:
    tables = [
        {
            **row["values"],
            **{f"[M]{name}": value for name, value in row["metric"].items()},
            **{f"[U]{name}": value for name, value in row["user_defined"].items()},
        }
        for row in rows
    ]
    names = list(dict.fromkeys(name for table in tables for name in table))
    columns = {name: importance.numbers([table.get(name) for table in tables]) for name in names}
    numeric = {name: of for name, of in columns.items() if of is not None and not all(map(math.isnan, of))}
    aims = [name for name in numeric if name.startswith("[M]") or name == "loss"]
    parameters = [name for name in numeric if name not in aims and name not in _NOT_TUNABLE]
    return {
        "metadata": {
            "train_ids": [row["summary_dir"] for row in rows],
            "possible_hyper_parameters": [
                {"name": name, "data": _data(numeric[name])} for name in parameters
            ],
            "unrecognized_params": [
                {"name": name, "unselected": True, "reason_code": importance.NOT_NUMBERS}
                for name in names
                if name.startswith("[U]") and name not in numeric
            ],
        },
        "targets": [
            {
                "name": aim,
                "buckets": importance.buckets(numeric[aim]),
                "hyper_parameters": _importances(numeric, parameters, aim),
                "data": _data(numeric[aim]),
            }
            for aim in sorted(aims)
        ],
    }


def _importances(numeric: dict, parameters: list[str], aim: str) -> list[dict]:
    told = []
    for name in parameters:
        found, reason = importance.pearson(numeric[name], numeric[aim])
        told.append({"name": name, "importance": found, **({"reason_code": reason} if reason else {})})
    return sorted(told, key=lambda one: (-one["importance"], one["name"].startswith("["), one["name"]))


def _data(values: Any) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
