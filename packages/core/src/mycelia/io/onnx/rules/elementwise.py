"""Rules of arithmetic, comparisons, logic, rounding, casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir import Node
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.table import rule

BOOL = dtypes.bool_


def test(w: Any, kind: str, *inputs: Any) -> Any:
    """An operator whose result is bool."""
    return w.op(kind, *inputs, dtype=BOOL)


def is_negative(w: Any, x: Any) -> Any:
    """Whether the sign is set, of -0.0 too."""
    zero = w.scalar(0, x)
    return test(w, "Or", test(w, "Less", x, zero), test(w, "Less", w.op("Reciprocal", x), zero))


def is_infinite(w: Any, x: Any) -> Any:
    """Whether elements of a floating tensor are infinite."""
    return test(w, "Equal", w.op("Abs", x), w.scalar(np.inf, x))


@rule("cast")
def _cast(w, node, x):
    return w.cast(x, node.outputs[0].type.dtype)


@rule("neg")
def _neg(w, node, x):
    return w.op("Neg", x) if x.dtype.is_signed else w.op("Sub", w.scalar(0, x), x)


@rule("add", "mul")
def _add(w, node, x, y):
    if x.dtype is BOOL:
        return test(w, "Or" if node.op.name == "add" else "And", x, y)
    return w.op(node.op.definition.onnx, x, y)


@rule("div")
def _div(w, node, x, y):
    dtype = node.outputs[0].type.dtype
    return w.op("Div", w.cast(x, dtype), w.cast(y, dtype))


@rule("sign")
def _sign(w, node, x):
    if not x.dtype.is_floating:
        return w.op("Sign", x)
    zero = w.scalar(0, x)  # and 0 for NaN
    above, below = (w.cast(test(w, kind, x, zero), x.dtype) for kind in ("Greater", "Less"))
    return w.op("Sub", above, below)


@rule("square")
def _square(w, node, x):
    return w.op("Mul", x, x)


@rule("rsqrt")
def _rsqrt(w, node, x):
    return w.op("Reciprocal", w.op("Sqrt", x))


@rule("pow")
def _pow(w, node, x, y):
    if x.dtype.is_floating:
        return w.op("Pow", x, y)
    exponent = node.inputs[1].constant
    if exponent is None or exponent.size != 1 or not 0 <= int(exponent.asnumpy().reshape(())) <= 64:
        raise Unsupported("pow of integers to powers that are not one known number from 0 to 64")
    n, power, result = int(exponent.asnumpy().reshape(())), x, None
    while n:
        if n & 1:
            result = power if result is None else w.op("Mul", result, power)
        n >>= 1
        power = w.op("Mul", power, power) if n else power
    if result is None:
        result = w.op("Expand", w.scalar(1, x), w.shape_of(x))
    return result if y.rank <= x.rank else w.reshape(result, node.outputs[0].type.shape)


# ---- exponents, logarithms, trigonometry ----------------------------------------------------------


def expm1(w: Any, x: Any) -> Any:
    """``exp(x) - 1``, accurate near 0: ``tanh(x / 2) * (exp(x) + 1)``."""
    half = w.op("Tanh", w.op("Mul", x, w.scalar(0.5, x)))
    return w.op("Mul", half, w.op("Add", w.op("Exp", x), w.scalar(1, x)))


def log1p(w: Any, x: Any) -> Any:
    """``log(1 + x)``, accurate near 0: the logarithm of the rounded sum, times what rounding changed."""
    one = w.scalar(1, x)
    total = w.op("Add", x, one)
    change = w.op("Sub", total, one)
    infinite = test(w, "Equal", x, w.scalar(np.inf, x))
    plain = test(w, "Or", test(w, "Equal", change, w.scalar(0, x)), infinite)
    factor = w.op("Div", x, w.op("Where", plain, one, change))
    return w.op("Where", plain, x, w.op("Mul", w.op("Log", total), factor))


@rule("exp2")
def _exp2(w, node, x):
    return w.op("Pow", w.scalar(2, x), x)


@rule("expm1")
def _expm1(w, node, x):
    return expm1(w, x)


@rule("log1p")
def _log1p(w, node, x):
    return log1p(w, x)


@rule("log2", "log10")
def _log_to_base(w, node, x):
    base = 2 if node.op.name == "log2" else 10
    return w.op("Div", w.op("Log", x), w.scalar(math.log(base), x))


def logaddexp(w: Any, x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))`` without overflow on the way."""
    same = test(w, "Equal", x, y)  # infinities too
    apart = w.op("Where", same, w.scalar(0, x), w.op("Abs", w.op("Sub", x, y)))
    return w.op("Add", w.op("Max", x, y), log1p(w, w.op("Exp", w.op("Neg", apart))))


