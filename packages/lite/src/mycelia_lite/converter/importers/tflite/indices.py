"""Operators of TensorFlow Lite that take, place or count elements by index."""

from __future__ import annotations

import math

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import (
    along,
    cast,
    integers,
    known,
    known_shape,
    need_known,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.tflite.calls import operator, rank_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time, custom

_gather_op = find("gather")


@operator("GATHER")
def _gather(call, x, indices):
    """Elements along an axis; the first `batch_dims` axes of both go together."""
    axis = positive_axis(call, call.get("GatherOptions", "axis"), rank_of(x))
    batch = call.get("GatherOptions", "batch_dims")
    batch = batch + rank_of(indices) if batch < 0 else batch
    if not batch:
        return ops.gather(x, indices, axis)
    if not 0 < batch <= min(axis, rank_of(indices)):
        raise call.option("batch_dims", batch, f"does not fit axis {axis}")
    return _gather_op(x, indices, axis=axis, batch_dims=batch)


@operator("GATHER_ND")
def _gather_nd(call, x, indices):
    return ops.gather_nd(x, indices)


@operator("EMBEDDING_LOOKUP")
def _embedding_lookup(call, indices, table):
    return ops.gather(table, indices, 0)


@operator("EMBEDDING_LOOKUP_SPARSE", sizes=(2,))
def _embedding_lookup_sparse(call, ids, places, shape, weights, table):
    """Sums of weighted rows of a table, or means by their weights; zeros where there is no row.

    `places` [n, rank]: where in `shape` each of the `ids` [n] stands; along the last axis they are added up.
    """
    combiner = call.name_of("EmbeddingLookupSparseOptions", "combiner")
    sizes, rank = integers(call, shape, "dense_shape"), rank_of(table) - 1
    if shape_of(places)[1:] != (len(sizes),) or not sizes:
        raise call.fail(f"places {list(shape_of(places))} in a shape of {len(sizes)} sizes")
    wide, where = (*sizes[:-1], *shape_of(table)[1:]), places[:, :-1]
    call.limit(wide, table if known(ids) is not None else ids)
    if not sizes[:-1]:  # all in one place: an axis to tell it
        where = ops.zeros_like(places)
    leading = tuple(sizes[:-1]) or (1,)

    def added(x):
        return _scattered(where, x, (*leading, *shape_of(x)[1:]))

    column = ops.reshape(weights, (-1, *(1,) * rank))
    total = added(ops.mul(ops.gather(table, ids, 0), column))
    if combiner != "SUM":
        by = added(column if combiner == "MEAN" else ops.square(column))
        by = by if combiner == "MEAN" else ops.sqrt(by)
        found = ops.greater(added(ops.ones_like(column)), scalar(0, column))
        total = ops.div(total, ops.where(found, by, ops.ones_like(by)))
    return ops.reshape(total, wide)


def _scattered(indices, updates, shape):
    """Zeros of a shape with `updates` added at the indices; of bool, whether any of them is true."""
    narrow = updates.dtype in (ms.bool_, ms.int8, ms.uint8, ms.int16)
    wide = cast(updates, ms.int32) if narrow else updates
    made = ops.tensor_scatter_add(ops.zeros(shape, wide.dtype), indices, wide)
    return cast(made, updates.dtype) if narrow else made


@operator("SCATTER_ND", sizes=(2,))
def _scatter_nd(call, indices, updates, shape):
    """Zeros with `updates` added at the indices."""
    sizes = integers(call, shape, "shape")
    call.limit(sizes, updates)
    return _scattered(indices, updates, tuple(sizes))


@operator("ONE_HOT")
def _one_hot(call, indices, depth, on, off):
    count = int(need_known(call, depth, "depth").reshape(()))
    rank = rank_of(indices) + 1
    axis = call.get("OneHotOptions", "axis")
    axis = rank - 1 if axis == -1 else positive_axis(call, axis, rank)
    call.limit((*shape_of(indices), count), indices)
    hit = ops.equal(
        ops.expand_dims(indices, axis), along(cast(ms.Tensor(np.arange(count)), indices.dtype), axis, rank)
    )
    return ops.where(hit, on, off)


@operator("SPARSE_TO_DENSE")
def _sparse_to_dense(call, indices, shape, values, default):
    """`values` at the indices, `default` elsewhere."""
    call.get("SparseToDenseOptions", "validate_indices")
    sizes = integers(call, shape, "output_shape")
    if known(indices) is None:
        count = shape_of(indices)[0] if rank_of(indices) else 1
        places = ops.reshape(indices, (count, len(sizes)))
        base = ops.broadcast_to(default, tuple(sizes))
        return ops.tensor_scatter_update(base, places, ops.broadcast_to(values, (count,)))
    places = need_known(call, indices, "indices")
    places = places.reshape(-1, 1) if places.ndim < 2 else places
    call.limit(sizes, indices)
    if places.shape[1] != len(sizes) or (places < 0).any() or (places >= np.asarray(sizes)).any():
        raise call.fail(f"indices of shape {list(places.shape)} for {sizes}")
    inside, source = np.zeros(sizes, bool), np.zeros(sizes, np.int64)
    at = tuple(places.T)
    inside[at], source[at] = True, np.arange(len(places))
    spread = values if not rank_of(values) else ops.gather(values, ms.Tensor(source.reshape(-1)), 0)
    spread = ops.reshape(spread, tuple(sizes)) if rank_of(values) else spread
    return ops.where(ms.Tensor(inside), spread, default)


def _segments(call, x, ids, count):
    """Which rows belong to which segment, [count, rows] of the dtype of x."""
    rows = known_shape(call, x, (0,))[0]
    numbers = need_known(call, ids, "segment_ids").reshape(-1)
    if numbers.size != rows:
        raise call.fail(f"{numbers.size} segments for {rows} rows")
    call.limit((count, rows), ids)
    return ms.Tensor((np.arange(count)[:, None] == numbers).astype(x.dtype.np))


@operator("SEGMENT_SUM")
def _segment_sum(call, x, ids):
    """Sums of rows that follow one another, as many as the last number says, which may be data."""
    if known(ids) is None:
        places = cast(ids, ms.int64)
        last = ops.amax(ops.concat((ms.Tensor(np.array([-1])), places), 0), (0,), False)
        count = ops.add(last, scalar(1, last))
        return at_run_time("UnsortedSegmentSum", (x, places, count), [(x.dtype, (OPEN, *shape_of(x)[1:]))])
    numbers = known(ids).reshape(-1)
    if (np.diff(numbers) < 0).any() or numbers.min(initial=0) < 0:
        raise call.fail("segments that are not in order")
    count = int(numbers.max(initial=-1)) + 1
    if not x.dtype.is_floating:
        return _scattered_segments(call, x, ids, ms.Tensor(np.int32(count)), 0, ops.tensor_scatter_add)
    return _segment_product(call, x, ids, count)


@operator("UNSORTED_SEGMENT_SUM")
def _unsorted_segment_sum(call, x, ids, count):
    if known(ids) is None or not x.dtype.is_floating:
        return _scattered_segments(call, x, ids, count, 0, ops.tensor_scatter_add)
    return _segment_product(call, x, ids, int(need_known(call, count, "num_segments").reshape(())))


def _segment_product(call, x, ids, count):
    if not x.dtype.is_floating:
        raise call.fail(f"sums of segments of {x.dtype}")
    shape = known_shape(call, x)
    flat = ops.reshape(x, (shape[0], int(np.prod(shape[1:]))))
    return ops.reshape(ops.matmul(_segments(call, x, ids, count), flat), (count, *shape[1:]))


def _scattered_segments(call, x, ids, count, neutral, scatter):
    """Rows gathered into segments by `scatter`; those of negative numbers are left out.

    A number beyond the last segment ends the run.
    """
    number = int(need_known(call, count, "num_segments").reshape(()))
    shape = known_shape(call, x)
    rows, rest = math.prod(shape[: rank_of(ids)]), shape[rank_of(ids) :]
    if number < 0 or shape_of(ids) != shape[: rank_of(ids)]:
        raise call.fail(f"{number} segments of {list(shape_of(ids))} numbers for {list(shape)}")
    call.limit((number + 1, *rest), x)
    ids = ops.reshape(cast(ids, ms.int64), (rows, 1))
    beyond = ops.where(ops.greater_equal(ids, scalar(number, ids)), scalar(number + 1, ids), ids)
    ids = ops.where(ops.less(ids, scalar(0, ids)), scalar(number, ids), beyond)
    base = ms.Tensor(np.full((number + 1, *rest), neutral, x.dtype.np))
    return scatter(base, ids, ops.reshape(x, (rows, *rest)))[:number]


@operator("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD")
def _unsorted_segment(call, x, ids, count):
    """Each segment on its own; one without rows has the neutral element."""
    if known(ids) is None:
        limits = np.finfo(x.dtype.np) if x.dtype.is_floating else np.iinfo(x.dtype.np)
        neutral, scatter = {
            "UNSORTED_SEGMENT_MAX": (limits.min, ops.tensor_scatter_max),
            "UNSORTED_SEGMENT_MIN": (limits.max, ops.tensor_scatter_min),
            "UNSORTED_SEGMENT_PROD": (1, ops.tensor_scatter_mul),
        }[call.kind]
        return _scattered_segments(call, x, ids, count, neutral, scatter)
    number = int(need_known(call, count, "num_segments").reshape(()))
    shape, rows = known_shape(call, x), need_known(call, ids, "segment_ids").reshape(-1)
    if rows.size != shape[0] or number > 4096:
        raise call.fail(f"{number} segments of {rows.size} numbers for {shape[0]} rows")
    limits = np.finfo(x.dtype.np) if x.dtype.is_floating else np.iinfo(x.dtype.np)
    op, neutral = {
        "UNSORTED_SEGMENT_MAX": (ops.amax, limits.min),
        "UNSORTED_SEGMENT_MIN": (ops.amin, limits.max),
        "UNSORTED_SEGMENT_PROD": (ops.prod, 1),
    }[call.kind]
    made = []
    for i in range(number):
        found = np.flatnonzero(rows == i)
        if not found.size:
            made.append(ops.broadcast_to(scalar(neutral, x), shape[1:]))
        else:
            made.append(op(ops.gather(x, ms.Tensor(found), 0), (0,), False))
    return cast(ops.stack(made, 0), x.dtype)


@operator("WHERE")
def _where(call, condition):
    """The places of what is true, [count, rank]."""
    found = known(condition)
    if found is None:
        places = custom("nonzero", [condition], [(ms.int64, (rank_of(condition), OPEN))])
        return ops.transpose(places, (1, 0))
    return ms.Tensor(np.argwhere(found).astype(np.int64))
