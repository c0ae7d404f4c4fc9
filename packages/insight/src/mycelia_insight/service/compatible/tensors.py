"""Tensors: their statistics, slices and histograms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from starlette.requests import Request
from starlette.routing import BaseRoute

from mycelia_insight.records import histograms, tensors
from mycelia_insight.records.reading import Missing, at_step, message, spread, turn
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Entry, Run
from mycelia_insight.service.compatible.common import Refused, need, route, run_by_id, values_of, whole
from mycelia_insight.service.compatible.histograms import buckets
from mycelia_insight.service.settings import Settings

_DETAILS = ("stats", "data", "histogram")
_MOST_COLUMNS, _MOST_STEPS = 1000, 50
_OWN = ("max", "min", "avg", "count", "nan_count", "neg_inf_count", "pos_inf_count")


def routes(library: Library, settings: Settings) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    most_steps = min(settings.max_tensor_step_size_per_tag or _MOST_STEPS, _MOST_STEPS)
    most_cells = settings.max_tensor_response_data_size

    def of_tags(request: Request) -> dict:
        need(request, "train_id"), need(request, "tag")
        detail = need(request, "detail")
        if detail not in _DETAILS:
            raise Refused(
                400, "50540002", f"Invalid parameter value. 'detail' should be in {list(_DETAILS)}."
            )
        if detail == "data":
            need(request, "step")
            dims = need(request, "dims").strip()  # looked at before steps are
            if not (dims.startswith("[") and dims.endswith("]")) or dims.count(":") > 2:
                text = "Invalid parameter value. 'dims' must be [i, a:b, :], with two ranges at most."
                raise Refused(400, "50540002", text)
        found = []
        for id in request.query_params.getlist("train_id"):
            run = run_by_id(library, id)
            for tag in request.query_params.getlist("tag"):
                entries = values_of(run, Kind.TENSOR, tag, "50545012")
                if "step" in request.query_params:
                    entries = [_at(entries, whole(request, "step", 0, 0, 2**63 - 1))]
                with turn:
                    values = [
                        _value(run, one, detail, request.query_params.get("dims", ""), most_cells)
                        for one in spread(entries, most_steps)
                    ]
                if detail == "histogram":
                    _share_buckets(values)
                found.append({"train_id": id, "tag": tag, "values": values})
        return {"tensors": found}

    return [route("/datavisual/tensors", of_tags)]


def _at(entries: list[Entry], step: int) -> Entry:
    try:
        return at_step(entries, step)
    except Missing:
        raise Refused(400, "50545014", f"The step of tensor is not in cache. Detail: {step}") from None


def _value(run: Run, entry: Entry, detail: str, dims: str, most_cells: int) -> dict:
    found = tensors.decode(message(run, entry), entry.dialect)
    value: dict = {"dims": list(found.values.shape), "data_type": f"DT_{found.dtype.upper()}"}
    part = found.values
    if detail == "data":
        try:
            part = part[tensors.parse(dims, part.shape)]
        except ValueError as error:
            raise Refused(400, "50540002", f"Invalid parameter value. {error}.") from None
        if part.size > most_cells or (part.ndim and part.shape[-1] > _MOST_COLUMNS):
            raise Refused(
                400,
                "50545013",
                f"The data is more than the limit. Detail: {most_cells} values, {_MOST_COLUMNS} columns",
            )
        value["data"] = tensors.cells(part)
    elif detail == "histogram":
        value["histogram_buckets"] = histograms.of_values(part, few=True)
    overall = tensors.statistics(found.values)
    own = overall if part is found.values else tensors.statistics(part)
    value["statistics"] = {
        **{name: own[name] for name in _OWN},
        **{f"overall_{name}": count for name, count in overall.items()},
    }
    return {"step": entry.step, "wall_time": entry.time, "value": value}


def _share_buckets(values: list[dict]) -> None:
    """Puts buckets that all steps share in place of each step's own."""
    own = [one["value"].pop("histogram_buckets") for one in values]
    edges, counts = histograms.shared(own)
    for one, distribution, row in zip(values, own, counts, strict=True):
        held = distribution.counts.size > 0
        one["value"]["histogram_buckets"] = buckets(edges, np.ceil(row)) if held else []