@rule("logaddexp", "logaddexp2")
def _logaddexp(w, node, x, y):
    if node.op.name == "logaddexp":
        return logaddexp(w, x, y)
    base = w.scalar(math.log(2), x)
    return w.op("Div", logaddexp(w, w.op("Mul", x, base), w.op("Mul", y, base)), base)


_ERFC = (  # of t = 1 / (1 + |x| / 2), see _erfc
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277,
)  # fmt: skip


@rule("erfc")
def _erfc(w, node, x):
    """``t exp(-x^2 + polynomial of t)``, up to 1.2e-7 of it. Source: Press et al., Numerical Recipes, 6.2."""
    if x.dtype is dtypes.float64:
        raise Unsupported("erfc of float64")
    dtype, x = x.dtype, w.cast(x, dtypes.float32)
    size = w.op("Abs", x)
    t = w.op("Reciprocal", w.op("Add", w.op("Mul", size, w.scalar(0.5, x)), w.scalar(1, x)))
    power = w.scalar(_ERFC[-1], x)
    for factor in reversed(_ERFC[:-1]):
        power = w.op("Add", w.op("Mul", power, t), w.scalar(factor, x))
    tail = w.op("Mul", t, w.op("Exp", w.op("Sub", power, w.op("Mul", x, x))))
    below = test(w, "Less", x, w.scalar(0, x))
    return w.cast(w.op("Where", below, w.op("Sub", w.scalar(2, x), tail), tail), dtype)


@rule("sinc")
def _sinc(w, node, x):
    angle = w.op("Mul", x, w.scalar(math.pi, x))
    zero, one = test(w, "Equal", x, w.scalar(0, x)), w.scalar(1, x)
    return w.op("Where", zero, one, w.op("Div", w.op("Sin", angle), w.op("Where", zero, one, angle)))


@rule("atan2")
def _atan2(w, node, y, x):
    both = test(w, "And", is_infinite(w, x), is_infinite(w, y))  # their quotient is NaN
    ys, xs = (w.op("Where", both, w.op("Sign", v), v) for v in (y, x))
    origin = test(w, "And", *(test(w, "Equal", v, w.scalar(0, v)) for v in (x, y)))
    slope = w.op("Atan", w.op("Where", origin, y, w.op("Div", ys, w.op("Where", origin, w.scalar(1, x), xs))))
    turned = w.op("Where", is_negative(w, y), w.scalar(-math.pi, x), w.scalar(math.pi, x))
    return w.op("Where", is_negative(w, x), w.op("Add", slope, turned), slope)


@rule("hypot")
def _hypot(w, node, x, y):
    x, y = w.op("Abs", x), w.op("Abs", y)
    high, low = w.op("Max", x, y), w.op("Min", x, y)
    plain = test(w, "Or", test(w, "Equal", high, w.scalar(0, x)), is_infinite(w, high))
    ratio = w.op("Div", low, w.op("Where", plain, w.scalar(1, x), high))
    root = w.op("Sqrt", w.op("Add", w.op("Mul", ratio, ratio), w.scalar(1, x)))
    either = test(w, "Or", is_infinite(w, x), is_infinite(w, y))
    total = w.op("Where", plain, high, w.op("Mul", high, root))
    return w.op("Where", either, w.scalar(np.inf, x), total)


@rule("xlogy", "xdivy")
def _x_times(w, node, x, y):
    result = w.op("Mul", x, w.op("Log", y)) if node.op.name == "xlogy" else w.op("Div", x, y)
    known = test(w, "Not", w.op("IsNaN", y, dtype=BOOL))
    return w.op("Where", test(w, "And", test(w, "Equal", x, w.scalar(0, x)), known), w.scalar(0, x), result)


