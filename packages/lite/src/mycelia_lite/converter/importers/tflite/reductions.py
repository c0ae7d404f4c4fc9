"""Reductions, running sums and largest elements of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    integers,
    known_shape,
    need_known,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.importers.tflite.calls import Call, axes_of, operator


def _reduction(name: str, function: Callable) -> None:
    def run(call: Call, x: Any, axes: Any) -> Any:
        keep = call.get("ReducerOptions", "keep_dims")
        shape = shape_of(x)
        chosen = tuple(axes_of(call, integers(call, axes, "axes"), len(shape)))
        return cast(function(x, chosen, keep), x.dtype) if chosen else x

    operator(name)(run)


def _mean(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    if x.dtype.is_floating:
        return ops.mean(x, axes, keep)
    return ops.mean(cast(x, ms.float64), axes, keep)  # rounded to zero by the cast behind


for _name, _op in {
    "MEAN": _mean, "SUM": ops.sum, "REDUCE_PROD": ops.prod, "REDUCE_MAX": ops.amax, "REDUCE_MIN": ops.amin,
    "REDUCE_ANY": ops.any, "REDUCE_ALL": ops.all,
}.items():  # fmt: skip
    _reduction(_name, _op)


@operator("CUMSUM")
def _cumsum(call, x, axis):
    """`exclusive` sums leave the element itself out."""
    axis = positive_axis(call, int(need_known(call, axis, "axis").reshape(())), len(shape_of(x)))
    reverse = call.get("CumsumOptions", "reverse")
    total = ops.flip(x, (axis,)) if reverse else x
    total = cast(ops.cumsum(total, axis), x.dtype)
    total = ops.flip(total, (axis,)) if reverse else total
    return ops.sub(total, x) if call.get("CumsumOptions", "exclusive") else total


def _extreme(name: str, table: str, op: Callable) -> None:
    def run(call: Call, x: Any, axis: Any) -> Any:
        call.get(table, "output_type")
        axis = positive_axis(call, int(need_known(call, axis, "axis").reshape(())), len(shape_of(x)))
        return cast(op(x, axis), call.outputs[0].dtype)

    operator(name)(run)


_extreme("ARG_MAX", "ArgMaxOptions", ops.argmax)
_extreme("ARG_MIN", "ArgMinOptions", ops.argmin)


@operator("TOPK_V2")
def _topk(call, x, k):
    count = int(need_known(call, k, "k").reshape(()))
    n = known_shape(call, x, (len(shape_of(x)) - 1,))[-1]
    if not 0 <= count <= n:
        raise call.fail(f"the {count} largest of {n} elements")
    values, places = ops.topk(x, count)
    return values, cast(places, call.outputs[1].dtype)
