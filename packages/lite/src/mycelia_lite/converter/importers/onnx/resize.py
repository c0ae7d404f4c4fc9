"""ONNX Resize and Upsample.

Along each axis a result is a mean of the elements around a place of the input, so an axis is one product with
a matrix, or of the nearest elements one gather. What core has an op for becomes that op.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    same_size,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.resize_run_time import MIDDLE, resized

_PLACES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
_ROUNDED = {
    "round_prefer_floor": lambda x, scale: np.ceil(x - 0.5 - MIDDLE),
    "round_prefer_ceil": lambda x, scale: np.floor(x + 0.5 + MIDDLE),
    "floor": lambda x, scale: np.floor(x),
    "ceil": lambda x, scale: np.ceil(x),
}
# Of versions before 11, which leave it open: what onnxruntime and the tests of those versions have.
_SIMPLE = {"simple": lambda x, scale: np.ceil(x) if scale < 1 else np.floor(x)}


@dataclass
class _Axis:
    """One axis of a resize: sizes before and after, the scale, the part that is cropped."""

    axis: int
    n: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def places(self, how: str) -> np.ndarray:
        """Where in the input each element of the result lies.

        In float32, as onnxruntime computes them: rounding decides for places in the middle of two elements.
        """
        real = np.float32
        x, scale, half, n, out = (
            np.arange(self.out, dtype=real),
            *map(real, (self.scale, 0.5, self.n, self.out)),
        )
        if how == "asymmetric":
            return x / scale
        if how == "align_corners":
            length = self.scale * self.n  # which may have a fraction, as in ONNX's own tests
            last = (
                out - 1 if round(length) == self.out and math.isclose(length, self.out) else real(length - 1)
            )
            return x * (n - 1) / last if self.out > 1 else np.zeros(self.out, real)
        if how == "tf_half_pixel_for_nn":
            return (x + half) / scale
        if how == "tf_crop_and_resize":
            start, end = real(self.start), real(self.end)
            if self.out > 1:
                return start * (n - 1) + x * (end - start) * (n - 1) / (out - 1)
            return np.full(1, half * (start + end) * (n - 1))
        if how == "pytorch_half_pixel" and self.out == 1:
            return np.zeros(1, real)
        offset = n / real(2) * (1 - out / (scale * n)) if how == "half_pixel_symmetric" else real(0)
        return offset + (x + half) / scale - half


def _length(n: int, scale: float, part: float = 1.0) -> int:
    """How many elements a result has, in the arithmetic of onnxruntime."""
    return int(np.floor(np.float32(n) * np.float32(part) * np.float32(scale)))


@operator("Upsample")
def _upsample(call, x, scales=None):
    if call.version < 7:
        factors = [1.0, 1.0, call.need("height_scale"), call.need("width_scale")]
        kind = call.choice("mode", "nearest", ("nearest", "bilinear")).removeprefix("bi")
    else:
        kind = call.choice("mode", "nearest", ("nearest", "linear"))
        if run_time.is_data(scales):
            return resized(call, x, range(x.ndim), scales, None, None, "asymmetric", "simple")
        factors = call.need("scales") if call.version < 9 else _numbers(call, scales, "scales")
    return _by_scales(call, x, factors, kind)


def _by_scales(call: Call, x: Any, factors: list[float], kind: str) -> Any:
    """The resize of the first versions: places are those of the top left corners."""
    if len(factors) != x.ndim:
        raise call.misfit(f"scales {factors} for {x.ndim} axes")
    changing = [i for i, f in enumerate(factors) if f != 1]
    if kind == "nearest" and _repeats(x, changing, factors, "asymmetric", "floor"):
        return _repeated(x, {axis: round(factors[axis]) for axis in changing})
    if not all(is_number(shape_of(x)[axis]) for axis in changing):
        scales = ms.Tensor(np.asarray(factors, np.float64))
        return resized(call, x, range(x.ndim), scales, None, None, "asymmetric", "simple")
    shape = known_shape(call, x, changing)
    call.fixed = bool(changing) and known(x) is None
    axes = [_Axis(i, shape[i], _length(shape[i], f), f) for i, f in enumerate(factors) if f != 1]
    if all(a.out == a.n for a in axes):
        return x
    return (
        _nearest(x, axes, "asymmetric", "simple")
        if kind == "nearest"
        else _mixed(x, [(a.axis, _matrix(a, "asymmetric", _linear, 1)) for a in axes])
    )


def _numbers(call: Call, value: Any, name: str) -> list[float]:
    return [float(n) for n in need_known(call, value, name).reshape(-1)]


@operator("Resize", sizes=(3,))
def _resize(call, x, roi=None, scales=None, sizes=None):
    if call.version < 11:
        if run_time.is_data(roi):
            call.choice("mode", "nearest", ("nearest", "linear"))
            return resized(call, x, range(x.ndim), roi, None, None, "asymmetric", "simple")
        return _by_scales(
            call, x, _numbers(call, roi, "scales"), call.choice("mode", "nearest", ("nearest", "linear"))
        )
    kind = call.choice("mode", "nearest", ("nearest", "linear", "cubic"))
    how = call.choice("coordinate_transformation_mode", "half_pixel", _PLACES)
    rounding = call.choice("nearest_mode", "round_prefer_floor", tuple(_ROUNDED))
    a = call.get("cubic_coeff_a", -0.75)
    outside, value = call.get("exclude_outside", 0), call.get("extrapolation_value", 0.0)
    smooth = call.get("antialias", 0)
    factors = None if scales is None else known(scales)
    if kind == "nearest" and factors is not None and factors.size:
        named = call.get("axes")
        named = [positive_axis(call, a, x.ndim) for a in (range(x.ndim) if named is None else named)]
        factors = dict(zip(named, map(float, factors.reshape(-1))))
        changing = [axis for axis, f in factors.items() if f != 1]
        if len(factors) == len(named) and _repeats(x, changing, factors, how, rounding):
            return _repeated(x, {axis: round(factors[axis]) for axis in changing})
    part = roi if how == "tf_crop_and_resize" else None
    if (open_axes := _open_axes(call, x, part, scales, sizes)) is not None:
        return resized(call, x, open_axes, *_one_of(call, scales, sizes), part, how, rounding)
    axes = _resized(call, x, part, scales, sizes)
    if part is None and all(a.out == a.n for a in axes):
        return x  # whatever the scales are, as in onnxruntime
    kernel = _linear if kind == "linear" else lambda t: _cubic(t, a)
    if kind == "nearest":
        y = _nearest(x, axes, how, rounding)
    elif kind == "linear" and not smooth and not outside and _has_op(x, axes, how):
        return ops.interpolate(
            x, tuple(_size(x, axes)), mode="bilinear", align_corners=how == "align_corners"
        )
    else:
        reach = 1 if kind == "linear" else 2
        matrices = [(a.axis, _matrix(a, how, kernel, reach, bool(smooth), bool(outside))) for a in axes]
        y = _mixed(x, matrices)
    if how == "tf_crop_and_resize":
        for axis in axes:
            places = axis.places(how)
            beyond = (places < 0) | (places > axis.n - 1)
            if beyond.any():
                y = ops.where(
                    along(ms.Tensor(beyond), axis.axis, y.ndim), cast(ms.Tensor(float(value)), y.dtype), y
                )
    return y


def _one_of(call: Call, scales: Any, sizes: Any) -> tuple[Any, Any]:
    """Scales or sizes, the other None; scales without numbers count as none."""
    if scales is not None and shape_of(scales) == (0,):
        scales = None
    if (scales is None) == (sizes is None):
        raise call.fail("one of scales and sizes must be given")
    return scales, sizes


def _open_axes(call: Call, x: Any, roi: Any, scales: Any, sizes: Any) -> list[int] | None:
    """The axes of a resize of which something is known only when the model runs; None if all is known."""
    scales, sizes = _one_of(call, scales, sizes)
    named = call.get("axes")
    axes = [positive_axis(call, a, x.ndim) for a in (range(x.ndim) if named is None else named)]
    if run_time.is_data(roi, scales, sizes):
        return axes
    call.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    given = _numbers(call, scales, "scales") if sizes is None else integers(call, sizes, "sizes")
    before = shape_of(x)
    for axis, g in zip(axes, given):
        stays = g == 1 if sizes is None else same_size(g, before[axis])
        if not stays and not (is_number(before[axis]) and type(g) in (int, float)):
            return axes
    return None


def _resized(call: Call, x: Any, roi: Any, scales: Any, sizes: Any) -> list[_Axis]:
    """The axes that change; scales or sizes are given, for all axes or for those of an attribute."""
    named = call.get("axes")
    axes = [positive_axis(call, a, x.ndim) for a in (range(x.ndim) if named is None else named)]
    policy = call.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    scales, sizes = _one_of(call, scales, sizes)
    crop = [0.0] * len(axes) + [1.0] * len(axes) if roi is None else _numbers(call, roi, "roi")
    if len(crop) != 2 * len(axes):
        raise call.misfit(f"roi has {len(crop)} numbers for {len(axes)} axes")
    given = _numbers(call, scales, "scales") if sizes is None else integers(call, sizes, "sizes")
    if len(given) != len(axes):
        raise call.misfit(f"{len(given)} scales or sizes for {len(axes)} axes")
    before = shape_of(x)
    changing = [
        axis for axis, g in zip(axes, given) if not (g == 1 if sizes is None else same_size(g, before[axis]))
    ]  # what stays may be open
    shape = known_shape(call, x, changing)
    call.fixed = bool(changing or sizes is not None and all(map(is_number, before))) and known(x) is None
    if any(type(g) not in (int, float) for axis, g in zip(axes, given) if axis in changing):
        raise call.fail("sizes that are open: give inputShape")
    if empty := [axis for axis in changing if shape[axis] == 0]:
        raise call.fail(f"axis {empty[0]} of {list(before)} has no elements to resize")
    if sizes is not None and policy != "stretch":
        ratio = (min if policy == "not_larger" else max)(g / shape[a] for a, g in zip(axes, given))
        made = [_Axis(a, shape[a], math.floor(ratio * shape[a] + 0.5), ratio) for a in axes]
    else:
        made = []
        for i, (axis, g) in enumerate(zip(axes, given)):
            if axis not in changing:
                continue
            n, start, end = shape[axis], crop[i], crop[len(axes) + i]
            out = g if sizes is not None else _length(n, g, end - start)
            made.append(_Axis(axis, n, out, out / n if sizes is not None else g, start, end))
    for a in made:
        call.require_room(a.out, max(a.n, 8))
    if any(a.out < 1 for a in made):
        raise call.fail(f"results of sizes {[a.out for a in made]}")
    return [a for a in made if not (a.out == a.n and a.scale == 1 and roi is None)]


def _size(x: Any, axes: list[_Axis]) -> list[int]:
    found = {a.axis: a.out for a in axes}
    return [found.get(axis, x.shape[axis]) for axis in range(2, x.ndim)]


def _images(x: Any, axes: list[_Axis]) -> bool:
    """Whether height and width of images change by what follows from the sizes alone."""
    exact = all(math.isclose(a.scale * a.n, a.out, rel_tol=1e-9) for a in axes)
    both = x.ndim == 4 and {a.axis for a in axes} <= {2, 3} and x.dtype in (ms.float32, ms.float16)
    return both and exact and all(type(n) is int for n in shape_of(x)[2:])


def _has_op(x: Any, axes: list[_Axis], how: str) -> bool:
    halves = how == "half_pixel" or how == "pytorch_half_pixel" and all(a.out > 1 for a in axes)
    return (halves or how == "align_corners") and _images(x, axes)


def _nearest(x: Any, axes: list[_Axis], how: str, rounding: str) -> Any:
    tables = {}
    for a in axes:
        whole = {**_ROUNDED, **_SIMPLE}[rounding](a.places(how).astype(np.float64), a.scale)
        tables[a.axis] = np.clip(whole, 0, a.n - 1).astype(np.int64)
    repeated = all(
        a.out % a.n == 0 and (tables[a.axis] == np.arange(a.out) // (a.out // a.n)).all() for a in axes
    )
    if repeated and _images(x, axes):
        return ops.interpolate(x, tuple(_size(x, axes)), mode="nearest")
    for axis, places in tables.items():
        x = ops.gather(x, ms.Tensor(places), axis)
    return x


def _repeats(x: Any, axes: Any, factors: Any, how: str, rounding: str) -> bool:
    """Whether the nearest elements of axes, some of an open size, are each one as often as the scale says."""
    open_sizes = any(not is_number(shape_of(x)[axis]) for axis in axes)
    whole = all(factors[axis] >= 1 and factors[axis] == int(factors[axis]) for axis in axes)
    return (
        open_sizes
        and whole
        and (
            (how == "asymmetric" and rounding == "floor")
            or (
                how in ("half_pixel", "half_pixel_symmetric")
                and rounding in ("round_prefer_floor", "round_prefer_ceil")
            )
        )
    )


def _repeated(x: Any, times: dict[int, int]) -> Any:
    """x with each element of these axes so many times."""
    shape = shape_of(x)
    apart: list[Any] = []
    wide: list[Any] = []
    for axis, n in enumerate(shape):
        apart += [n, 1] if axis in times else [n]
        wide += [n, times[axis]] if axis in times else [n]
    y = ops.broadcast_to(ops.reshape(x, tuple(apart)), tuple(wide))
    return ops.reshape(y, tuple(n * times.get(axis, 1) for axis, n in enumerate(shape)))


def _linear(t: np.ndarray) -> np.ndarray:
    return np.clip(1 - np.abs(t), 0, None)


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _matrix(
    a: _Axis, how: str, kernel: Any, reach: int, smooth: bool = False, outside: bool = False
) -> np.ndarray:
    """Weights [out, n]. `smooth`: the kernel is as wide as what one result stands for. Elements beyond the
    ends are those at the ends; with `outside` they do not count.
    """
    width = min(a.scale, 1.0) if smooth else 1.0
    weights = np.zeros((a.out, a.n))
    for i, place in enumerate(a.places(how)):
        span = math.ceil(reach / width) + 1
        taps = np.arange(math.floor(place) - span, math.floor(place) + span + 1)
        found = kernel((taps - place) * width)
        if outside:
            found = np.where((taps < 0) | (taps >= a.n), 0, found)
        if smooth or outside:
            found = found / found.sum()
        np.add.at(weights[i], np.clip(taps, 0, a.n - 1), found)
    return weights


def _mixed(x: Any, matrices: list[tuple[int, np.ndarray]]) -> Any:
    """x with each of these axes multiplied by a matrix; integers are rounded to zero."""
    dtype = x.dtype
    wide = dtype if dtype.is_floating else ms.float32
    y = cast(x, wide)
    for axis, matrix in matrices:
        order = tuple(i for i in range(x.ndim) if i != axis) + (axis,)
        y = ops.matmul(ops.transpose(y, order), cast(ms.Tensor(np.ascontiguousarray(matrix.T)), wide))
        y = ops.transpose(y, tuple(int(i) for i in np.argsort(order)))
    return cast(y, dtype)
