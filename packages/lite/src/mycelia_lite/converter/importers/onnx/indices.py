"""ONNX operators with indices: gathering, scattering, order, places of largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    cast,
    integers,
    is_number,
    known,
    known_shape,
    need_known,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.runtime_op import at_run_time, custom


def _from_front(call: Call, indices: Any, n: Any) -> Any:
    """Indices into an axis of size n, constants counted from the front; those out of range are an error."""
    numbers = known(indices)
    if numbers is None or numbers.size == 0 or type(n) is not int:
        return indices  # the kernels count negative ones from the back, and refuse what is out of range
    if numbers.min() < -n or numbers.max() >= n:
        raise call.misfit(f"indices from {numbers.min()} to {numbers.max()} into an axis of {n}")
    if (numbers >= 0).all():
        return indices
    call.fixed = True
    return ms.Tensor(np.where(numbers < 0, numbers + n, numbers))


@operator("Gather")
def _gather(call, x, indices):
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    return ops.gather(x, _from_front(call, indices, shape_of(x)[axis]), axis)


@operator("GatherElements")
def _gather_elements(call, x, indices):
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    return ops.gather_elements(x, axis, _from_front(call, indices, shape_of(x)[axis]))


def _tuples(call: Call, shape: tuple, indices: Any) -> Any:
    """Indices whose last axis runs over the first axes of `shape`, counted from the front."""
    numbers = known(indices)
    if numbers is not None and all(map(is_number, shape)):
        if numbers.size and ((numbers >= shape) | (numbers < np.negative(shape))).any():
            raise call.misfit(f"indices {numbers.min()} to {numbers.max()} into axes of {list(shape)}")
        call.fixed = bool((numbers < 0).any())
        return ms.Tensor(np.where(numbers < 0, numbers + np.asarray(shape), numbers).astype(numbers.dtype))
    return indices


@operator("GatherND")
def _gather_nd(call, x, indices):
    batch = call.get("batch_dims", 0)
    sizes, last = shape_of(x), len(shape_of(indices)) - 1
    depth = known_shape(call, indices, (last,))[last]
    if batch + depth > len(sizes):
        raise call.misfit(f"indices of {depth} entries into {len(sizes)} axes, {batch} of the batch")
    indices = _tuples(call, sizes[batch : batch + depth], indices)
    if batch:
        call.fixed = True
        places = known_shape(call, indices)
        grid = np.meshgrid(*(np.arange(n) for n in places[:batch]), indexing="ij")
        grid = np.stack(grid, -1).reshape(*places[:batch], *(1,) * (len(places) - batch - 1), batch)
        grid = np.broadcast_to(grid, (*places[:-1], batch))
        lead = cast(ms.Tensor(np.ascontiguousarray(grid)), indices.dtype)
        indices = ops.concat((lead, indices), -1)
    return ops.gather_nd(x, indices)


_KINDS = {"none": 0, "add": 1, "mul": 3, "max": 5, "min": 6}  # as the runtime has them
SCATTERED = {
    "none": ops.tensor_scatter_update, "add": ops.tensor_scatter_add, "mul": ops.tensor_scatter_mul,
    "max": ops.tensor_scatter_max, "min": ops.tensor_scatter_min,
}  # fmt: skip


@operator("ScatterND")
def _scatter_nd(call, x, indices, updates):
    kind = call.choice("reduction", "none", SCATTERED)
    last = len(shape_of(indices)) - 1
    depth = known_shape(call, indices, (last,))[last]
    indices = _tuples(call, shape_of(x)[:depth], indices)
    if _are_open(x, indices, updates):
        given, types = [x, indices, updates], [(x.dtype, run_time.opened(x))]
        return custom("tensor_scatter", given, types, reduction=_KINDS[kind])
    return SCATTERED[kind](x, indices, updates)


def _are_open(*values: Any) -> bool:
    return not all(is_number(n) for value in values for n in shape_of(value))


@operator("ScatterElements", "Scatter")
def _scatter_elements(call, x, indices, updates):
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    how = call.choice("reduction", "none", ("none", "add", "mul", "max", "min"))
    indices = _from_front(call, indices, shape_of(x)[axis])
    if _are_open(x, indices, updates):
        given, types = [x, indices, updates], [(x.dtype, run_time.opened(x))]
        return custom("scatter_elements", given, types, axis=axis, reduction=_KINDS[how])
    if how in ("none", "add"):
        return ops.tensor_scatter_elements(x, indices, updates, axis, how)
    shape = shape_of(indices)
    grid = [cast(ms.Tensor(np.ascontiguousarray(g)), indices.dtype) for g in np.indices(shape)]
    grid[axis] = indices
    return SCATTERED[how](x, ops.stack(grid, -1), updates)


@operator("OneHot")
def _one_hot(call, indices, depth, values):
    """Rows with values[1] at the index, values[0] elsewhere; an index out of range has none."""
    axis = positive_axis(call, call.get("axis", -1), indices.ndim + 1)
    indices = cast(indices, ms.int64)
    if run_time.is_data(depth):
        n = cast(ops.reshape(depth, ()), ms.int64)
        places = run_time.counted(n)
    else:
        n = scalar(int(need_known(call, depth, "depth").reshape(())), indices)
        call.require_room(n.item())
        places = ms.Tensor(np.arange(n.item()))
    indices = ops.where(ops.less(indices, scalar(0, indices)), ops.add(indices, n), indices)
    places = along(places, axis, indices.ndim + 1)
    hit = ops.equal(ops.expand_dims(indices, axis), places)
    return ops.where(hit, values[1], values[0])


def _extreme(call: Call, x: Any, function: Any) -> Any:
    axis = positive_axis(call, call.get("axis", 0), x.ndim)
    last = call.version >= 12 and call.get("select_last_index", 0)
    if last:
        n = shape_of(x)[axis]
        call.fixed = is_number(n) and known(x) is None
        end = ms.Tensor(n - 1) if is_number(n) else ops.sub(run_time.sizes(x)[axis], ms.Tensor(1))
        x = ops.flip(x, (axis,))
    found = cast(function(x, axis), ms.int64)
    found = ops.sub(end, found) if last else found
    return ops.expand_dims(found, axis) if call.get("keepdims", 1) else found


@operator("ArgMax")
def _arg_max(call, x):
    return _extreme(call, x, lambda x, axis: ops.argmax(x, axis))


@operator("ArgMin")
def _arg_min(call, x):
    return _extreme(call, x, lambda x, axis: ops.argmin(x, axis))


@operator("TopK")
def _top_k(call, x, k=None):
    """The k largest (smallest) elements in order, of equal ones those with lower indices."""
    data = k is not None and run_time.is_data(k)
    count = call.need("k") if call.version < 10 else None if data else integers(call, k, "K")[0]
    axis = positive_axis(call, call.get("axis", -1), x.ndim)
    largest = bool(call.get("largest", 1)) if call.version >= 11 else True
    if call.version >= 11:
        call.get("sorted")  # in order is right, too, where no order is asked for
    if data or not is_number(shape_of(x)[axis]):
        return run_time.top_k(call, x, k if data else ms.Tensor([count]), axis, largest)
    n = known_shape(call, x, (axis,))[axis]
    if not 0 < count <= n:
        raise call.misfit(f"{count} of {n} elements")
    values, places = ops.topk(x, count, axis, largest, True)
    return values, cast(places, ms.int64)


@operator("ReverseSequence")
def _reverse_sequence(call, x, lengths):
    batch, time = call.get("batch_axis", 1), call.get("time_axis", 0)
    if _are_open(x, lengths):
        axes = {"batch_dim": positive_axis(call, batch, x.ndim), "seq_dim": positive_axis(call, time, x.ndim)}
        return at_run_time("ReverseSequence", (x, lengths), [(x.dtype, run_time.opened(x))], **axes)
    call.fixed = known(x) is None
    return ops.reverse_sequence(x, lengths, time, batch)


@operator("TfIdfVectorizer")
def _ngrams(call, x):
    """How often each sequence of numbers of the pool comes in the rows of x, weighted."""
    if call.get("pool_strings"):
        raise call.attribute("pool_strings", "text is not imported")
    mode = call.choice("mode", None, ("TF", "IDF", "TFIDF"))
    pool, starts = call.need("pool_int64s"), [*call.need("ngram_counts")]
    places, weights = call.need("ngram_indexes"), call.get("weights")
    least, most = call.need("min_gram_length"), call.need("max_gram_length")
    skips = call.need("max_skip_count")
    rows = ops.reshape(x, (1, -1)) if x.ndim == 1 else x
    batch, length = known_shape(call, rows)
    counts = ops.zeros((batch, max(places) + 1), ms.float32)
    starts.append(len(pool))
    order = 0
    for n in range(1, len(starts)):
        grams = np.asarray(pool[starts[n - 1] : starts[n]], np.int64).reshape(-1, n)
        columns = places[order : order + len(grams)]
        order += len(grams)
        if not len(grams) or not least <= n <= most:
            continue
        found = None
        for skip in range(skips + 1 if n > 1 else 1):
            windows = length - (n - 1) * (skip + 1)
            if windows < 1:
                continue
            at = np.arange(windows)[:, None] + np.arange(n) * (skip + 1)
            parts = ops.reshape(ops.gather(rows, ms.Tensor(at.reshape(-1)), 1), (batch, windows, 1, n))
            same = cast(ops.equal(cast(parts, ms.int64), ms.Tensor(grams)), ms.float32)
            hits = ops.sum(ops.amin(same, 3), 1)
            found = hits if found is None else ops.add(found, hits)
        if found is not None:
            table = np.zeros((len(grams), max(places) + 1), np.float32)
            table[np.arange(len(grams)), columns] = 1
            counts = ops.add(counts, ops.matmul(found, ms.Tensor(table)))
    factors = np.zeros(max(places) + 1, np.float32)
    factors[places] = 1 if weights is None else weights
    if mode == "IDF":
        counts = ops.minimum(counts, ms.Tensor(1.0))
    if mode != "TF":
        counts = ops.mul(counts, ms.Tensor(factors))
    return ops.reshape(counts, (-1,)) if x.ndim == 1 else counts


@operator("OptionalHasElement")
def _has_element(call, x=None):
    return ms.Tensor(x is not None)


@operator("OptionalGetElement")
def _element(call, x):
    return x
