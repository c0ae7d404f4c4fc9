"""Operators on tensors of 8 bits that give the integers of TensorFlow Lite's kernels, each by their rule.

Of one input they are tables (`fixed_point`) or reductions (`integer_reductions`); of two they add or multiply
integers that are brought to a common scale, and round the result. Operators without a rule here compute with
the numbers that their integers stand for (`quantized`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    integers,
    is_number,
    known_shape,
    same_size,
    shape_of,
)
from mycelia_lite.converter.importers.tflite import fixed_point, integer_reductions, resize
from mycelia_lite.converter.importers.tflite.calls import Call, axes_of
from mycelia_lite.converter.importers.tflite.file import TensorInfo
from mycelia_lite.converter.importers.tflite.fixed_point import Factor, Scale
from mycelia_lite.converter.integer_ops import lookup, pair, rescale, rescale_columns

_F = np.float32
_WIDE = 1 << 20  # beyond all integers of 8 bits
_TOGETHER = 16  # channels or elements that are rounded at once, with halves up
_BOUNDS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


def run(call: Call, inputs: Sequence[Any]) -> Any:
    """The result of a node by a rule; None where there is none for its operator, types or options."""
    rule = _RULES.get(call.kind)
    if rule is None or any(o.kind not in ("INT8", "UINT8", "BOOL") for o in call.outputs):
        return None
    scales = [_scale(i) for i in (*call.inputs[: rule.inputs], *call.outputs) if i.kind != "BOOL"]
    if None in scales or len(inputs) < rule.inputs or len({s.dtype for s in scales}) > 1 and not rule.mixed:
        return None
    return rule.function(call, inputs, *scales)


def _scale(info: TensorInfo | None) -> Scale | None:
    if info is None or info.kind not in ("INT8", "UINT8") or info.quantization is None:
        return None
    return Scale(info.quantization, info.dtype.np) if info.quantization.is_one else None


class _Rule:
    def __init__(self, function: Callable, inputs: int, mixed: bool = False) -> None:
        self.function, self.inputs, self.mixed = function, inputs, mixed


# ---- of one input


def _looked_up(call: Call, inputs: Sequence[Any], x: Scale, y: Scale, make: Callable) -> Any:
    return lookup(inputs[0], ms.Tensor(make(call, x, y)))


def _requantized(call: Call, inputs: Sequence[Any], x: Scale, y: Scale) -> Any:
    """As vectors round; elements behind the last vector one by one, halves away from 0."""
    tables = [fixed_point.requantized(x, y, up=up) for up in (True, False)]
    shape = shape_of(inputs[0])
    is_open = not all(map(is_number, shape))
    if is_open or math.prod(shape) % _TOGETHER == 0 or np.array_equal(*tables):
        return lookup(inputs[0], ms.Tensor(tables[0]))
    values = ops.reshape(lookup(inputs[0], ms.Tensor(x.all.astype(np.int32))), (-1, 1))
    factor = Factor.of(float(x.step) / float(y.step))
    factors = ms.Tensor(np.array([[factor.multiplier], [factor.shift], [1]], np.int32))
    limits = dict(zero=y.zero, low=y.low, high=y.high, to=y.dtype.name)
    return ops.reshape(rescale_columns(values, factors, together=_TOGETHER, **limits), shape)


def _function(of: Callable[[np.ndarray], np.ndarray], call: Call, x: Scale, y: Scale) -> np.ndarray:
    return fixed_point.table_of(of, x, y)


def _wide(of: Callable) -> Callable:
    """A function of float32, computed in float64 and rounded once."""
    return lambda v: of(v.astype(np.float64)).astype(_F)


def _logistic(v: np.ndarray) -> np.ndarray:
    return _F(1) / (_F(1) + np.exp(-v.astype(np.float64)).astype(_F))


def _log(call: Call, x: Scale, y: Scale) -> np.ndarray:
    """Of what is not positive the least number of the result."""
    least = _F((y.low - y.zero) * y.step)
    return fixed_point.table_of(
        lambda v: np.where(v > 0, np.log(np.where(v > 0, v, 1).astype(np.float64)).astype(_F), least), x, y
    )


def _relu(low: float, high: float, call: Call, x: Scale, y: Scale) -> np.ndarray:
    return fixed_point.requantized(x, y, low, high)


def _leaky(call: Call, x: Scale, y: Scale) -> np.ndarray:
    return fixed_point.leaky(x, y, call.get("LeakyReluOptions", "alpha"))


_TABLES: dict[str, Callable] = {
    "ABS": lambda call, x, y: fixed_point.absolute(x, y),
    "ELU": partial(_function, lambda v: np.where(v < 0, np.expm1(v.astype(np.float64)), v).astype(_F)),
    "EXP": partial(_function, _wide(np.exp)),
    "HARD_SWISH": lambda call, x, y: fixed_point.hard_swish(x, y),
    "LEAKY_RELU": _leaky,
    "LOG": _log,
    "LOGISTIC": partial(_function, _logistic),
    "NEG": lambda call, x, y: -np.arange(x.low, x.high + 1).astype(x.dtype),  # of int8 -128 is itself
    "RELU": partial(_relu, 0, np.inf),
    "RELU6": partial(_relu, 0, 6),
    "RELU_0_TO_1": partial(_relu, 0, 1),
    "RELU_N1_TO_1": partial(_relu, -1, 1),
    "SQRT": lambda call, x, y: fixed_point.square_root(x, y),
    "TANH": partial(_function, _wide(np.tanh)),
}


# ---- of two inputs


def _scaled(x: Any, how: Scale, factor: Factor = Factor(2**30, 1), left: int = 0) -> Any:
    """The integers of x, without zero point, times 2^left and a factor, in int32."""
    return lookup(x, ms.Tensor(factor.times(how.all << left).astype(np.int32)))


def _rounded(x: Any, factor: Factor, y: Scale, low: int | None = None, high: int | None = None) -> Any:
    """int32 x times a factor as integers of y."""
    return rescaled(x, factor, y.zero, *_within(y, low, high), y.dtype.name)


def rescaled(x: Any, factor: Factor, zero: int, low: int, high: int, to: str, up: int = 0) -> Any:
    """int32 x times a factor, plus zero, within limits, as integers of the dtype `to`."""
    return rescale(x, **_scaling(factor, zero, low, high, to, up))


def _scaling(factor: Factor, zero: int, low: int, high: int, to: str, up: int = 0) -> dict[str, Any]:
    left, right = max(factor.shift, 0), max(-factor.shift, 0)
    return dict(
        multiplier=factor.multiplier, left=left, right=right, up=up, zero=zero, low=low, high=high, to=to
    )


def _within(y: Scale, low: int | None, high: int | None) -> tuple[int, int]:
    return y.low if low is None else max(y.low, low), y.high if high is None else min(y.high, high)


def _paired(
    inputs: Sequence[Any], tables: Sequence[np.ndarray], how: str, factor: Factor, y: Scale,
    low: int | None = None, high: int | None = None,
) -> Any:  # fmt: skip
    """What int32s of two tables added, subtracted or multiplied are, times a factor, as integers of y."""
    of_a, of_b = (ms.Tensor(t.astype(np.int32)) for t in tables)
    shapes = [shape_of(v) for v in inputs[:2]]
    whole = next((i for i in (0, 1) if _broadcasts(shapes[1 - i], shapes[i])), None)
    if whole is None:
        made = _OPS[how](lookup(inputs[0], of_a), lookup(inputs[1], of_b))
        return _rounded(made, factor, y, low, high)
    scaling = _scaling(factor, y.zero, *_within(y, low, high), y.dtype.name)
    return pair(inputs[0], inputs[1], of_a, of_b, how=how, whole=whole, **scaling)


def _broadcasts(part: Sequence[Any], whole: Sequence[Any]) -> bool:
    both = zip(reversed(part), reversed(whole))
    return len(part) <= len(whole) and all(same_size(n, m) or (is_number(n) and n == 1) for n, m in both)


_OPS = {"add": ops.add, "sub": ops.sub, "mul": ops.mul}


def limits(call: Call, table: str, y: Scale) -> tuple[int | None, int | None]:
    """Those of the activation that is part of the operator."""
    kind = call.name_of(table, "fused_activation_function")
    if kind not in _BOUNDS:
        raise call.option("fused_activation_function", kind, "is not imported for integers")
    low, high = (None if np.isinf(b) else y.at(b) for b in _BOUNDS[kind])
    return low, high


def _sum(call: Call, inputs: Sequence[Any], a: Scale, b: Scale, y: Scale, table: str, how: str) -> Any:
    call.get(table, "pot_scale_int16")
    largest = 2 * max(float(a.step), float(b.step))
    tables = [Factor.of(float(s.step) / largest).times(s.all << 20) for s in (a, b)]
    factor = Factor.of(largest / float(_F(2**20) * y.step))
    return _paired(inputs, tables, how, factor, y, *limits(call, table, y))


def _product(call: Call, inputs: Sequence[Any], a: Scale, b: Scale, y: Scale) -> Any:
    factor = Factor.of(_F(_F(a.step * b.step) / y.step))
    return _paired(inputs, [a.all, b.all], "mul", factor, y, *limits(call, "MulOptions", y))


def _squared_difference(call: Call, inputs: Sequence[Any], a: Scale, b: Scale, y: Scale) -> Any:
    largest = 2 * max(float(a.step), float(b.step))
    first, second = (_scaled(v, s, Factor.of(float(s.step) / largest), 7) for v, s in zip(inputs, (a, b)))
    difference = ops.sub(first, second)
    factor = Factor.of(largest * largest / float(_F(2**14) * y.step))
    return _rounded(ops.mul(difference, difference), factor, y)


def _prelu(call: Call, inputs: Sequence[Any], x: Scale, slope: Scale, y: Scale) -> Any:
    straight = Factor.of(_F(x.step / y.step)).times(np.maximum(x.all, 0))
    bent = Factor.of(_F(_F(x.step * slope.step) / y.step))
    negative = ops.mul(
        lookup(inputs[0], ms.Tensor(np.minimum(x.all, 0).astype(np.int32))), _scaled(inputs[1], slope)
    )
    wide = rescaled(negative, bent, 0, -_WIDE, _WIDE, "int32")
    positive = lookup(inputs[0], ms.Tensor(np.minimum(straight, _WIDE).astype(np.int32)))
    return _rounded(ops.add(positive, wide), Factor(2**30, 1), y)


def _compared(call: Call, inputs: Sequence[Any], a: Scale, b: Scale, op: Callable) -> Any:
    first, second = (_scaled(v, s, Factor.of(float(s.step)), 8) for v, s in zip(inputs, (a, b)))
    return op(first, second)


# ---- of axes


def _mean(call: Call, inputs: Sequence[Any], x: Scale, y: Scale) -> Any:
    """Over height and width of images that keep their axes otherwise than over other axes.

    TensorFlow Lite rounds halves up in the channels that its vectors hold, away from 0 in those left.
    """
    keep = call.get("ReducerOptions", "keep_dims")
    rank = len(shape_of(inputs[0]))
    axes = tuple(axes_of(call, integers(call, inputs[1], "axes"), rank))
    if not axes:
        return None
    sizes = known_shape(call, inputs[0], axes)
    count = int(np.prod([sizes[a] for a in axes]))
    if not 0 < count <= 1 << 16:
        return None
    total = ops.sum(cast(inputs[0], ms.int32), axes, keep, dtype=ms.int32)
    if rank == 4 and axes == (1, 2) and keep:
        zero = _F(_F(_F(x.zero) * x.step) / y.step)
        bias = y.zero - int(np.trunc(zero + _F(0.5 if zero > 0 else -0.5)))
        factor = Factor.of(_F(x.step / _F(_F(count) * y.step)))
        channels = known_shape(call, inputs[0], (3,))[3]
        even = channels // _TOGETHER * _TOGETHER
        parts = ops.split(total, [n for n in (even, channels - even) if n], 3) if even % channels else [total]
        ways = [way for way, n in ((1, even), (0, channels - even)) if n]
        made = [rescaled(p, factor, bias, y.low, y.high, y.dtype.name, up) for p, up in zip(parts, ways)]
        return made[0] if len(made) == 1 else ops.concat(tuple(made), 3)
    factor = Factor.of(float(x.step) / float(y.step))
    shift = min(count.bit_length() - 1, 31 + factor.shift)
    factor = Factor((factor.multiplier << shift) // count, factor.shift - shift)
    return _rounded(ops.sub(total, ms.Tensor(np.int32(x.zero * count))), factor, y)


# ---- of images


def _resized(call: Call, inputs: Sequence[Any], x: Scale, y: Scale) -> Any:
    """Between four elements: of int8 with weights in steps of 2^-10, of uint8 with real ones."""
    if (x.step, x.zero) != (y.step, y.zero):
        return None
    before, after, corners, halves = resize.bilinear_sizes(call, *inputs)
    if x.low == 0:
        return _resized_reals(inputs[0], [resize.neighbours(*n, corners, halves) for n in zip(before, after)])
    made = cast(inputs[0], ms.int32)
    for axis, (n, out) in enumerate(zip(before, after), 1):
        steps = (out - 1, n - 1) if corners and out > 1 else (out, n)
        scale = (1024 * steps[1] + steps[0] // 2) // steps[0]
        places = np.arange(out) * scale + (scale // 2 - 512 if halves else 0)
        low = np.clip(np.maximum(places, 0) // 1024, 0, n - 1)
        high = np.clip((places + 1023) // 1024, 0, n - 1)
        parts = ops.reshape(ms.Tensor((places - 1024 * low).astype(np.int32)), (1, -1, *(1,) * (3 - axis)))
        before_it, behind_it = (ops.gather(made, ms.Tensor(at), axis) for at in (low, high))
        made = ops.add(
            ops.mul(before_it, ops.sub(ms.Tensor(np.int32(1024)), parts)), ops.mul(behind_it, parts)
        )
    return rescale(made, multiplier=2**30, left=1, right=20, up=0, zero=0, low=x.low, high=x.high, to="int8")


def _resized_reals(x: Any, axes: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Any:
    (above, below, down), (left, right, across) = axes
    x, total = cast(x, ms.float32), None
    for rows, share in ((above, 1 - down), (below, down)):
        for columns, part in ((left, 1 - across), (right, across)):
            corner = ops.gather(ops.gather(x, ms.Tensor(rows), 1), ms.Tensor(columns), 2)
            term = ops.mul(corner, ms.Tensor(np.outer(share, part).astype(_F)[None, :, :, None]))
            total = term if total is None else ops.add(total, term)
    return cast(ops.floor(ops.add(total, ms.Tensor(_F(0.5)))), ms.uint8)


# ---- the table

_RULES: dict[str, _Rule] = {
    **{kind: _Rule(partial(_looked_up, make=make), 1) for kind, make in _TABLES.items()},
    "ADD": _Rule(partial(_sum, table="AddOptions", how="add"), 2),
    "SUB": _Rule(partial(_sum, table="SubOptions", how="sub"), 2),
    "MUL": _Rule(_product, 2),
    "SQUARED_DIFFERENCE": _Rule(_squared_difference, 2),
    "PRELU": _Rule(_prelu, 2),
    "QUANTIZE": _Rule(_requantized, 1, mixed=True),
    "L2_NORMALIZATION": _Rule(integer_reductions.norm, 1),
    "MEAN": _Rule(_mean, 1),
    "REDUCE_PROD": _Rule(integer_reductions.product, 1),
    "RESIZE_BILINEAR": _Rule(_resized, 1),
    **{
        kind: _Rule(partial(_compared, op=op), 2)
        for kind, op in {
            "EQUAL": ops.equal, "NOT_EQUAL": ops.not_equal, "LESS": ops.less, "LESS_EQUAL": ops.less_equal,
            "GREATER": ops.greater, "GREATER_EQUAL": ops.greater_equal,
        }.items()
    },
}  # fmt: skip
