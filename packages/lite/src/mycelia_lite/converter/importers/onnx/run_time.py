"""ONNX operators whose shapes, axes, counts and the like are data, inputs of operators of the file.

Axes are put last by a Transpose whose order is computed, so that what follows knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    as_tensor,
    cast,
    is_number,
    known,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.sizes import objects, value_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time, custom


def is_data(*values: Any) -> bool:
    """Whether one of these shows only when the model runs. Open sizes are as good as known."""
    return any(v is not None and not isinstance(v, np.ndarray) and known(v) is None for v in values)


def vector(call: Call, value: Any, name: str) -> tuple[Any, int]:
    """An input of integers as int64 [n], and n, which must be known."""
    value = ops.reshape(cast(as_tensor(value), ms.int64), (-1,))
    length = shape_of(value)[0]
    if not is_number(length) or length < 0:
        raise call.fail(f"how many numbers its input '{name}' has is known only when the model runs")
    return value, length


def sizes(x: Any) -> Any:
    """The sizes of x as a tensor."""
    return as_tensor(value_of(objects(shape_of(x))))


def opened(x: Any, *axes: int) -> tuple[int, ...]:
    """The sizes of x, those that are open and those of `axes` as -1."""
    return tuple(n if is_number(n) and i not in axes else OPEN for i, n in enumerate(shape_of(x)))


def require(values: Sequence[Any], condition: Any, reason: str = "") -> list[Any]:
    """The values, in runs where a condition holds; others fail, and tell the reason."""
    condition, more = ops.reshape(condition, ()), {"reason": reason} if reason else {}
    return [custom("require", [x, condition], [(x.dtype, opened(x))], **more) for x in values]


def reshape(call: Call, x: Any, shape: Any) -> Any:
    shape, rank = vector(call, shape, "shape")
    if call.get("allowzero", 0):
        return custom("reshape", [x, shape], [(x.dtype, [OPEN] * rank)])
    return at_run_time("Reshape", (x, shape), [(x.dtype, (OPEN,) * rank)]) if rank else ops.reshape(x, ())


def expand(call: Call, x: Any, shape: Any) -> Any:
    shape, count = vector(call, shape, "shape")
    rank = max(count, x.ndim)
    shape = ops.concat((ms.Tensor(np.ones(rank - count, np.int64)), shape)) if rank > count else shape
    given = sizes(x) if x.ndim else None
    if rank > x.ndim:
        ones = ms.Tensor(np.ones(rank - x.ndim, np.int64))
        given = ones if given is None else ops.concat((ones, given))
    if not rank:
        return x
    target = ops.where(ops.equal(shape, scalar(1, shape)), given, shape)
    return at_run_time("BroadcastTo", (x, target), [(x.dtype, (OPEN,) * rank)])


def filled(call: Call, value: Any, shape: Any, name: str = "input") -> Any:
    """`value`, one element, throughout."""
    shape, rank = vector(call, shape, name)
    value = ops.reshape(value, ())
    return at_run_time("Fill", (value, shape), [(value.dtype, (OPEN,) * rank)]) if rank else value


def tile(call: Call, x: Any, repeats: Any) -> Any:
    repeats, count = vector(call, repeats, "repeats")
    if count != x.ndim:
        raise call.fail(f"{count} repeats for {x.ndim} axes")
    return at_run_time("TileFusion", (x, repeats), [(x.dtype, (OPEN,) * x.ndim)], dims=tuple(range(x.ndim)))


def slice_of(call: Call, x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    starts, count = vector(call, starts, "starts")
    ends = vector(call, ends, "ends")[0]
    axes = ms.Tensor(np.arange(count)) if axes is None else vector(call, axes, "axes")[0]
    steps = ms.Tensor(np.ones(count, np.int64)) if steps is None else vector(call, steps, "steps")[0]
    named = known(axes)
    where = range(x.ndim) if named is None else [positive_axis(call, int(a), x.ndim) for a in named]
    return at_run_time("StridedSlice", (x, starts, ends, axes, steps), [(x.dtype, opened(x, *where))])


def split(call: Call, x: Any, parts: Any, axis: int) -> list[Any]:
    parts, count = vector(call, parts, "split")
    ends = ops.cumsum(parts, 0)
    begins, n = ops.sub(ends, parts), as_tensor(value_of(objects([shape_of(x)[axis]])))
    fits = ops.logical_and(ops.equal(ends[count - 1 :], n), ops.greater_equal(ops.amin(parts), ms.Tensor(0)))
    which, one = ms.Tensor(np.array([axis])), ms.Tensor(np.array([1]))
    made = [
        at_run_time(
            "StridedSlice", (x, begins[i : i + 1], ends[i : i + 1], which, one), [(x.dtype, opened(x, axis))]
        )
        for i in range(count)
    ]
    return require(made, fits)


def unsqueeze(call: Call, x: Any, axes: Any) -> Any:
    axes, count = vector(call, axes, "axes")
    return at_run_time("ExpandDims", (x, axes), [(x.dtype, (OPEN,) * (x.ndim + count))]) if count else x


def squeeze(call: Call, x: Any, axes: Any) -> Any:
    axes, count = vector(call, axes, "axes")
    if not count:
        return x
    order = _order(call, axes, x.ndim)[0]
    one = ops.equal(
        ops.amax(ops.gather(sizes(x), ops.floor_mod(axes, scalar(x.ndim, axes)), 0)), ms.Tensor(1)
    )
    x = require([x], one)[0]
    if count == x.ndim:
        return ops.reshape(x, ())
    kept = ops.gather(sizes(x), order[: x.ndim - count], 0)
    return at_run_time("Reshape", (x, kept), [(x.dtype, (OPEN,) * (x.ndim - count))])


def _order(call: Call, axes: Any, rank: int) -> tuple[Any, Any]:
    """The order of `rank` axes in which those named are last, and the order that leads back."""
    places = ms.Tensor(np.arange(rank))
    named = ops.equal(ops.expand_dims(places, 1), ops.expand_dims(ops.floor_mod(axes, scalar(rank, axes)), 0))
    last = ops.sum(cast(named, ms.int64), 1)
    keys = ops.add(ops.mul(last, scalar(rank, last)), places)
    before = ops.less(ops.expand_dims(keys, 0), ops.expand_dims(keys, 1))
    back = ops.sum(cast(before, ms.int64), 1)
    at = ops.equal(ops.expand_dims(back, 0), ops.expand_dims(places, 1))
    return ops.sum(ops.mul(cast(at, ms.int64), ops.expand_dims(places, 0)), 1), back


def _turned(x: Any, order: Any) -> Any:
    shape = shape_of(x)
    same = len(set(map(str, shape))) == 1 and is_number(shape[0])
    return at_run_time("Transpose", (x, order), [(x.dtype, shape if same else (OPEN,) * x.ndim)])


_REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip


def reduced(call: Call, x: Any, axes: Any, keep: bool) -> Any:
    """The reduction `call` over axes that are data."""
    axes, count = vector(call, axes, "axes")
    none = call.get("noop_with_empty_axes", 0)
    rank = x.ndim if keep or not count and none else x.ndim - count if count else 0
    if rank < 0:
        raise call.misfit(f"{count} axes of {x.ndim}")
    exact = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare")
    inner = x if call.kind in exact or x.dtype.is_floating else cast(x, ms.float64)
    y = custom(
        "reduce", [inner, axes], [(inner.dtype, [OPEN] * rank)], kind=_REDUCTIONS.index(call.kind),
        keep=int(keep), none=none,
    )  # fmt: skip
    return cast(y, x.dtype)


def along_last(call: Call, x: Any, axis: Any, function: Callable) -> Any:
    """``function(x)`` along the last axis, for an axis that is data."""
    order, back = _order(call, vector(call, axis, "axis")[0], x.ndim)
    y = _turned(function(_turned(x, order)), back)
    return at_run_time("Reshape", (y, sizes(x)), [(y.dtype, opened(x))])


def numbers_from(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    """Numbers from start on, limit not included."""
    start, limit, delta = (ops.reshape(as_tensor(v), ()) for v in (start, limit, delta))
    dtype = start.dtype
    exact = ms.int64 if not dtype.is_floating else ms.float64
    first, last, step = (cast(v, exact) for v in (start, limit, delta))
    if dtype.is_floating:
        count = cast(ops.ceil(ops.div(ops.sub(last, first), step)), ms.int64)
    else:
        count = ops.neg(ops.floor_div(ops.sub(first, last), step))
    places = counted(ops.maximum(count, ms.Tensor(0)))
    return cast(ops.add(first, ops.mul(cast(places, exact), step)), dtype)


def counted(count: Any) -> Any:
    """0, 1, ... as many as `count`, a number of int64, says."""
    ones = at_run_time("Fill", (ms.Tensor(1), ops.reshape(count, (1,))), [(ms.int64, (OPEN,))])
    return ops.sub(ops.cumsum(ones, 0), ms.Tensor(1))


def top_k(call: Call, x: Any, k: Any, axis: int, largest: bool) -> tuple[Any, Any]:
    """The k largest (smallest) elements in order, and their places."""
    k = vector(call, k, "K")[0]
    types = [(x.dtype, opened(x, axis)), (ms.int32, opened(x, axis))]
    values, places = at_run_time("TopKFusion", (x, k), types, axis=axis, largest=int(largest), sorted=True)
    return values, cast(places, ms.int64)


def pad(call: Call, x: Any, pads: Any, value: Any, axes: Any, mode: str) -> Any:
    """Padding by numbers, or with a number, that are data."""
    pads, count = vector(call, pads, "pads")
    if count % 2 or (axes is None and count != 2 * x.ndim):
        raise call.misfit(f"{count} pads do not fit its {x.ndim} axes")
    value = value if mode == "constant" else None
    more = [as_tensor(v) for v in (value, axes) if v is not None]
    given = [int(v is not None) for v in (value, axes)]
    kind = ("constant", "reflect", "edge", "wrap").index(mode)
    return custom("pad", [x, pads, *more], [(x.dtype, [OPEN] * x.ndim)], mode=kind, given=given)