# ---- division and rounding ------------------------------------------------------------------------


def _safe(w: Any, node: Node, x: Any, y: Any) -> tuple[Any, Any]:
    """Where an integer divisor is 0, and the divisor with 1 there and in the place of -1, by which the
    smallest number cannot be divided. (None, y) for divisors that are known to be others.
    """
    constant = node.inputs[1].constant
    if constant is not None and not np.isin(constant.asnumpy(), (0, -1)).any():
        return None, y
    by_zero = test(w, "Equal", y, w.scalar(0, x))
    unsafe = by_zero
    if x.dtype.is_signed:
        unsafe = test(w, "Or", by_zero, test(w, "Equal", y, w.scalar(-1, x)))
    return by_zero, w.op("Where", unsafe, w.scalar(1, x), y)


def _integer_quotient(w: Any, node: Node, x: Any, y: Any, floor: bool) -> Any:
    """Quotients of integers; those by zero are the largest number, the smallest, or 0."""
    zero = w.scalar(0, x)
    by_zero, divisor = _safe(w, node, x, y)
    result = w.op("Div", x, divisor)
    if floor and x.dtype.is_signed:
        rest = test(w, "Not", test(w, "Equal", w.op("Mod", x, divisor), zero))
        signs = test(w, "Xor", test(w, "Less", x, zero), test(w, "Less", divisor, zero))
        result = w.op("Sub", result, w.cast(test(w, "And", rest, signs), x.dtype))
    if by_zero is None:
        return result
    if x.dtype.is_signed:
        minus = test(w, "Equal", y, w.scalar(-1, x))
        result = w.op("Where", minus, w.op("Sub", zero, x), result)
    limits = np.iinfo(x.dtype.np)
    beyond = w.op("Where", test(w, "Greater", x, zero), w.scalar(limits.max, x), zero)
    if x.dtype.is_signed:
        beyond = w.op("Where", test(w, "Less", x, zero), w.scalar(limits.min, x), beyond)
    return w.op("Where", by_zero, beyond, result)


def truncated(w: Any, x: Any) -> Any:
    """A floating tensor rounded to zero."""
    return w.op("Where", test(w, "Less", x, w.scalar(0, x)), w.op("Ceil", x), w.op("Floor", x))


@rule("floor_div")
def _floor_div(w, node, x, y):
    if x.dtype.is_floating:
        return w.op("Floor", w.op("Div", x, y))
    if x.dtype is BOOL:
        raise Unsupported("floor_div of bool")
    return _integer_quotient(w, node, x, y, floor=True)


@rule("truncate_div")
def _truncate_div(w, node, x, y):
    if x.dtype.is_floating:
        return truncated(w, w.op("Div", x, y))
    return _integer_quotient(w, node, x, y, floor=False)


@rule("floor_mod", "truncate_mod")
def _mod(w, node, x, y):
    floor = node.op.name == "floor_mod"
    zero = w.scalar(0, x)
    if x.dtype.is_floating:
        rest = w.op("Mod", x, y, fmod=1)
        if not floor:
            return rest
        left = test(w, "Not", test(w, "Equal", rest, zero))
        signs = test(w, "Xor", test(w, "Less", rest, zero), test(w, "Less", y, zero))
        return w.op("Where", test(w, "And", left, signs), w.op("Add", rest, y), rest)
    by_zero, divisor = _safe(w, node, x, y)
    rest = w.op("Mod", x, divisor, fmod=0 if floor else 1)
    return rest if by_zero is None else w.op("Where", by_zero, x, rest)


@rule("floor", "ceil", "trunc")
def _whole(w, node, x):
    if not x.dtype.is_floating:
        return x
    return truncated(w, x) if node.op.name == "trunc" else w.op(node.op.definition.onnx, x)


@rule("round")
def _round(w, node, x):
    decimals = node.attrs["decimals"]
    if not x.dtype.is_floating:
        if decimals < 0:
            raise Unsupported("round of integers to places before the point")
        return x
    if decimals == 0:
        return w.op("Round", x)
    if abs(decimals) > 4:
        raise Unsupported(f"round to {decimals} places")
    scale = w.scalar(10.0 ** abs(decimals), x)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return w.op(back, w.op("Round", w.op(there, x, scale)), scale)


