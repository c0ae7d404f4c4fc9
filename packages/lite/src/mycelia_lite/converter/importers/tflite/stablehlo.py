"""Operators of StableHLO that TensorFlow Lite runs, and its own of the same meaning.

What they mean is StableHLO's specification. Gathers and scatters become those of rows: an axis that is taken
whole stays whole, the others become places in one axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.ir import TensorType
from mycelia_lite.converter import bits
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx.calls import cast, known_shape, need_known, scalar, shape_of
from mycelia_lite.converter.importers.onnx.indices import SCATTERED
from mycelia_lite.converter.importers.tflite.arrays import cut
from mycelia_lite.converter.importers.tflite.calls import Call, as_tensor, operator, rank_of

_MOST = 1 << 28  # elements of windows side by side


for _name, _op in {
    "ADD": ops.add, "MULTIPLY": ops.mul, "MAXIMUM": ops.maximum, "MINIMUM": ops.minimum,
}.items():  # fmt: skip
    operator(f"STABLEHLO_{_name}")(lambda call, a, b, _op=_op: _op(a, b))


@operator("STABLEHLO_SHIFT_LEFT")
def _shift_left(call, a, b):
    """A shift by all bits or more, or by less than none, gives 0."""
    width = np.dtype(a.dtype.np).itemsize * 8
    inside = ops.logical_and(ops.less(b, scalar(width, b)), ops.greater_equal(b, scalar(0, b)))
    moved = ops.bitwise_left_shift(a, ops.where(inside, b, scalar(0, b)))
    return ops.where(inside, cast(moved, a.dtype), scalar(0, a))


@operator("BITCAST", raw=True)
def _bitcast(call, x):
    return bits.reinterpreted(call, as_tensor(x), call.outputs[0].dtype)


# ---- graphs


@operator("STABLEHLO_COMPOSITE", raw=True)
def _composite(call, *inputs):
    """What it is composed of, whatever it is called."""
    table = "StableHLOCompositeOptions"
    for name in ("name", "version", "composite_attributes", "composite_attributes_format"):
        call.get(table, name)
    return tuple(call.around.run(call.get(table, "decomposition_subgraph_index"), inputs, call.around))


@operator("STABLEHLO_CASE", raw=True)
def _case(call, index, *inputs):
    """The branch with this number; the last one for a number that none has."""
    numbers = list(call.get("StablehloCaseOptions", "branch_subgraph_indices"))
    if not numbers:
        raise call.fail("it has no branches", Code.GRAPH_FILE_ERROR)
    index = ops.reshape(as_tensor(index), ())

    def results(number: int, region: Trace) -> list[Any]:
        return [as_tensor(v) for v in call.around.run(number, inputs, call.around.within(region))]

    def chosen(place: int, around: Trace) -> Sequence[Any]:
        if place == len(numbers) - 1:
            return results(numbers[place], around)
        condition = ops.equal(index, scalar(place, index))
        return regions.conditional(
            call, around, condition, lambda region: results(numbers[place], region),
            lambda region: chosen(place + 1, region),
        )  # fmt: skip

    return tuple(chosen(0, call.around.trace))


_ALIKE = {"add": "ADD", "mul": "MUL", "maximum": "MAXIMUM", "minimum": "MINIMUM", "logical_and": "ALL",
          "logical_or": "ANY"}  # fmt: skip


def _computation(call: Call, number: int, dtype: Any) -> str:
    """What a graph makes of two scalars: the name of a reduction, "UPDATE" for the second of them.

    Errors: ConversionError for anything else.
    """
    region = Trace("body", call.around.trace)
    with region:
        pair = [region.parameter(TensorType(dtype, ())) for _ in range(2)]
        (result,) = call.around.run(number, pair, call.around.within(region))
        made, given = region.value_of(as_tensor(result)), [region.value_of(p) for p in pair]
    if made is given[1]:
        return "UPDATE"
    node = made.producer
    if node is None or node.op.name not in _ALIKE or set(node.inputs) != set(given):
        raise call.fail(
            "its computation is none of a sum, product, largest, smallest, all, any or the update"
        )
    return _ALIKE[node.op.name]


# ---- padding and windows


def _beside(x: Any, axis: int, before: int, after: int, fill: Any) -> Any:
    """x with so many elements `fill` in front and behind; fewer where a number is below 0."""
    size = list(shape_of(x))
    kept, begin = [*size], [0] * len(size)
    begin[axis] = max(-before, 0)
    kept[axis] = max(size[axis] + min(before, 0) + min(after, 0), 0)
    parts = [cut(x, begin, [1] * len(size), kept)]
    for count, place in ((before, 0), (after, 1)):
        if count > 0:
            rest = tuple(count if a == axis else n for a, n in enumerate(size))
            parts.insert(place * len(parts), ops.broadcast_to(ops.reshape(fill, (1,) * len(size)), rest))
    return ops.concat(parts, axis) if len(parts) > 1 else parts[0]


def _spread(x: Any, axis: int, gap: int, fill: Any) -> Any:
    """x with `gap` elements `fill` between its own along an axis."""
    size = list(shape_of(x))
    if gap == 0 or size[axis] < 2:
        return x
    wide = _beside(ops.expand_dims(x, axis + 1), axis + 1, 0, gap, fill)
    size[axis] *= gap + 1
    return _beside(ops.reshape(wide, tuple(size)), axis, 0, -gap, fill)


def _padded(
    call: Call, x: Any, fill: Any, low: Sequence[int], high: Sequence[int], inner: Sequence[int]
) -> Any:
    size = known_shape(call, x)
    if not len(low) == len(high) == len(inner) == len(size) or min(inner, default=0) < 0:
        raise call.fail(f"padding {low}, {high}, {inner} of {len(size)} axes", Code.INVALID_OP_ATTR)
    after = [max(n + (n - 1) * gap, 0) + a + b for n, a, b, gap in zip(size, low, high, inner)]
    if min(after, default=0) < 0:
        raise call.fail(f"a result of shape {after}", Code.INVALID_OP_ATTR)
    call.limit(after, x)
    for axis, (a, b, gap) in enumerate(zip(low, high, inner)):
        x = _spread(x, axis, gap, fill)
        x = _beside(x, axis, a, b, fill) if a or b else x
    return x


@operator("STABLEHLO_PAD")
def _pad(call, x, fill):
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return _padded(call, x, fill, *(list(map(int, call.get("StablehloPadOptions", n))) for n in names))


@operator("DILATE")
def _dilate(call, x, factors, fill):
    gaps = [int(n) - 1 for n in need_known(call, factors, "dilations").reshape(-1)]
    return _padded(call, x, fill, [0] * rank_of(x), [0] * rank_of(x), gaps)


_REDUCED: dict[str, tuple[Callable, Callable]] = {
    "ADD": (ops.sum, ops.add), "MUL": (ops.prod, ops.mul), "MINIMUM": (ops.amin, ops.minimum),
    "MAXIMUM": (ops.amax, ops.maximum), "ALL": (ops.amin, ops.minimum), "ANY": (ops.amax, ops.maximum),
}  # fmt: skip


def _windows(
    call: Call, x: Any, first: Any, how: str, spans: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> Any:  # fmt: skip
    """`how` over windows of all axes, axis by axis, and `first`."""
    if how not in _REDUCED:
        raise call.fail(f"windows of which there is {how}", Code.INVALID_OP_ATTR)
    size = known_shape(call, x)
    if not len(spans) == len(strides) == len(dilations) == len(size):
        raise call.fail(
            f"windows {spans} by {strides}, {dilations} of {len(size)} axes", Code.INVALID_OP_ATTR
        )
    if min((*spans, *strides, *dilations), default=1) < 1:
        raise call.fail(f"windows {spans} by {strides}, {dilations}", Code.INVALID_OP_ATTR)
    dtype, (over, both) = x.dtype, _REDUCED[how]
    if dtype is ms.bool_:
        x, first = cast(x, ms.int32), cast(first, ms.int32)
    for axis, (span, stride, gap) in enumerate(zip(spans, strides, dilations)):
        shape = list(shape_of(x))
        count = max((shape[axis] - (span - 1) * gap - 1) // stride + 1, 0)
        if span == 1 and stride == 1:
            continue
        shape[axis : axis + 1] = [count, span]
        if math.prod(shape) > _MOST:
            raise call.fail(f"windows of {math.prod(shape)} elements")
        places = np.arange(count)[:, None] * stride + np.arange(span) * gap
        side = ops.reshape(ops.gather(x, ms.Tensor(places.reshape(-1).astype(np.int32)), axis), tuple(shape))
        x = cast(over(side, (axis + 1,), False), x.dtype)
    return cast(both(x, ops.reshape(first, (1,) * len(size))), dtype)


@operator("STABLEHLO_REDUCE_WINDOW")
def _stablehlo_windows(call, x, first):
    table = "StablehloReduceWindowOptions"
    names = ("window_dimensions", "window_strides", "window_dilations", "base_dilations")
    spans, strides, dilations, base = (list(map(int, call.get(table, n))) or [1] * rank_of(x) for n in names)
    edges = list(map(int, call.get(table, "padding"))) or [0] * (2 * rank_of(x))
    how = _computation(call, call.get(table, "body_subgraph_index"), x.dtype)
    x = _padded(call, x, first, edges[::2], edges[1::2], [n - 1 for n in base])
    return _windows(call, x, first, how, spans, strides, dilations)


@operator("REDUCE_WINDOW")
def _own_windows(call, x, first, spans, strides, dilations):
    names = ("UNSUPPORTED", "ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY")
    number = call.get("ReduceWindowOptions", "reduce_function")
    given = ((spans, "window_shape"), (strides, "window_strides"), (dilations, "window_dilations"))
    sizes = [need_known(call, v, name).reshape(-1).tolist() for v, name in given]
    how = names[number] if 0 <= number < len(names) else str(number)
    return _windows(call, x, first, how, *sizes)


# ---- places


def _tuples(call: Call, indices: Any, axis: int, count: int) -> Any:
    """Vectors of `count` indices along the last axis, int32 or int64."""
    rank = rank_of(indices)
    if not 0 <= axis <= rank:
        raise call.option("index_vector_dim", axis, f"is none of {rank} axes")
    if axis == rank:
        indices, rank = ops.expand_dims(indices, rank), rank + 1
    order = [a for a in range(rank) if a != axis] + [axis]
    if known_shape(call, indices)[axis] != count:
        raise call.fail(f"{known_shape(call, indices)[axis]} indices for {count} axes", Code.INVALID_OP_ATTR)
    return ops.transpose(indices, tuple(order)) if order != sorted(order) else indices


def _whole(size: Sequence[int], taken: Sequence[int], apart: set[int]) -> int:
    """From which axis on the rest is taken whole."""
    front = len(size)
    while front and front - 1 not in apart and taken[front - 1] == size[front - 1]:
        front -= 1
    return front


def _strides(size: Sequence[int]) -> list[int]:
    return [math.prod(size[d + 1 :]) for d in range(len(size))]


def _axes(call: Call, table: str, name: str, rank: int) -> list[int]:
    found = [int(n) for n in call.get(table, name)]
    if len(set(found)) != len(found) or any(not 0 <= n < rank for n in found):
        raise call.option(name, found, f"does not name axes of {rank}")
    return found


@operator("STABLEHLO_GATHER")
def _gather(call, x, indices):
    """Slices of x that begin at the indices, which are moved until the slice lies in x."""
    table, size = "StablehloGatherOptions", known_shape(call, x)
    call.get(table, "indices_are_sorted")
    axes = _axes(call, table, "start_index_map", len(size))
    dropped = _axes(call, table, "collapsed_slice_dims", len(size))
    taken = [int(n) for n in call.get(table, "slice_sizes")]
    if len(taken) != len(size) or any(not 0 <= t <= n for t, n in zip(taken, size)):
        raise call.option("slice_sizes", taken, f"does not fit {list(size)}")
    if any(taken[d] > 1 for d in dropped):
        raise call.option("collapsed_slice_dims", dropped, "names an axis with more than one element")
    starts = _tuples(call, indices, call.get(table, "index_vector_dim"), len(axes))
    batch = known_shape(call, starts)[:-1]
    kept = [d for d in range(len(size)) if d not in dropped]
    rank = len(batch) + len(kept)
    placed = _axes(call, table, "offset_dims", rank)
    if len(placed) != len(kept):
        raise call.option("offset_dims", placed, f"does not place {len(kept)} axes")

    front = _whole(size, taken, {*axes, *dropped})
    strides = _strides(size[:front])
    offsets = np.zeros([taken[d] for d in kept if d < front], np.int64)
    for place, d in enumerate(d for d in kept if d < front):
        offsets += (np.arange(taken[d]) * strides[d]).reshape(
            [-1 if i == place else 1 for i in range(offsets.ndim)]
        )
    index = ms.Tensor(offsets.reshape((1,) * len(batch) + offsets.shape))
    for k, d in enumerate(axes):
        one = cast(ops.gather(starts, ms.Tensor(np.int32(k)), len(batch)), ms.int64)
        one = ops.minimum(ops.maximum(one, scalar(0, one)), scalar(size[d] - taken[d], one))
        one = ops.reshape(one, (*batch, *(1,) * offsets.ndim))
        index = ops.add(index, ops.mul(one, scalar(strides[d], one)))
    index = ops.broadcast_to(index, (*batch, *offsets.shape))
    rows = ops.reshape(x, (math.prod(size[:front]), *size[front:]))
    found = ops.gather(rows, index, 0)
    order = iter(range(len(batch)))
    source = {axis: len(batch) + i for i, axis in enumerate(placed)}
    order = tuple(source[a] if a in source else next(order) for a in range(rank))
    return ops.transpose(found, order) if order != tuple(range(rank)) else found


# By the names that ONNX has for them.
_UPDATES = {"UPDATE": "none", "ADD": "add", "MUL": "mul", "MAXIMUM": "max", "MINIMUM": "min"}


@operator("STABLEHLO_SCATTER")
def _scatter(call, x, indices, updates):
    """x with slices `updates` put or added at the indices; elements that would lie beside x are left out."""
    table, size = "StablehloScatterOptions", known_shape(call, x)
    for name in ("indices_are_sorted", "unique_indices"):
        call.get(table, name)
    how = _computation(call, call.get(table, "update_computation_subgraph_index"), x.dtype)
    if how not in _UPDATES:
        raise call.fail(f"updates by {how}")
    axes = _axes(call, table, "scatter_dims_to_operand_dims", len(size))
    inserted = _axes(call, table, "inserted_window_dims", len(size))
    given = known_shape(call, updates)
    window = _axes(call, table, "update_window_dims", len(given))
    kept = [d for d in range(len(size)) if d not in inserted]
    starts = _tuples(call, indices, call.get(table, "index_vector_dim"), len(axes))
    batch = known_shape(call, starts)[:-1]
    outside = [a for a in range(len(given)) if a not in window]
    if len(window) != len(kept) or tuple(given[a] for a in outside) != batch:
        raise call.fail(
            f"updates {list(given)} at indices {list(batch)} of {list(size)}", Code.INVALID_OP_ATTR
        )
    taken = [1] * len(size)
    for d, a in zip(kept, window):
        taken[d] = given[a]
    front = _whole(size, taken, {*axes, *inserted})
    strides, inner = _strides(size[:front]), [taken[d] for d in range(front)]
    total, everywhere = math.prod(size[:front]), (*batch, *inner)
    index, inside = scalar(0, ms.Tensor(np.int64(0))), ms.Tensor(True)
    for d in range(front):
        at = np.arange(inner[d]).reshape([-1 if i == d else 1 for i in range(front)])
        place = ms.Tensor(at.reshape((1,) * len(batch) + at.shape))
        if d in axes:
            one = cast(ops.gather(starts, ms.Tensor(np.int32(axes.index(d))), len(batch)), ms.int64)
            place = ops.add(place, ops.reshape(one, (*batch, *(1,) * front)))
        fits = ops.logical_and(
            ops.greater_equal(place, scalar(0, place)), ops.less(place, scalar(size[d], place))
        )
        index = ops.add(index, ops.mul(place, scalar(strides[d], place)))
        inside = ops.logical_and(inside, fits)
    beside = scalar(total, index)  # one row more than x has
    index = ops.broadcast_to(ops.where(inside, index, beside), everywhere)
    rest = size[front:]
    rows = ops.reshape(x, (total, *rest))
    rows = ops.concat([rows, ops.zeros((1, *rest), x.dtype)], 0)
    order = (*outside, *window)
    turned = ops.transpose(updates, order) if order != tuple(range(len(given))) else updates
    count = math.prod(everywhere)
    rows = SCATTERED[_UPDATES[how]](rows, ops.reshape(index, (count, 1)), ops.reshape(turned, (count, *rest)))
    return ops.reshape(cut(rows, [0] * rank_of(rows), [1] * rank_of(rows), [total, *rest]), size)
