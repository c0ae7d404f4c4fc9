"""ONNX reductions and running sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    cast,
    integers,
    is_number,
    known,
    need_known,
    operator,
    positive_axis,
    scalar,
    shape_of,
)


def _reduction(name: str, axes_input: int = 18) -> Callable:
    """Decorator: ``(x, axes)`` that reduces with sizes kept; axes are an input from a version on."""

    def enter(function: Callable) -> Callable:
        def run(call: Call, x: Any, axes: Any = None) -> Any:
            keep = call.get("keepdims", 1)
            if call.version < axes_input:
                if axes is not None:
                    raise call.fail(f"axes are an input from opset {axes_input} on, not in {call.version}")
                given = call.get("axes")
            else:
                data = axes is not None and run_time.is_data(axes)
                if data:
                    return run_time.reduced(call, x, axes, bool(keep))
                given = None if axes is None else integers(call, axes, "axes")
                if call.get("noop_with_empty_axes", 0) and not given:
                    return cast(function(x, ()), x.dtype)
            chosen = sorted({positive_axis(call, a, x.ndim) for a in given or range(x.ndim)})
            shape = shape_of(x)
            y = cast(function(x, tuple(chosen)), x.dtype)
            if keep or not chosen:
                return y
            return ops.reshape(y, tuple(n for axis, n in enumerate(shape) if axis not in chosen))

        operator(name)(run)
        return function

    return enter


@_reduction("ReduceSum", 13)
def _sum(x, axes):
    return ops.sum(x, axes, True) if axes else x


@_reduction("ReduceMean")
def _mean(x, axes):
    return ops.mean(x, axes, True) if axes else x


def _of_nothing(x: Any, axes: tuple, number: Any) -> Any:
    """The result where the axes have no element: `number` throughout; None where they have some."""
    shape = shape_of(x)
    if not any(is_number(shape[axis]) and shape[axis] == 0 for axis in axes):
        return None
    sizes = tuple(1 if axis in axes else n for axis, n in enumerate(shape))
    return ops.broadcast_to(scalar(number, x), sizes)


def _limits(dtype: Any) -> tuple[Any, Any]:
    """The least and the largest number of a dtype."""
    if dtype.is_floating:
        return -math.inf, math.inf
    return np.iinfo(dtype.np).min, np.iinfo(dtype.np).max


def _extreme(x: Any, axes: Any, reduce: Any, empty: int) -> Any:
    """`reduce` over axes; over no elements it is the dtype's limit number `empty`, of bools that of bits."""
    if x.dtype == ms.bool_:
        return cast(_extreme(cast(x, ms.uint8), axes, reduce, empty), ms.bool_)
    nothing = _of_nothing(x, axes, _limits(x.dtype)[empty])
    if nothing is not None:
        return nothing
    return reduce(x, axes, True) if axes else x


@_reduction("ReduceMax")
def _max(x, axes):
    return _extreme(x, axes, ops.amax, 0)


@_reduction("ReduceMin")
def _min(x, axes):
    return _extreme(x, axes, ops.amin, 1)


@_reduction("ReduceProd")
def _prod(x, axes):
    return ops.prod(x, axes, True) if axes else x


@_reduction("ReduceL1")
def _l1(x, axes):
    return _sum(ops.abs(x), axes)


def _floating(function: Callable, x: Any, axes: tuple) -> Any:
    """`function` in a floating type: of integers in float64, as the result is rounded to them."""
    return function(x if x.dtype.is_floating else cast(x, ms.float64), axes)


@_reduction("ReduceL2")
def _l2(x, axes):
    return _floating(lambda x, axes: ops.sqrt(_sum(ops.square(x), axes)), x, axes)


@_reduction("ReduceSumSquare")
def _sum_square(x, axes):
    return _sum(ops.mul(x, x), axes)


@_reduction("ReduceLogSum")
def _log_sum(x, axes):
    return _floating(lambda x, axes: ops.log(_sum(x, axes)), x, axes)


@_reduction("ReduceLogSumExp")
def _log_sum_exp(x, axes):
    nothing = _of_nothing(x, axes, -math.inf) if x.dtype.is_floating else None
    if nothing is not None:
        return nothing
    return _floating(lambda x, axes: ops.logsumexp(x, axes, True) if axes else x, x, axes)


def _axis(call: Call, x: Any, axis: Any) -> int:
    return positive_axis(call, int(need_known(call, axis, "axis").reshape(())), x.ndim)


@operator("CumSum")
def _cum_sum(call, x, axis):
    """Sums of what stands before, with `exclusive` without the element itself; `reverse`: from the end."""
    return _cumulated(call, x, axis, ops.cumsum, 0)


@operator("CumProd")
def _cum_prod(call, x, axis):
    return _cumulated(call, x, axis, ops.cumprod, 1)


def _cumulated(call: Call, x: Any, axis: Any, function: Callable, first: int) -> Any:
    exclusive, reverse = call.get("exclusive", 0), call.get("reverse", 0)
    call.fixed = bool(exclusive) and known(x) is None

    def along(x: Any, axis: int) -> Any:
        y = ops.flip(x, (axis,)) if reverse else x
        y = _shifted(y, axis, first) if exclusive else y
        y = cast(function(y, axis), x.dtype)
        return ops.flip(y, (axis,)) if reverse else y

    if run_time.is_data(axis):
        return run_time.along_last(call, x, axis, lambda y: along(y, y.ndim - 1))
    return along(x, _axis(call, x, axis))


def _shifted(x: Any, axis: int, first: int) -> Any:
    """x moved by one place along the axis, with `first` before it."""
    sizes, begin, steps = list(shape_of(x)), (0,) * x.ndim, (1,) * x.ndim
    parts = []
    for size in (1, sizes[axis] - 1):
        sizes[axis] = size
        parts.append(find("strided_slice")(x, begin, tuple(sizes), steps, tuple(sizes)))
    head = ops.add(ops.zeros_like(parts[0]), scalar(first, x))
    return ops.concat((head, parts[1]), axis)
