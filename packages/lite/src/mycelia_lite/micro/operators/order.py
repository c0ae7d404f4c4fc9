"""Elements by their order along an axis, and what runs along one."""

from __future__ import annotations

import math

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.product import NUMBERS
from mycelia_lite.micro.operators.rows import along
from mycelia_lite.micro.program import Step


def _suffix(b: Builder, step: Step) -> str:
    dtype = b.value(step.inputs[0]).dtype.name
    b.require(dtype in NUMBERS, dtype)
    return NUMBERS[dtype]


@lowers("topk", "sort")
def pick(b: Builder, step: Step) -> None:
    """The largest or smallest elements and their places."""
    (x,) = step.inputs
    a, fields = step.attributes, along(b.shape(x), step.attributes["axis"])
    fields |= {"count": a.get("k", fields["size"]), "largest": a.get("largest", a.get("descending"))}
    b.call(step, f"micro_pick_{_suffix(b, step)}", "micro_picking", fields)


@lowers("argmax", "argmin")
def place(b: Builder, step: Step) -> None:
    """The place of the largest or the smallest element."""
    (x,) = step.inputs
    a, shape = step.attributes, b.shape(x)
    fields = along(shape, a["axis"]) if a["has_axis"] else along((math.prod(shape),), 0)
    fields |= {"count": 1, "largest": int(step.op == "argmax")}
    b.call(step, f"micro_place_{_suffix(b, step)}", "micro_picking", fields)


_RUNNING = {"cumsum": "sum", "cumprod": "product"}


@lowers(*_RUNNING)
def running(b: Builder, step: Step) -> None:
    """Sums or products of all elements up to each one."""
    (x,) = step.inputs
    fields = along(b.shape(x), step.attributes["axis"]) | {"reverse": step.attributes.get("reverse", 0)}
    function = f"micro_running_{_RUNNING[step.op]}_{_suffix(b, step)}"
    b.call(step, function, "micro_running", fields, distances={x: 0})
