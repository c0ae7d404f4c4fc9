"""Rules of order: sorting, the largest, different elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.elementwise import BOOL, test
from mycelia.io.onnx.rules.reductions import has_nan
from mycelia.io.onnx.rules.table import rule


def _ranked(w: Any, node: Any, x: Any, k: Any, largest: bool) -> list[Any]:
    """The first `k` (a Ref of shape [1]) along an axis in order, and their places."""
    options = dict(axis=node.attrs["axis"] % x.rank, largest=int(largest), sorted=1)
    values, places = w.ops("TopK", [x, k], (None, dtypes.int64), **options)
    return [values, w.cast(places, node.outputs[1].type.dtype)]


@rule("sort")
def _sort(w, node, x):
    if x.rank == 0:
        return [x, w.constant(np.zeros((), np.int32), node.outputs[1].type.dtype)]
    return _ranked(w, node, x, w.size_of(x, node.attrs["axis"]), node.attrs["descending"])


@rule("topk")
def _topk(w, node, x):
    if x.rank == 0:
        return [x, w.constant(np.zeros((), np.int32), node.outputs[1].type.dtype)]
    return _ranked(w, node, x, w.ints([node.attrs["k"]]), node.attrs["largest"])


@rule("median")
def _median(w, node, x):
    axis, keep = node.attrs["axis"], node.attrs["keepdims"]
    if x.rank == 0:
        return [x, w.constant(np.zeros((), np.int64))]
    axis %= x.rank
    n = x.shape[axis]
    if n < 1 or node.attrs["ignore_nan"]:
        raise Unsupported("median along an axis whose size is left open, or that ignores NaN")
    k = w.ints([(n - 1) // 2 + 1])
    values, places = w.ops("TopK", [x, k], (None, dtypes.int64), axis=axis, largest=0, sorted=1)
    last = [w.slice(v, [-1], [np.iinfo(np.int64).max], [axis], [1]) for v in (values, places)]
    if x.dtype.is_floating:
        hit = has_nan(w, x, [axis], True)
        marks = w.cast(w.op("IsNaN", x, dtype=BOOL), dtypes.int32)
        first = w.op("ArgMax", marks, dtype=dtypes.int64, axis=axis, keepdims=1)
        last = [w.op("Where", hit, w.scalar(np.nan, x), last[0]), w.op("Where", hit, first, last[1])]
    return last if keep else [w.squeeze(v, [axis]) for v in last]


@rule("searchsorted")
def _searchsorted(w, node, sequence, values):
    kind = "LessOrEqual" if node.attrs["right"] else "Less"
    sequence = sequence if sequence.rank == 1 else w.op("Unsqueeze", sequence, w.ints([-2]))
    before = test(w, kind, sequence, w.op("Unsqueeze", values, w.ints([-1])))
    count = w.reduce("ReduceSum", w.cast(before, dtypes.int64), [-1], False)
    return w.cast(count, node.outputs[0].type.dtype)


_UNIQUE = {dtypes.float32, dtypes.float64, dtypes.int8, dtypes.int64}


def _different(w: Any, x: Any, ordered: bool, axis: int | None) -> list[Any]:
    """The different elements or slices, which of them each one is, and how often they occur."""
    kind = x.dtype
    wide = kind if kind in _UNIQUE else dtypes.float32 if kind.is_floating else dtypes.int64
    out = (wide, dtypes.int64, dtypes.int64, dtypes.int64)
    made = w.ops("Unique", [w.cast(x, wide)], out, sorted=int(ordered), axis=axis)
    inverse = made[2] if axis is not None else w.reshape_as(made[2], x)
    return [w.cast(made[0], kind), inverse, made[3]]


@rule("unique")
def _unique(w, node, x):
    values, inverse, _ = _different(w, x, False, None)
    return [values, w.cast(inverse, node.outputs[1].type.dtype)]


@rule("unique_sorted")
def _unique_sorted(w, node, x):
    dim = node.attrs["dim"]
    if x.rank == 0:
        raise Unsupported("unique_sorted of a tensor without axes")
    return _different(w, x, True, None if dim is None else dim % x.rank)
