"""Rules of indices and masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.reductions.unsorted_segments import _empty
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.elementwise import BOOL, test
from mycelia.io.onnx.rules.table import rule

_REDUCTIONS = {"update": None, "add": "add", "mul": "mul", "max": "max", "min": "min", "sub": "add"}


def index_of(w: Any, x: Any) -> Any:
    """Indices as int64."""
    return w.cast(x, dtypes.int64)


@rule("gather")
def _gather(w, node, x, indices):
    axis, batch = node.attrs["axis"] % x.rank, node.attrs["batch_dims"]
    indices = index_of(w, indices)
    if batch == 0:
        return w.op("Gather", x, indices, axis=axis)
    between = [*range(batch, axis)]
    if between:
        x = w.op("Transpose", x, perm=[*range(batch), axis, *between, *range(axis + 1, x.rank)])
    found = w.op("GatherND", x, w.op("Unsqueeze", indices, w.ints([-1])), batch_dims=batch)
    if not between:
        return found
    inner, rank = indices.rank, node.outputs[0].type.rank
    back = [*range(batch), *(n - batch + inner for n in between), *range(batch, inner)]
    return w.op("Transpose", found, perm=[*back, *range(inner + len(between), rank)])


@rule("embedding")
def _embedding(w, node, ids, weight):
    return w.op("Gather", weight, index_of(w, ids), axis=0)


@rule("gather_d")
def _gather_d(w, node, x, index):
    if x.rank == 0:
        return x
    return w.op("GatherElements", x, index_of(w, index), axis=node.attrs["dim"] % x.rank)


@rule("gather_nd")
def _gather_nd(w, node, x, indices):
    return w.op("GatherND", x, index_of(w, indices))


def arange(w: Any, n: Any) -> Any:
    """0, 1, ... up to a number that may follow from open sizes, or to a Ref of shape [1]."""
    if not isinstance(n, SymInt) and isinstance(n, int):
        return w.constant(np.arange(n, dtype=np.int64))
    end = w.squeeze(w.ints([n]) if type(n) is SymInt else n, [0])
    return w.op("Range", *(w.constant(np.array(0, np.int64)), end, w.constant(np.array(1, np.int64))))


@rule("one_hot")
def _one_hot(w, node, indices, on, off):
    axis = node.attrs["axis"] % (indices.rank + 1)
    steps = w.unsqueeze(arange(w, node.attrs["depth"]), [*range(1, indices.rank + 1 - axis)])
    hit = test(w, "Equal", w.unsqueeze(index_of(w, indices), [axis]), steps)
    return w.op("Where", hit, on, off)


def _reduction(w: Any, reduction: str, updates: Any) -> tuple[str | None, Any]:
    if reduction not in _REDUCTIONS or (reduction in ("max", "min") and w.model.opset < 18):
        raise Unsupported(f"scatter with the reduction {reduction!r}")
    if reduction == "sub":
        updates = w.op("Sub", w.scalar(0, updates), updates)
    return _REDUCTIONS[reduction], updates


def scattered(w: Any, kind: str, x: Any, indices: Any, updates: Any, how: str, **attributes: Any) -> Any:
    """A scatter; types whose sums runtimes lack are computed in a wider one."""
    reduction, updates = _reduction(w, how, updates)
    if reduction is None:
        return w.op(kind, x, indices, updates, **attributes)
    wide = x.dtype
    if wide is dtypes.bfloat16:
        wide = dtypes.float32
    made = w.op(kind, w.cast(x, wide), indices, w.cast(updates, wide), reduction=reduction, **attributes)
    return w.cast(made, x.dtype)


@rule("scatter_elements")
def _scatter_elements(w, node, x, index, src):
    if x.rank == 0:
        raise Unsupported("scatter_elements of a tensor without axes")
    axis = node.attrs["axis"] % x.rank
    if src.shape != index.shape:  # what the indices leave is not used
        if -1 in (*src.shape, *index.shape):
            raise Unsupported("scatter_elements whose source is larger than its indices, with open sizes")
        axes = [*range(x.rank)]
        src = w.slice(src, [0] * x.rank, index.shape, axes, [1] * x.rank)
    return scattered(w, "ScatterElements", x, index_of(w, index), src, node.attrs["reduction"], axis=axis)


@rule("tensor_scatter")
def _tensor_scatter(w, node, x, indices, updates):
    return scattered(w, "ScatterND", x, index_of(w, indices), updates, node.attrs["reduction"])


@rule("scatter_nd")
def _scatter_nd(w, node, indices, updates):
    zeros = w.op("Expand", w.scalar(0, updates), w.ints(node.attrs["shape"]))
    return scattered(w, "ScatterND", zeros, index_of(w, indices), updates, "add")


@rule("index_add", "index_copy")
def _index_update(w, node, x, index, y):
    if x.rank == 0:
        raise Unsupported(f"{node.op.name} of a tensor without axes")
    axis = node.attrs["axis"] % x.rank
    index = w.unsqueeze(index_of(w, index), [d for d in range(x.rank) if d != axis])
    index = w.op("Expand", index, w.shape_of(y))
    how = "add" if node.op.name == "index_add" else "update"
    return scattered(w, "ScatterElements", x, index, y, how, axis=axis)


@rule("unsorted_segment")
def _unsorted_segment(w, node, x, ids):
    """Rows with a negative number go to a row behind the others, which is cut away."""
    how, count, rest = node.attrs["how"], node.attrs["count"], x.shape[ids.rank :]
    if -1 in rest:
        raise Unsupported("unsorted_segment of rows whose sizes are left open")
    ids = w.reshape(index_of(w, ids), (-1, 1))
    ids = w.op("Where", test(w, "Less", ids, w.scalar(0, ids)), w.scalar(count, ids), ids)
    start = w.constant(np.full((count + 1, *rest), _empty(how, x.dtype.np)), x.dtype)
    rows = w.op("Reshape", x, w.ints([-1, *rest])) if 0 not in rest else None
    if rows is None:
        return w.slice(start, [0], [count], [0], [1])
    reduction = {"sum": "add", "prod": "mul"}.get(how, how)
    total = scattered(w, "ScatterND", start, ids, rows, reduction)
    return w.slice(total, [0], [count], [0], [1])


@rule("pool_take")
def _pool_take(w, node, x, index):
    if 0 in (*x.shape, *index.shape):
        raise Unsupported("pool_take of nothing")
    flat, places = w.op("Reshape", x, w.ints([0, 0, -1])), w.op("Reshape", index, w.ints([0, 0, -1]))
    return w.reshape_as(w.op("GatherElements", flat, index_of(w, places), axis=2), index)


@rule("max_unpool", "pool_scatter")
def _max_unpool(w, node, x, index):
    if -1 in x.shape[1:] or 0 in x.shape:
        raise Unsupported(f"{node.op.name} of planes whose sizes are left open, or of nothing")
    size = node.attrs["size"]
    plane = w.op("Concat", w.size_of(x, 0), w.ints([x.shape[1], math.prod(size)]), axis=0)
    zeros = w.op("Expand", w.scalar(0, x), plane)
    index, x = (w.op("Reshape", v, w.ints([0, 0, -1])) for v in (index_of(w, index), x))
    how = "update" if node.op.name == "max_unpool" else "add"
    made = scattered(w, "ScatterElements", zeros, index, x, how, axis=2)
    return w.op("Reshape", made, w.ints([0, 0, *size]))


# ---- masks --------------------------------------------------------------------------------------


@rule("nonzero")
def _nonzero(w, node, x):
    if x.rank == 0:
        raise Unsupported("nonzero of a tensor without axes")
    return w.op("Transpose", w.op("NonZero", x, dtype=dtypes.int64), perm=[1, 0])


@rule("flat_nonzero")
def _flat_nonzero(w, node, x):
    return w.squeeze(w.op("NonZero", w.reshape(x, (-1,)), dtype=dtypes.int64), [0])


@rule("masked_select")
def _masked_select(w, node, x, mask):
    if x.shape != mask.shape:
        if -1 in (*x.shape, *mask.shape):
            raise Unsupported("masked_select whose mask is broadcast, with open sizes")
        shape = w.ints(np.broadcast_shapes(x.shape, mask.shape))
        x, mask = (w.op("Expand", v, shape) for v in (x, mask))
    return w.op("Compress", w.reshape(x, (-1,)), w.reshape(mask, (-1,)))


@rule("masked_scatter")
def _masked_scatter(w, node, x, mask, source):
    mask = w.op("Expand", mask, w.shape_of(x))
    marks = w.cast(w.reshape(mask, (-1,)), dtypes.int64)
    rank = w.op("Sub", w.op("CumSum", marks, w.constant(np.array(0, np.int64))), w.scalar(1, marks))
    filler = w.op("Concat", w.reshape(source, (-1,)), w.constant(np.zeros(1), x.dtype), axis=0)
    rank = w.op("Max", rank, w.scalar(0, rank))
    picked = w.op("Gather", filler, w.op("Where", w.cast(marks, BOOL), rank, w.scalar(0, rank)), axis=0)
    return w.op("Where", mask, w.reshape_as(picked, x), x)
