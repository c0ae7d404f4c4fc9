"""Elements by places that are data."""

from __future__ import annotations

import math

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step

_PLACES = {"int32": "i32", "int64": "i64"}


@lowers("gather")
def gather(b: Builder, step: Step) -> None:
    """Parts of x along an axis."""
    x, places = step.inputs
    value, shape = b.value(x), b.shape(x)
    batches = step.attributes.get("batch_dims", 0)
    axis = step.attributes["axis"] % len(shape)
    kind = _PLACES.get(b.value(places).dtype.name)
    b.require(kind is not None, f"places of {b.value(places).dtype.name}")
    fields = {
        "batch": math.prod(shape[:batches]), "outer": math.prod(shape[batches:axis]), "size": shape[axis],
        "inner": math.prod(shape[axis + 1 :]) * value.dtype.itemsize,
        "count": math.prod(b.shape(places)[batches:]),
    }  # fmt: skip
    b.call(step, f"micro_gather_{kind}", "micro_gathering", fields)
