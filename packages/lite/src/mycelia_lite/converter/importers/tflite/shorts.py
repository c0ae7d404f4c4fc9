"""Operators on integers of 16 bits, whose zero points are 0: the integers of TensorFlow Lite's kernels.

Of one input they are tables of all 65,536 integers; sums and products of two are scaled as those of 8 bits
are. Products that are summed up are `integer_products`. What is not here, and does not only move or choose
elements, is refused: its kernels round otherwise than numbers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, is_number, known_shape, scalar, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call
from mycelia_lite.converter.importers.tflite.file import TensorInfo
from mycelia_lite.converter.importers.tflite.fixed_point import Factor, Scale, nearest
from mycelia_lite.converter.importers.tflite.integer_rules import limits, rescaled
from mycelia_lite.converter.integer_ops import multiplied, rescale

_F = np.float32
_ALL = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
_VECTOR = 8  # elements that are rounded at once
_PIECES = 512  # of tables between whose places values are interpolated


def concerns(infos: Sequence[TensorInfo | None]) -> bool:
    """Whether one of these tensors has integers of 16 bits with a scale."""
    return any(i is not None and i.kind == "INT16" and i.quantization is not None for i in infos)


def run(call: Call, inputs: Sequence[Any]) -> Any:
    """The result by a rule; None where there is none. Errors: ConversionError for scales without a kernel."""
    rule = _RULES.get(call.kind)
    if rule is None:
        return None
    given = [i for i in (*call.inputs[: len(inputs)], *call.outputs) if i is not None and i.quantization]
    for info in given:
        if not info.quantization.is_one or (info.kind == "INT16" and info.quantization.zero.any()):
            raise call.fail(
                f"'{info.name}' has several scales or a zero point, for 16 bits one scale is imported"
            )
    return rule(call, inputs)


def _scale(info: TensorInfo) -> Scale:
    return Scale(info.quantization, info.dtype.np)


def _scales(call: Call) -> list[Scale]:
    return [_scale(i) for i in (*call.inputs, *call.outputs)]


# ---- of one input


def _looked_up(table: np.ndarray, x: Any) -> Any:
    """The entry of `table`, of all 65,536 integers, for each of x."""
    return ops.gather(ms.Tensor(table), ops.add(cast(x, ms.int32), ms.Tensor(np.int32(1 << 15))), 0)


def _of_one(make: Callable[..., np.ndarray], call: Call, inputs: Sequence[Any]) -> Any:
    x, y = _scale(call.inputs[0]), _scale(call.outputs[0])
    if call.outputs[0].kind != "INT16" or call.inputs[0].kind != "INT16":
        return None
    return _looked_up(make(call, x, y), inputs[0])


def _leaky(call: Call, x: Scale, y: Scale) -> np.ndarray:
    alpha = _F(call.get("LeakyReluOptions", "alpha"))
    straight, bent = Factor.of(_F(x.step / y.step)), Factor.of(_F(_F(x.step * alpha) / y.step))
    return y.within(np.where(_ALL >= 0, straight.times(_ALL), bent.times(_ALL)))


def _relu(low: float, high: float, call: Call, x: Scale, y: Scale) -> np.ndarray:
    least, most = (None if math.isinf(b) else y.at(b) for b in (low, high))
    return y.within(Factor.of(_F(x.step / y.step)).times(_ALL), least, most)


def _absolute(call: Call, x: Scale, y: Scale) -> np.ndarray:
    values = np.abs(_ALL)
    return y.within(values if x.step == y.step else Factor.of(_F(x.step / y.step)).times(values))


#: sigmoid of k / 24 in steps of 2^-16; of these k the table has one step more than the nearest.
_ONE_MORE = (
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45,
    46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
)  # fmt: skip
_SIGMOID = np.floor(65536 / (1 + np.exp(-np.arange(257) / 24)) + 0.5).astype(np.int64)
_SIGMOID[list(_ONE_MORE)] += 1


def _fine(call: Call, x: Scale, shifts: Sequence[int]) -> np.ndarray:
    """All integers in steps of 1 / 12288. Kernels compute scales 2^(n - 12) otherwise, n in `shifts`."""
    if math.log2(float(x.step)) + 12 in shifts:
        raise call.fail(f"a scale of {x.step}, a power of two, whose kernel is not imported for 16 bits")
    multiplier, right = float(x.step) * 4096 * 3, 0
    while multiplier <= 32767 / 2 and right <= 30:
        multiplier, right = multiplier * 2, right + 1
    return (_ALL * int(multiplier) + ((1 << right - 1) if right else 0)) >> right


def _interpolated(fine: np.ndarray, bits: int) -> np.ndarray:
    """The sigmoid of absolute places, `bits` of which lie between two entries."""
    far = np.abs(fine)
    at = np.minimum(far >> bits, 255)
    between = (_SIGMOID[at] << bits) + (far & ((1 << bits) - 1)) * (_SIGMOID[at + 1] - _SIGMOID[at])
    return np.where(far >> bits >= 255, (0x7FFF << 10) if bits == 9 else 0xFFFF << 8, between)


def _logistic(call: Call, x: Scale, y: Scale) -> np.ndarray:
    fine = _fine(call, x, (0,))
    found = _interpolated(fine, 9)
    return (np.where(fine >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10).astype(np.int16)


def _tanh(call: Call, x: Scale, y: Scale) -> np.ndarray:
    fine = _fine(call, x, (0, 1))
    found = _interpolated(fine, 8)
    return (np.where(fine >= 0, found - (1 << 23) + 128, (1 << 23) - found + 127) >> 8).astype(np.int16)


def _pieces(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> np.ndarray:
    """A function into [-1, 1] for all integers, that stand for `low` to `high`, through 512 straight pieces.

    An entry is moved by half of what the middle of its piece is off.
    """
    step = (high - low) / _PIECES
    ends = np.arange(_PIECES) * step + low

    def short(v: np.ndarray) -> np.ndarray:
        return nearest(np.asarray(v, np.float64))

    first = short(function(ends) * 32768)
    middle = short((function(ends + step) * 32768 + first) / 2)
    bias = short((middle - short(function(ends + step / 2) * 32768)) / 2)
    table = np.clip(np.append(first - bias, short(function(np.float64(high)) * 32768)), -32768, 32767)
    table = table.astype(np.int64)
    at = 256 + (_ALL >> 7)
    return table[at] + (((table[at + 1] - table[at]) * (_ALL & 127) + 64) >> 7)


# ---- of two inputs


def _sum(call: Call, inputs: Sequence[Any], table: str, op: Callable) -> Any:
    a, b, y = _scales(call)
    wide = [cast(v, ms.int32) for v in inputs]
    low, high = _within(y, *limits(call, table, y))
    exponents = [math.log2(float(s.step)) for s in (a, b, y)]
    if call.get(table, "pot_scale_int16") and all(e == round(e) for e in exponents):
        return _shifted_sum(call, wide, [int(e) for e in exponents], low, high, op)
    largest = 2 * max(float(a.step), float(b.step))
    fine = [
        rescaled(
            ops.mul(v, scalar(1 << 15, v)),
            Factor.of(float(s.step) / largest),
            0,
            -(1 << 30),
            1 << 30,
            "int32",
        )
        for v, s in zip(wide, (a, b))
    ]
    factor = Factor.of(largest / float(_F(2**15) * y.step))
    return cast(rescaled(op(*fine), factor, 0, low, high, "int32"), ms.int16)


def _shifted_sum(
    call: Call, wide: Sequence[Any], exponents: Sequence[int], low: int, high: int, op: Callable
) -> Any:
    """Of scales that are powers of two, one of them that of the result."""
    shifts = [exponents[2] - e for e in exponents[:2]]
    if shape_of(wide[0]) != shape_of(wide[1]):
        raise call.fail("scales that are powers of two, and shapes that are not the same")
    if min(shifts) < 0 or max(shifts) > 15 or 0 not in shifts:
        raise call.fail(
            f"scales 2^{exponents[0]} and 2^{exponents[1]} for a sum in steps of 2^{exponents[2]}"
        )
    how = dict(multiplier=1 << 30, left=1, up=0, zero=0, low=-(1 << 16), high=1 << 16, to="int32")
    fine = [rescale(v, right=s, **how) for v, s in zip(wide, shifts)]
    made = ops.minimum(ops.maximum(op(*fine), scalar(-(1 << 15), wide[0])), scalar((1 << 15) - 1, wide[0]))
    return cast(ops.minimum(ops.maximum(made, scalar(low, made)), scalar(high, made)), ms.int16)


def _product(call: Call, inputs: Sequence[Any]) -> Any:
    a, b, y = _scales(call)
    factor = Factor.of(_F(_F(a.step * b.step) / y.step))
    made = ops.mul(*(cast(v, ms.int32) for v in inputs))
    low, high = _within(y, *limits(call, "MulOptions", y))
    return cast(rescaled(made, factor, 0, low, high, "int32"), ms.int16)


def _within(y: Scale, low: int | None, high: int | None) -> tuple[int, int]:
    return y.low if low is None else max(y.low, low), y.high if high is None else min(y.high, high)


# ---- other


def _quantize(call: Call, inputs: Sequence[Any]) -> Any:
    (given,), (out,) = call.inputs, call.outputs
    if given.quantization is None:
        return _rounded(inputs[0], _scale(out)) if inputs[0].dtype is ms.float32 else None
    x, y = _scale(given), _scale(out)
    factor = Factor.of(float(x.step) / float(y.step))
    if given.kind == "INT16":
        return _looked_up(y.within(factor.times(_ALL)), inputs[0])
    wide = ops.sub(cast(inputs[0], ms.int32), ms.Tensor(np.int32(x.zero)))
    return cast(rescaled(wide, factor, y.zero, y.low, y.high, "int32"), out.dtype)


def _rounded(x: Any, y: Scale) -> Any:
    """The nearest integers: halves go to even ones in vectors, away from zero behind the last one."""
    steps, shape = ops.mul(x, ms.Tensor(_F(1) / y.step)), shape_of(x)
    made = ops.round(steps)
    count = math.prod(shape) if all(map(is_number, shape)) else 0
    if count % _VECTOR:
        exact = ops.div(cast(x, ms.float64), ms.Tensor(np.float64(y.step)))
        far = ops.floor(ops.add(ops.abs(exact), ms.Tensor(np.float64(0.5))))
        away = cast(ops.where(ops.less(exact, scalar(0, exact)), ops.neg(far), far), ms.float32)
        behind = np.arange(count).reshape(shape) >= count // _VECTOR * _VECTOR
        made = ops.where(ms.Tensor(behind), away, made)
    return cast(ops.minimum(ops.maximum(made, scalar(-32768, made)), scalar(32767, made)), ms.int16)


def _softmax(call: Call, inputs: Sequence[Any]) -> Any:
    """Exponentials by a table, times the reciprocal of their sum by another, in steps of 2^-15."""
    x = _scale(call.inputs[0])
    real = float(x.step) * float(_F(call.get("SoftmaxOptions", "beta"))) / (10 / 65535)
    factor = Factor.of(real)
    behind = np.arange(-65535, 1, dtype=np.int64)
    if factor.shift > 14:
        raise call.fail(f"a scale of {x.step}")
    fine = multiplied(behind, factor.multiplier, max(factor.shift, 0), max(-factor.shift, 0))
    powers = _pieces(np.exp, -10.0, 0.0)[np.clip(fine + 32767, -32768, 32767) + 32768]
    inverses = _pieces(lambda v: 1 / (1 + v), 0.0, 1.0)
    known_shape(call, inputs[0], (len(shape_of(inputs[0])) - 1,))
    wide = cast(inputs[0], ms.int32)
    places = ops.add(ops.sub(wide, ops.amax(wide, (-1,), True)), ms.Tensor(np.int32(65535)))
    each = ops.gather(ms.Tensor(powers), places, 0)  # int64
    total = ops.sum(each, (-1,), True)
    bits = ms.Tensor(np.array([1 << k for k in range(1, 31)], np.int64))  # a sum of 2^k and more has k + 1
    right = ops.sum(cast(ops.greater_equal(total, bits), ms.int64), (-1,), True)
    near = ops.bitwise_left_shift(total, ops.sub(ms.Tensor(np.int64(30)), right))
    near = ops.bitwise_right_shift(ops.add(near, ms.Tensor(np.int64(1 << 13))), ms.Tensor(np.int64(14)))
    at = ops.sub(near, ms.Tensor(np.int64((1 << 15) + (1 << 16))))
    at = ops.add(
        ops.minimum(ops.maximum(at, scalar(-32768, at)), scalar(32767, at)), ms.Tensor(np.int64(32768))
    )
    share = ops.gather(ms.Tensor(inverses), at, 0)
    half = ops.bitwise_left_shift(ms.Tensor(np.int64(1)), ops.sub(right, ms.Tensor(np.int64(1))))
    made = ops.bitwise_right_shift(ops.add(ops.mul(each, share), half), right)
    return cast(ops.minimum(ops.maximum(made, scalar(0, made)), scalar(32767, made)), ms.int16)


_RULES: dict[str, Callable] = {
    "ABS": partial(_of_one, _absolute),
    "ADD": partial(_sum, table="AddOptions", op=ops.add),
    "LEAKY_RELU": partial(_of_one, _leaky),
    "LOGISTIC": partial(_of_one, _logistic),
    "MUL": _product,
    "QUANTIZE": _quantize,
    "RELU": partial(_of_one, partial(_relu, 0, math.inf)),
    "RELU6": partial(_of_one, partial(_relu, 0, 6)),
    "SOFTMAX": _softmax,
    "SUB": partial(_sum, table="SubOptions", op=ops.sub),
    "TANH": partial(_of_one, _tanh),
}
#: Operators whose results are elements of their inputs, or follow from comparisons of one scale.
CHOICES = (
    "ARG_MAX", "ARG_MIN", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "MAXIMUM", "MAX_POOL_2D",
    "MINIMUM", "NOT_EQUAL", "PAD", "PADV2", "REDUCE_MAX", "REDUCE_MIN", "SELECT", "SELECT_V2", "TOPK_V2",
)  # fmt: skip
