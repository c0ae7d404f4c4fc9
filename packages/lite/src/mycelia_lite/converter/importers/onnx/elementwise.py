"""ONNX operators that work on each element: arithmetic, comparisons, logic, bits, casts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx import small
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    as_tensor,
    cast,
    known,
    operator,
    plain,
    positive_axis,
    scalar,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of

_truncate_div = find("truncate_div")


for _name, _op in {
    "Abs": ops.abs, "Neg": ops.neg, "Sqrt": ops.sqrt, "Exp": ops.exp, "Log": ops.log, "Erf": ops.erf,
    "Floor": ops.floor, "Ceil": ops.ceil, "Round": ops.round, "Reciprocal": ops.reciprocal,
    "Sin": ops.sin, "Cos": ops.cos, "Tan": ops.tan, "Asin": ops.asin, "Acos": ops.acos, "Atan": ops.atan,
    "Sinh": ops.sinh, "Cosh": ops.cosh, "Asinh": ops.asinh, "Acosh": ops.acosh, "Atanh": ops.atanh,
    "Not": ops.logical_not, "IsNaN": ops.isnan, "BitwiseNot": ops.bitwise_not, "Det": ops.det,
}.items():  # fmt: skip
    plain(_name, _op)


@operator("Sign")
def _sign(call, x):
    """NaN stays NaN."""
    return ops.where(ops.isnan(x), x, ops.sign(x)) if x.dtype.is_floating else ops.sign(x)


def _aligned(call: Call, a: Any, b: Any) -> Any:
    """The second operand; before version 7 it broadcasts only if it is told to, from an axis on."""
    if call.version >= 7:
        return b
    axis = call.get("axis")
    if not call.get("broadcast", 0):
        if a.ndim != b.ndim:
            raise call.misfit(f"operands of {a.ndim} and {b.ndim} axes without the attribute 'broadcast'")
        return b
    if axis is None:
        return b
    first = positive_axis(call, axis, a.ndim)
    return ops.reshape(b, (*b.shape, *(1,) * (a.ndim - first - b.ndim)))


def _binary(name: str, op: Any) -> None:
    def run(call: Call, a: Any, b: Any) -> Any:
        return op(a, _aligned(call, a, b))

    operator(name)(run)


for _name, _op in {
    "Add": ops.add, "Sub": ops.sub, "Mul": ops.mul, "And": ops.logical_and, "Or": ops.logical_or,
    "Xor": ops.logical_xor, "Equal": ops.equal, "Greater": ops.greater, "Less": ops.less,
    "GreaterOrEqual": ops.greater_equal, "LessOrEqual": ops.less_equal, "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or, "BitwiseXor": ops.bitwise_xor,
}.items():  # fmt: skip
    _binary(_name, _op)


@operator("Div")
def _div(call, a, b):
    """Of integers it is rounded to zero."""
    b = _aligned(call, a, b)
    if a.dtype.is_floating:
        return ops.div(a, b)
    return cast(_truncate_div(a, b), a.dtype)


@operator("Pow")
def _pow(call, base, exponent):
    """The result has the type of the base."""
    exponent = _aligned(call, base, exponent)
    if base.dtype.is_floating:
        return ops.pow(base, cast(exponent, base.dtype))
    if exponent.dtype.is_floating:
        power = ops.pow(cast(base, ms.float64), cast(exponent, ms.float64))
        return cast(power, base.dtype)
    exponent = cast(exponent, base.dtype)
    powers = known(exponent)
    if powers is not None and (powers >= 0).all():
        return cast(ops.pow(base, exponent), base.dtype)
    power = ops.pow(base, ops.abs(exponent))  # below 0 the whole part of 1 / b ** n is 0 unless b is 1 or -1
    whole = ops.logical_or(
        ops.greater_equal(exponent, scalar(0, exponent)), ops.equal(ops.abs(base), scalar(1, base))
    )
    return ops.where(whole, cast(power, base.dtype), scalar(0, base))


@operator("Mod")
def _mod(call, a, b):
    """The sign is that of the divisor, with `fmod` that of the dividend."""
    if call.get("fmod", 0):
        return cast(ops.fmod(a, b), a.dtype)
    if a.dtype.is_floating:
        raise call.fail("a remainder of floating numbers with fmod 0, which ONNX does not have")
    return cast(ops.remainder(a, b), a.dtype)


@operator("BitShift")
def _bit_shift(call, a, b):
    """A shift by all bits or more gives 0."""
    left = call.choice("direction", None, ("LEFT", "RIGHT")) == "LEFT"
    bits = 8 * np.dtype(a.dtype.np).itemsize
    shifted = (ops.bitwise_left_shift if left else ops.bitwise_right_shift)(a, b)
    return ops.where(ops.less(b, scalar(bits, b)), cast(shifted, a.dtype), scalar(0, a))


def _variadic(name: str, op: Any) -> None:
    def run(call: Call, first: Any, *rest: Any) -> Any:
        return functools.reduce(op, map(as_tensor, rest), as_tensor(first))

    operator(name)(run)


for _name, _op in {"Sum": ops.add, "Max": ops.maximum, "Min": ops.minimum}.items():
    _variadic(_name, _op)


@operator("Mean")
def _mean(call, first, *rest):
    total = functools.reduce(ops.add, map(as_tensor, rest), as_tensor(first))
    return ops.div(total, scalar(1 + len(rest), total))


@operator("Where")
def _where(call, condition, a, b):
    return ops.where(cast(condition, ms.bool_), a, b)


@operator("IsInf")
def _is_inf(call, x):
    infinite = ops.isinf(x)
    if not call.get("detect_positive", 1):
        infinite = ops.logical_and(infinite, ops.less(x, scalar(0, x)))
    if not call.get("detect_negative", 1):
        infinite = ops.logical_and(infinite, ops.greater(x, scalar(0, x)))
    return infinite


@operator("Cast")
def _cast(call, x):
    to = call.need("to")
    saturate = bool(call.get("saturate", 1))  # of float8 alone
    call.get("round_mode")  # of float8e8m0 alone
    if isinstance(to, str):  # before version 6
        raise call.attribute("to", "must be a number")
    if to in small.FLOATS or (to == small.BFLOAT16 and x.dtype is not ms.bfloat16):
        call.narrowed = to
        return small.nearest(call, x, to, saturate)
    dtype = dtype_of(to, f"node '{call.name}' (Cast): its result")
    if call.kinds and call.kinds[0] is not None and x.dtype is dtype:
        return ops.mul(x, scalar(1, x))  # a value of its own, that is no float8 any more
    return cast(x, dtype)


@operator("CastLike")
def _cast_like(call, x, like):
    saturate = bool(call.get("saturate", 1))
    call.get("round_mode")
    if call.kinds[1] in (*small.FLOATS, small.BFLOAT16):
        call.narrowed = call.kinds[1]
        return small.nearest(call, x, call.narrowed, saturate)
    if call.kinds[1] is not None:
        raise call.fail("a cast to integers below 8 bits")
    return cast(x, like.dtype)


@operator("Identity", "Dropout", sizes=(0,))
def _identity(call, x, ratio=None, training_mode=None):
    """Dropout passes everything when a model is used; its mask is all true."""
    if call.kind == "Dropout":
        call.get("seed")
        call.get("ratio")
        if call.version < 7 and not call.get("is_test", 0):
            raise call.attribute("is_test", "only inference can be converted")
        if training_mode is not None and (known(training_mode) is None or known(training_mode).any()):
            raise call.fail(
                "training_mode is set or known only when the model runs: inference alone is converted"
            )
        if call.wants(1):
            x = as_tensor(x)
            return x, cast(ops.ones_like(x), ms.bool_)
    return x