# ---- comparisons and logic -------------------------------------------------------------------------


@rule("not_equal")
def _not_equal(w, node, x, y):
    return test(w, "Not", test(w, "Equal", x, y))


@rule("invert")
def _invert(w, node, x):
    return test(w, "Not", x) if x.dtype is BOOL else w.op("BitwiseNot", x)


@rule("bitwise_left_shift", "bitwise_right_shift")
def _shift(w, node, x, y):
    """Shifts of the bits as an unsigned number; below zero, to the right, those of ``-1 - x``."""
    if x.dtype is BOOL:
        raise Unsupported(f"{node.op.name} of bool")
    bits, dtype = x.dtype.itemsize * 8, x.dtype
    unsigned = getattr(dtypes, f"uint{bits}")
    beyond = test(w, "GreaterOrEqual", y, w.scalar(bits, y))
    beyond = test(w, "Or", beyond, test(w, "Less", y, w.scalar(0, y))) if dtype.is_signed else beyond
    count = w.cast(w.op("Where", beyond, w.scalar(0, y), y), unsigned)
    if "left" in node.op.name:
        made = w.cast(w.op("BitShift", w.cast(x, unsigned), count, direction="LEFT"), dtype)
        return w.op("Where", beyond, w.scalar(0, x), made)
    below, rest = None, w.scalar(-1, x) if dtype.is_signed else None
    if rest is not None:
        below = test(w, "Less", x, w.scalar(0, x))
        x = w.op("Where", below, w.op("Sub", rest, x), x)
    made = w.cast(w.op("BitShift", w.cast(x, unsigned), count, direction="RIGHT"), dtype)
    made = w.op("Where", beyond, w.scalar(0, x), made)
    return made if below is None else w.op("Where", below, w.op("Sub", rest, made), made)


@rule("isnan", "isinf", "isfinite", "isposinf", "isneginf")
def _is_special(w, node, x):
    name = node.op.name
    if not x.dtype.is_floating:
        same = test(w, "Equal", x, x)
        return same if name == "isfinite" else test(w, "Not", same)
    if name in ("isposinf", "isneginf"):
        return test(w, "Equal", x, w.scalar(np.inf if name == "isposinf" else -np.inf, x))
    if name == "isnan":
        return test(w, "IsNaN", x)
    if name == "isinf":
        return is_infinite(w, x)
    return test(w, "Less", w.op("Abs", x), w.scalar(np.inf, x))


@rule("signbit")
def _signbit(w, node, x):
    if not x.dtype.is_floating:
        return test(w, "Less", x, w.scalar(0, x))
    return is_negative(w, x)


@rule("copysign")
def _copysign(w, node, x, y):
    size = w.op("Abs", w.cast(x, node.outputs[0].type.dtype))
    negative = is_negative(w, y) if y.dtype.is_floating else test(w, "Less", y, w.scalar(0, y))
    return w.op("Where", negative, w.op("Neg", size), size)


@rule("nan_to_num")
def _nan_to_num(w, node, x):
    if not x.dtype.is_floating:
        return x
    largest = float(np.finfo(x.dtype.np).max) if x.dtype is not dtypes.bfloat16 else 3.3895314e38
    nan, above, below = (node.attrs[n] for n in ("nan", "posinf", "neginf"))
    result = w.op("Where", test(w, "IsNaN", x), w.scalar(nan or 0.0, x), x)
    for limit, value in ((np.inf, above), (-np.inf, below)):
        value = math.copysign(largest, limit) if value is None else value
        result = w.op("Where", test(w, "Equal", x, w.scalar(limit, x)), w.scalar(value, x), result)
    return result


@rule("where")
def _where(w, node, condition, x, y):
    return w.op("Where", w.cast(condition, BOOL), x, y)


@rule("imag")
def _imag(w, node, x):
    return w.op("Expand", w.scalar(0, x), w.shape_of(x))


@rule("fill_like")
def _fill_like(w, node, x):
    dtype = node.outputs[0].type.dtype
    return w.op("Expand", w.constant(np.asarray(node.attrs["value"]), dtype), w.shape_of(x))
