"""ONNX Resize of open sizes, or by scales and sizes that are data: places are computed by the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    as_tensor,
    cast,
    known,
    same_size,
    scalar,
    shape_of,
)

MIDDLE = 1e-6  # how far from the middle of two elements a place counts as there, as in onnxruntime


def _number(value: float) -> ms.Tensor:
    return ms.Tensor(np.float64(value))


def _single(value: float) -> ms.Tensor:
    return ms.Tensor(np.float32(value))


_ROUNDED = {
    "round_prefer_floor": lambda p, scale: ops.ceil(ops.sub(p, _number(0.5 + MIDDLE))),
    "round_prefer_ceil": lambda p, scale: ops.floor(ops.add(p, _number(0.5 + MIDDLE))),
    "floor": lambda p, scale: ops.floor(p),
    "ceil": lambda p, scale: ops.ceil(p),
    "simple": lambda p, scale: ops.where(ops.less(scale, _single(1)), ops.ceil(p), ops.floor(p)),
}


def resized(
    call: Call, x: Any, axes: Sequence[int], scales: Any, sizes: Any, roi: Any, how: str, rounding: str
) -> Any:
    """`axes`: those of which scales or sizes and the first and second half of `roi` tell."""
    kind = call.get("mode", "nearest").removeprefix("bi")
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    smooth = call.get("antialias", 0)
    outside, value = call.get("exclude_outside", 0), call.get("extrapolation_value", 0.0)
    kernel = _linear if kind == "linear" else lambda t: _cubic(t, call.get("cubic_coeff_a", -0.75))
    given = ops.reshape(cast(as_tensor(scales if sizes is None else sizes), ms.float32), (-1,))
    if not same_size(shape_of(given)[0], len(axes)):
        raise call.misfit(f"scales or sizes for {len(axes)} axes must be as many numbers")
    lengths = [cast(ops.gather(run_time.sizes(x), ms.Tensor(axis), 0), ms.float32) for axis in axes]
    factors = [given[i] if sizes is None else ops.div(given[i], n) for i, n in enumerate(lengths)]
    if sizes is not None and policy != "stretch":
        choose = ops.amin if policy == "not_larger" else ops.amax
        factors = [choose(ops.stack(factors))] * len(axes)
    parts = None if roi is None else ops.reshape(cast(as_tensor(roi), ms.float32), (-1,))
    limits = [
        (_single(0), _single(1)) if parts is None else (parts[i], parts[len(axes) + i])
        for i in range(len(axes))
    ]
    if sizes is None:
        outs = [
            ops.floor(ops.mul(ops.mul(n, ops.sub(end, start)), factor))
            for n, factor, (start, end) in zip(lengths, factors, limits)
        ]
    else:
        outs = [
            given[i] if policy == "stretch" else ops.floor(ops.add(ops.mul(factor, n), _single(0.5)))
            for i, (factor, n) in enumerate(zip(factors, lengths))
        ]
    if sizes is None and roi is None:  # where no size changes, nothing does: see `resize`
        still = ops.amin(cast(ops.equal(ops.stack(outs), ops.stack(lengths)), ms.int32))
        factors = [ops.where(ops.equal(still, scalar(1, still)), _single(1), f) for f in factors]
    y = x if kind == "nearest" or x.dtype.is_floating else cast(x, ms.float32)
    beyond = []
    fixed = known(given) if policy == "stretch" and roi is None else None
    for i, (axis, n, factor, out, (start, end)) in enumerate(zip(axes, lengths, factors, outs, limits)):
        if fixed is not None and (
            fixed[i] == 1 if sizes is None else same_size(shape_of(x)[axis], int(fixed[i]))
        ):
            continue  # it stays as it is
        count = run_time.counted(cast(out, ms.int64))
        places = cast(_places(how, cast(count, ms.float32), out, n, factor, start, end), ms.float64)
        last = cast(ops.sub(n, _single(1)), ms.float64)
        if how == "tf_crop_and_resize":
            off = ops.logical_or(ops.less(places, _number(0)), ops.greater(places, last))
            beyond.append(along(off, axis, x.ndim))
        reach = 1 if kind == "linear" else 2
        if kind == "nearest":
            y = ops.gather(y, _within(_ROUNDED[rounding](places, factor), last), axis)
        elif smooth:
            wide, by = cast(n, ms.float64), cast(factor, ms.float64)
            y = _smoothed(y, axis, places, wide, by, kernel, reach, bool(outside))
        else:
            y = _mixed(y, axis, places, last, kernel, reach, bool(outside))
    for off in beyond:
        y = ops.where(off, cast(ms.Tensor(float(value)), y.dtype), y)
    return cast(y, x.dtype)


def _places(how: str, i: Any, out: Any, n: Any, scale: Any, start: Any, end: Any) -> Any:
    """Where in the input the elements number `i` of a result of `out` lie, in float32 as in onnxruntime."""
    one, half = _single(1), _single(0.5)
    several = ops.greater(out, one)
    if how == "asymmetric":
        return ops.div(i, scale)
    if how == "align_corners":
        steps = ops.sub(ops.mul(scale, n), one)
        return ops.div(ops.mul(i, ops.sub(n, one)), ops.where(several, steps, one))
    if how == "tf_half_pixel_for_nn":
        return ops.div(ops.add(i, half), scale)
    if how == "tf_crop_and_resize":
        from_start = ops.mul(start, ops.sub(n, one))
        spread = ops.mul(ops.mul(i, ops.sub(end, start)), ops.sub(n, one))
        spread = ops.div(spread, ops.where(several, ops.sub(out, one), one))
        middle = ops.mul(ops.mul(half, ops.add(start, end)), ops.sub(n, one))
        return ops.where(several, ops.add(from_start, spread), ops.add(middle, spread))
    centers = ops.div(ops.add(i, half), scale)
    if how == "half_pixel_symmetric":
        shift = ops.sub(one, ops.div(out, ops.mul(scale, n)))
        centers = ops.add(ops.mul(ops.mul(n, half), shift), centers)
    centers = ops.sub(centers, half)
    return ops.where(several, centers, _single(0)) if how == "pytorch_half_pixel" else centers


def _within(places: Any, last: Any) -> Any:
    return cast(ops.minimum(ops.maximum(places, _number(0)), last), ms.int64)


def _mixed(x: Any, axis: int, places: Any, last: Any, kernel: Callable, reach: int, outside: bool) -> Any:
    """Means of the elements around each place, as the kernel weighs them."""
    base = ops.floor(places)
    taps = [ops.add(base, _number(t)) for t in range(1 - reach, reach + 1)]
    weights = [kernel(ops.abs(ops.sub(places, tap))) for tap in taps]
    if outside:
        inside = [ops.logical_and(ops.greater_equal(t, _number(0)), ops.less_equal(t, last)) for t in taps]
        weights = [ops.where(here, w, _number(0)) for here, w in zip(inside, weights)]
        total = weights[0]
        for w in weights[1:]:
            total = ops.add(total, w)
        weights = [ops.div(w, total) for w in weights]
    y = None
    for tap, weight in zip(taps, weights):
        part = ops.mul(ops.gather(x, _within(tap, last), axis), along(cast(weight, x.dtype), axis, x.ndim))
        y = part if y is None else ops.add(y, part)
    return y


def _smoothed(
    x: Any, axis: int, places: Any, n: Any, scale: Any, kernel: Callable, reach: int, outside: bool
) -> Any:
    """Means of what one result stands for: a kernel as wide as that, as a matrix over all elements.

    How many it reaches is open; beyond either end these are at most `reach` times as many as there are.
    """
    margin = ops.add(ops.mul(n, _number(reach)), _number(reach + 1))
    count = cast(ops.add(n, ops.mul(margin, _number(2))), ms.int64)
    taps = ops.sub(cast(run_time.counted(count), ms.float64), margin)
    width = ops.minimum(scale, _number(1))
    apart = ops.sub(ops.expand_dims(taps, 0), ops.expand_dims(places, 1))
    weights = kernel(ops.abs(ops.mul(apart, width)))
    last = ops.sub(n, _number(1))
    if outside:
        inside = ops.logical_and(ops.greater_equal(taps, _number(0)), ops.less_equal(taps, last))
        weights = ops.where(ops.expand_dims(inside, 0), weights, _number(0))
    weights = ops.div(weights, ops.sum(weights, 1, keepdim=True))
    order = tuple(i for i in range(x.ndim) if i != axis) + (axis,)
    rows = ops.transpose(ops.gather(x, _within(taps, last), axis), order)
    y = ops.matmul(rows, ops.transpose(cast(weights, x.dtype), (1, 0)))
    return ops.transpose(y, tuple(int(i) for i in np.argsort(order)))


def _linear(t: Any) -> Any:
    return ops.maximum(ops.sub(_number(1), t), _number(0))


def _cubic(t: Any, a: float) -> Any:
    """Keys' kernel."""
    near = ops.add(ops.mul(ops.mul(ops.sub(ops.mul(t, _number(a + 2)), _number(a + 3)), t), t), _number(1))
    far = ops.mul(ops.sub(ops.mul(t, _number(a)), _number(5 * a)), t)
    far = ops.sub(ops.mul(ops.add(far, _number(8 * a)), t), _number(4 * a))
    far = ops.where(ops.less(t, _number(2)), far, _number(0))
    return ops.where(ops.less_equal(t, _number(1)), near, far)
