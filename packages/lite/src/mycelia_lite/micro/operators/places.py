"""Elements by places that are data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.product import NUMBERS
from mycelia_lite.micro.program import Step

_MOST_AXES = 8


def _wide(b: Builder, places: int) -> int:
    """Whether places are of 64 bits."""
    dtype = b.value(places).dtype.name
    b.require(dtype in ("int32", "int64"), f"places of {dtype}")
    return int(dtype == "int64")


def _steps(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]


def _axes(numbers: list[int] | tuple[int, ...], rest: int) -> list[int]:
    """Numbers of the last axes of eight."""
    return [rest] * (_MOST_AXES - len(numbers)) + list(numbers)


@lowers("gather")
def gather(b: Builder, step: Step) -> None:
    """Parts of x along an axis."""
    x, places = step.inputs
    value, shape = b.value(x), b.shape(x)
    batches = step.attributes.get("batch_dims", 0)
    axis = step.attributes["axis"] % len(shape)
    fields = {
        "batch": math.prod(shape[:batches]), "outer": math.prod(shape[batches:axis]), "size": shape[axis],
        "inner": math.prod(shape[axis + 1 :]) * value.dtype.itemsize,
        "count": math.prod(b.shape(places)[batches:]), "wide": _wide(b, places),
    }  # fmt: skip
    b.call(step, "micro_gather", "micro_gathering", fields)


def _slices(b: Builder, x: int, places: int) -> dict[str, Any]:
    """The fields of `micro_slices`."""
    value, given = b.value(x), b.shape(places)
    depth = given[-1]
    b.require(depth <= _MOST_AXES, f"places of {depth} numbers")
    return {
        "rows": math.prod(given[:-1]), "depth": depth, "wide": _wide(b, places), "how": 0,
        "inner": math.prod(value.shape[depth:]), "elements": value.size, "size": list(value.shape[:depth]),
        "bytes": value.dtype.itemsize,
    }  # fmt: skip


def _elements(b: Builder, x: int, places: int, axis: int) -> dict[str, Any]:
    """The fields of `micro_elements`."""
    value, shape = b.value(x), b.shape(places)
    axis %= max(1, len(shape))
    b.require(0 < len(shape) <= _MOST_AXES, f"{len(shape)} axes")
    return {
        "count": math.prod(shape), "elements": value.size, "axis": _MOST_AXES - len(shape) + axis,
        "extent": value.shape[axis], "wide": _wide(b, places), "how": 0,
        "size": _axes(shape, 1), "step": _axes(_steps(value.shape), 0), "bytes": value.dtype.itemsize,
    }  # fmt: skip


@lowers("gather_nd")
def gather_slices(b: Builder, step: Step) -> None:
    """Slices of x, each by the first places of its axes."""
    b.call(step, "micro_gather_slices", "micro_slices", _slices(b, *step.inputs))


@lowers("gather_d")
def gather_elements(b: Builder, step: Step) -> None:
    """Single elements along an axis."""
    fields = _elements(b, *step.inputs, step.attributes["dim"])
    b.call(step, "micro_gather_elements", "micro_elements", fields)


def _joining(b: Builder, step: Step) -> tuple[str, int]:
    """What the functions are called that join elements so, and the number of how they do."""
    dtype, how = b.value(step.inputs[0]).dtype, step.attributes["reduction"]
    if how == 0:
        return f"u{8 * dtype.itemsize}", 0
    b.require(dtype.name in NUMBERS and (how < 2 or dtype != np.int32), f"{dtype.name}, joined in way {how}")
    b.require(how != 4 or dtype.kind == "f", f"quotients of {dtype.name}")
    return NUMBERS[dtype.name], how


@lowers("tensor_scatter")
def scatter_slices(b: Builder, step: Step) -> None:
    """x with slices that are replaced, or joined with others."""
    x, places = step.inputs[:2]
    suffix, how = _joining(b, step)
    fields = _slices(b, x, places) | {"how": how}
    b.call(step, f"micro_scatter_slices_{suffix}", "micro_slices", fields, distances={x: 0})


@lowers("scatter_elements")
def scatter_elements(b: Builder, step: Step) -> None:
    """x with single elements along an axis that are replaced, or joined with others."""
    x, places = step.inputs[:2]
    suffix, how = _joining(b, step)
    fields = _elements(b, x, places, step.attributes["axis"]) | {"how": how}
    b.call(step, f"micro_scatter_elements_{suffix}", "micro_elements", fields, distances={x: 0})


@lowers("one_hot")
def one_hot(b: Builder, step: Step) -> None:
    """Rows that have one number at a place and another one elsewhere."""
    (y,) = step.outputs
    shape = b.shape(y)
    axis = step.attributes["axis"] % len(shape)
    fields = {
        "outer": math.prod(shape[:axis]), "depth": shape[axis], "inner": math.prod(shape[axis + 1 :]),
        "wide": _wide(b, step.inputs[0]), "bytes": b.value(y).dtype.itemsize,
    }  # fmt: skip
    b.call(step, "micro_mark", "micro_one_hot", fields)


@lowers("tril", "triu")
def triangle(b: Builder, step: Step) -> None:
    """Matrices without what is above or below a diagonal."""
    (x,) = step.inputs
    shape = b.shape(x)
    rows, columns = shape[-2:]
    fields = {
        "matrices": math.prod(shape[:-2]), "rows": rows, "columns": columns,
        "diagonal": max(-rows, min(step.attributes["diagonal"], columns)), "upper": int(step.op == "triu"),
        "bytes": b.value(x).dtype.itemsize,
    }  # fmt: skip
    b.call(step, "micro_keep_triangle", "micro_triangle", fields, distances={x: 0})


@lowers("reverse_sequence")
def reverse_sequence(b: Builder, step: Step) -> None:
    """The beginnings of sequences the other way round."""
    x, lengths = step.inputs
    b.require(b.value(lengths).dtype == np.int64, f"lengths of {b.value(lengths).dtype.name}")
    shape = b.shape(x)
    along, batch = step.attributes["along"], step.attributes["batch"]
    outer = shape[: max(along, batch) + 1]
    steps = _steps(outer)
    fields = {
        "rows": math.prod(outer), "inner": math.prod(shape[len(outer) :]) * b.value(x).dtype.itemsize,
        "along": shape[along], "along_step": steps[along], "batch": shape[batch], "batch_step": steps[batch],
    }  # fmt: skip
    b.call(step, "micro_reverse", "micro_reversal", fields)
