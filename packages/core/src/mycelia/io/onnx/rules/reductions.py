"""Rules of reductions and scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.io.onnx.rules.elementwise import BOOL, logaddexp, test, truncated
from mycelia.io.onnx.rules.table import rule


def axes_of(axis: Any, rank: int) -> list[int]:
    """Axes to reduce, counted from the front; None and nothing: all of them."""
    if axis is None or axis == ():
        return list(range(rank))
    return sorted(a % rank for a in ((axis,) if isinstance(axis, int) else axis)) if rank else []


@rule("sum", "prod")
def _sum(w, node, x):
    keep = node.attrs["keepdim" if node.op.name == "sum" else "keep_dims"]
    axes = axes_of(node.attrs["dim" if node.op.name == "sum" else "axis"], x.rank)
    x = w.cast(x, node.outputs[0].type.dtype)
    return w.reduce("ReduceSum" if node.op.name == "sum" else "ReduceProd", x, axes, keep)


@rule("mean")
def _mean(w, node, x):
    axes, dtype = axes_of(node.attrs["axis"], x.rank), x.dtype
    if dtype.is_floating:
        return w.reduce("ReduceMean", x, axes, node.attrs["keep_dims"])
    found = w.reduce("ReduceMean", w.cast(x, dtypes.float64), axes, node.attrs["keep_dims"])
    return w.cast(truncated(w, found), dtype)


@rule("reduce_max", "reduce_min")
def _extreme(w, node, x):
    kind = "ReduceMax" if node.op.name == "reduce_max" else "ReduceMin"
    return extreme(w, kind, x, axes_of(node.attrs["axis"], x.rank), node.attrs["keepdims"])


def extreme(w: Any, kind: str, x: Any, axes: Any, keep: bool) -> Any:
    """The largest or smallest element; NaN if there is one."""
    found = w.reduce(kind, x, axes, keep)
    if not x.dtype.is_floating or not axes:
        return found
    return w.op("Where", has_nan(w, x, axes, keep), w.scalar(np.nan, x), found)


def has_nan(w: Any, x: Any, axes: Any, keep: bool) -> Any:
    """Whether there is a NaN along axes."""
    marks = w.cast(w.op("IsNaN", x, dtype=BOOL), dtypes.int32)
    return w.cast(w.reduce("ReduceMax", marks, axes, keep), BOOL)


@rule("all", "any")
def _truth(w, node, x):
    axes, keep = axes_of(node.attrs["axis"], x.rank), node.attrs["keep_dims"]
    marks = w.cast(w.cast(x, BOOL), dtypes.int32)
    if node.op.name == "any":
        return test(w, "Greater", w.reduce("ReduceSum", marks, axes, keep), w.scalar(0, marks))
    return w.cast(w.reduce("ReduceProd", marks, axes, keep), BOOL)


@rule("l2_norm")
def _l2_norm(w, node, x):
    axes = axes_of(node.attrs["axis"], x.rank)
    return w.reduce("ReduceL2", x, axes, node.attrs["keepdims"]) if axes else w.op("Abs", x)


@rule("l2_normalize")
def _l2_normalize(w, node, x):
    total = w.reduce("ReduceSumSquare", x, axes_of(node.attrs["axis"], x.rank), True)
    return w.op("Div", x, w.op("Sqrt", w.op("Max", total, w.scalar(node.attrs["epsilon"], x))))


@rule("sum_to")
def _sum_to(w, node, x):
    out = node.outputs[0].type
    lead = x.rank - out.rank
    ones = [i + lead for i, n in enumerate(out.shape) if n == 1 and x.shape[i + lead] != 1]
    if lead:
        x = w.reduce("ReduceSum", x, [*range(lead)], False)
    return w.reduce("ReduceSum", x, [i - lead for i in ones], True)


# ---- places of extremes -----------------------------------------------------------------------------


def _place(w: Any, kind: str, x: Any, axis: int, keep: bool) -> Any:
    """Place of the largest or smallest element: the first of equals, or of NaNs."""
    options = dict(dtype=dtypes.int64, axis=axis, keepdims=int(keep))
    place = w.op(kind, x, **options)
    if not x.dtype.is_floating:
        return place
    nan = w.cast(w.op("IsNaN", x, dtype=BOOL), dtypes.int32)
    first = w.op("ArgMax", nan, **options)
    return w.op("Where", has_nan(w, x, [axis], keep), first, place)


@rule("argmax", "argmin")
def _argmax(w, node, x):
    axis, keep = node.attrs["axis"], node.attrs["keepdims"]
    kind = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    if x.rank == 0:
        return w.scalar(0, w.constant(np.zeros((), np.int64)))
    if axis is not None:
        return _place(w, kind, w.cast(x, dtypes.uint8) if x.dtype is BOOL else x, axis, keep)
    flat = _place(w, kind, w.reshape(w.cast(x, dtypes.uint8) if x.dtype is BOOL else x, (-1,)), 0, False)
    return w.reshape(flat, (1,) * x.rank) if keep else flat


@rule("max_with_index", "min_with_index")
def _with_index(w, node, x):
    largest, axis, keep = node.op.name == "max_with_index", node.attrs["axis"], node.attrs["keepdims"]
    if x.rank == 0:
        return [x, w.constant(np.zeros((), np.int64), node.outputs[1].type.dtype)]
    axis %= x.rank
    values = extreme(w, "ReduceMax" if largest else "ReduceMin", x, [axis], keep)
    place = _place(w, "ArgMax" if largest else "ArgMin", x, axis, keep)
    return [values, w.cast(place, node.outputs[1].type.dtype)]


# ---- scans -----------------------------------------------------------------------------------------


@rule("cumsum")
def _cumsum(w, node, x):
    if x.rank == 0:
        return x
    axis = w.constant(np.array(node.attrs["axis"] % x.rank, np.int64))
    return w.op("CumSum", x, axis, reverse=int(node.attrs["reverse"]))


def scanned(w: Any, x: Any, axis: int, starts: list[Any], step: Any) -> list[Any]:
    """The rows of what `step(writer, states, row)` gives, (states, results), for those of `x` along an axis.

    starts: numbers that fill the first states, of the dtypes in which they are given.
    """
    inner = w.region("rows")
    states = [w.fresh("state", start.dtype) for start in starts]
    row = w.fresh("row", x.dtype)
    for ref in (*states, row):
        inner.add_input(ref)
    after, rows = step(inner, states, row)
    for ref in (*after, *rows):
        inner.add_output(ref, None)
    rest = [i for i in range(x.rank) if i != axis]
    sizes = w.op("Gather", w.shape_of(x), w.ints(rest), axis=0) if rest else w.ints(())
    first = [w.op("Expand", start, sizes) for start in starts]
    out = [ref.dtype for ref in (*after, *rows)]
    made = w.ops(
        "Scan", [*first, x], out, body=inner.proto, num_scan_inputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis] * len(rows),
    )  # fmt: skip
    return made[len(starts) :]


def _is_trivial(x: Any) -> bool:
    return x.rank == 0 or 0 in x.shape


@rule("cumprod")
def _cumprod(w, node, x):
    if _is_trivial(x):
        return x

    def step(inner: Any, states: list, row: Any) -> Any:
        total = inner.op("Mul", states[0], row)
        return [total], [total]

    return scanned(w, x, node.attrs["axis"] % x.rank, [w.scalar(1, x)], step)[0]


@rule("logcumsumexp")
def _logcumsumexp(w, node, x):
    if _is_trivial(x):
        return x

    def step(inner: Any, states: list, row: Any) -> Any:
        total = logaddexp(inner, states[0], row)
        return [total], [total]

    return scanned(w, x, node.attrs["axis"] % x.rank, [w.scalar(-np.inf, x)], step)[0]


@rule("cummax", "cummin")
def _cummax(w, node, x):
    """The best so far, its place, and the place of the row: of equals the last, NaN from the first NaN on."""
    place = node.outputs[1].type.dtype
    if _is_trivial(x):
        return [x, w.op("Expand", w.constant(np.zeros((), np.int64), place), w.shape_of(x))]
    largest = node.op.name == "cummax"
    if x.dtype.is_floating:
        start = w.scalar(-np.inf if largest else np.inf, x)
    else:
        limits = np.iinfo(x.dtype.np)
        start = w.scalar(limits.min if largest else limits.max, x)
    zero = w.constant(np.zeros((), np.int64))

    def step(inner: Any, states: list, row: Any) -> Any:
        best, at, here = states
        takes = test(inner, "GreaterOrEqual" if largest else "LessOrEqual", row, best)
        if x.dtype.is_floating:
            takes = test(inner, "Or", takes, inner.op("IsNaN", row, dtype=BOOL))
        best, at = inner.op("Where", takes, row, best), inner.op("Where", takes, here, at)
        return [best, at, inner.op("Add", here, inner.scalar(1, here))], [best, at]

    values, places = scanned(w, x, node.attrs["axis"] % x.rank, [start, zero, zero], step)
    return [values, w.cast(places, place)]


@rule("lrn")
def _lrn(w, node, x):
    radius, bias, alpha, beta = (node.attrs[n] for n in ("depth_radius", "bias", "alpha", "beta"))
    size = 2 * radius + 1
    return w.op("LRN", x, size=size, alpha=alpha * size, beta=beta, bias=bias)
