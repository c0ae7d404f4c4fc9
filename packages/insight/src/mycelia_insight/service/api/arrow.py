"""Points of scalars as a stream of Apache Arrow, for those who ask for it; needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from mycelia_insight.runs.curves import Curve
from mycelia_insight.service.endpoints import RequestError

MEDIA_TYPE = "application/vnd.apache.arrow.stream"


def is_wanted(request: Request) -> bool:
    """Whether `Accept` names it."""
    accepted = request.headers.get("accept", "").split(",")
    return any(one.partition(";")[0].strip().lower() == MEDIA_TYPE for one in accepted)


def answer(series: Sequence[tuple[str, str, Curve]], with_smoothed: bool) -> Response:
    """One table of (run, tag, curve): run, tag, step int64, wall_time float64 in seconds since 1970, value
    float32, then smoothed and x, float32, where they are asked for. What is not finite is as it is.

    Errors: RequestError (406) without pyarrow.
    """
    try:
        import pyarrow
        from pyarrow import ipc
    except ImportError:
        text = f"{MEDIA_TYPE} needs pyarrow: pip install 'mycelia-insight[parquet]'; JSON needs nothing"
        raise RequestError(406, text) from None

    def named(place: int) -> pyarrow.Array:
        names = [one[place] for one in series]
        counts = [len(curve.points.steps) for *_, curve in series]
        indices = np.repeat(np.arange(len(series), dtype=np.int32), counts)
        return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(names, pyarrow.string()))

    def column(values: Sequence[np.ndarray], dtype: type) -> pyarrow.Array:
        return pyarrow.array(np.concatenate([np.empty(0, dtype), *values]).astype(dtype, copy=False))

    points = [curve.points for *_, curve in series]
    columns = {
        "run": named(0), "tag": named(1), "step": column([one.steps for one in points], np.int64),
        "wall_time": column([one.times for one in points], np.float64),
        "value": column([one.values for one in points], np.float32),
    }  # fmt: skip
    if with_smoothed:
        columns["smoothed"] = column([one.smoothed for one in points], np.float32)
    places = [curve.x for *_, curve in series if curve.x is not None]
    if places:
        columns["x"] = column(places, np.float32)
    table = pyarrow.table(columns)
    out = io.BytesIO()
    with ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return Response(out.getvalue(), media_type=MEDIA_TYPE)
