"""Elementwise ops as C expressions; those that follow one another become one loop, without memory between.

`{0}`, `{1}` stand for operands, `{alpha}` and the like for attributes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia_lite.micro.program import Program, Step

C_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float32": "float", "float64": "double",
}  # fmt: skip

# Functions of math.h: of float32 with an f behind.
_FUNCTIONS = {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor",
    "log", "log1p", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip

_REAL = {
    "abs": "fabs{f}({0})",
    "add": "{0} + {1}",
    "atan2": "atan2{f}({0}, {1})",
    "clip": None,
    "div": "{0} / {1}",
    "elu": "{0} > 0 ? {0} : {alpha} * ({one} * expm1{f}({0}))",
    "floor_div": "floor{f}({0} / {1})",
    "floor_mod": "(T)micro_floor_mod({0}, {1})",
    "hardsigmoid": "micro_clamp({0} + 3.0f, 0.0f, 6.0f) / 6.0f",
    "hardswish": "{0} * micro_clamp({0} + 3.0f, 0.0f, 6.0f) / 6.0f",
    "isfinite": "isfinite({0}) ? 1 : 0",
    "isinf": "isinf({0}) ? 1 : 0",
    "isnan": "isnan({0}) ? 1 : 0",
    "leaky_relu": "{0} > 0 ? {0} : {alpha} * {0}",
    "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "mul": "{0} * {1}",
    "neg": "-{0}",
    "pow": "pow{f}({0}, {1})",
    "reciprocal": "{one} / {0}",
    "relu": "{0} < 0 ? 0 : {0}",
    "relu6": "{0} < 0 ? 0 : {0} > 6 ? 6 : {0}",
    "round": "rint{f}({0})",
    "rsqrt": "{one} / sqrt{f}({0})",
    "sigmoid": "{one} / ({one} + exp{f}(-{0}))",
    "sign": "(T)(({0} > 0) - ({0} < 0))",
    "silu": "{0} / ({one} + exp{f}(-{0}))",
    "square": "{0} * {0}",
    "sub": "{0} - {1}",
    "truncate_mod": "fmod{f}({0}, {1})",
}

# U: the unsigned type of the same size, in which sums and products wrap around.
_WHOLE = {
    "abs": "{0} < 0 ? (T)((U)0 - (U){0}) : {0}",
    "add": "(T)((U){0} + (U){1})",
    "bitwise_and": "(T)({0} & {1})",
    "bitwise_left_shift": "(T)((U){1} < {bits} ? (U){0} << {1} : 0)",
    "bitwise_or": "(T)({0} | {1})",
    "bitwise_right_shift": "(T)({0} >> ((U){1} < {bits} ? {1} : {bits} - 1))",
    "bitwise_xor": "(T)({0} ^ {1})",
    "floor_div": "(T)micro_floor_quotient({0}, {1}, {most})",
    "floor_mod": "(T)micro_floor_remainder({0}, {1})",
    "invert": "(T)(~{0})",
    "maximum": "{0} > {1} ? {0} : {1}",
    "minimum": "{0} < {1} ? {0} : {1}",
    "mul": "(T)((U){0} * (U){1})",
    "neg": "(T)((U)0 - (U){0})",
    "sign": "(T)(({0} > 0) - ({0} < 0))",
    "square": "(T)((U){0} * (U){0})",
    "sub": "(T)((U){0} - (U){1})",
    "truncate_div": "(T)micro_quotient({0}, {1}, {most})",
    "truncate_mod": "(T)micro_remainder({0}, {1})",
}

_ANY = {
    "equal": "{0} == {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "logical_and": "{0} != 0 && {1} != 0",
    "logical_not": "{0} == 0",
    "logical_or": "{0} != 0 || {1} != 0",
    "not_equal": "{0} != {1}",
    "where": "{0} ? {1} : {2}",
}

_UNSIGNED = {  # of uint64, where they differ from those of int64
    "bitwise_right_shift": "{1} < 64 ? {0} >> {1} : 0",
    "floor_mod": "{1} ? {0} % {1} : 0",
    "truncate_div": "{1} ? {0} / {1} : {0} ? {most} : 0",
    "truncate_mod": "{1} ? {0} % {1} : 0",
}

_SPECIAL = {"cast", "clip", "combine", "dequantize", "gelu", "lookup", "pair", "quantize", "rescale"}
_TABLES = {"lookup": (1,), "pair": (2, 3)}  # operands that are read at places of their own


def is_map(program: Program, step: Step) -> bool:
    """Whether the step is elementwise, of types that expressions have."""
    if step.op not in _SPECIAL and step.op not in _ANY and step.op not in _FUNCTIONS:
        if step.op not in _REAL and step.op not in _WHOLE:
            return False
    types = {program.values[v].dtype.name for v in (*step.inputs, *step.outputs) if v >= 0}
    if not types <= C_TYPES.keys():
        return False
    if step.op in _SPECIAL or step.op in _ANY:
        return True
    return template(program, step) is not None


def template(program: Program, step: Step) -> str | None:
    """The expression of a plain op for the dtype of its first operand."""
    dtype = program.values[step.inputs[0]].dtype
    if step.op in _ANY:
        return _ANY[step.op]
    if dtype.kind == "f":
        return f"{step.op}{{f}}({{0}})" if step.op in _FUNCTIONS else _REAL.get(step.op)
    if dtype.kind == "b" and step.op == "invert":
        return "{0} == 0"
    if dtype == np.uint64 and step.op in _UNSIGNED:
        return _UNSIGNED[step.op]
    return _WHOLE.get(step.op)


def tables(step: Step) -> tuple[int, ...]:
    """Places of operands that are not read element by element."""
    return _TABLES.get(step.op, ())


def number(value: Any, dtype: np.dtype) -> str:
    """A literal of this type."""
    if dtype.kind == "f":
        suffix = "f" if dtype.itemsize == 4 else ""
        value = float(value)
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "-INFINITY" if value < 0 else "INFINITY"
        text = repr(np.float32(value).item() if suffix else value)
        if suffix:
            text = (
                np.format_float_scientific(np.float32(value), unique=True, trim="0")
                if "e" in text
                else (np.format_float_positional(np.float32(value), unique=True, trim="0"))
            )
        text = f"{text}{suffix}"
    else:
        value = int(value)
        text = str(value)
        if dtype.itemsize == 8:
            text = (
                "(-9223372036854775807 - 1)"
                if value == -(1 << 63)
                else f"{value}{'u' if dtype.kind == 'u' else ''}"
            )
        elif value == -(1 << 31):
            text = "(-2147483647 - 1)"
        elif dtype.kind == "u" and dtype.itemsize == 4:
            text += "u"
    return f"({text})" if text.startswith("-") else text


def expression(program: Program, step: Step, operands: list[str]) -> str:
    """What the step computes of an element, of the C type of its result."""
    given, made = (program.values[v].dtype for v in (step.inputs[0], step.outputs[0]))
    a = step.attributes
    if step.op == "cast":
        return _cast(given, made, operands[0])
    if step.op == "clip":
        low, high = (a[f"has_{side}"] and not math.isinf(a[side]) for side in ("min", "max"))
        x = operands[0]
        text = f"{x} > {number(a['max'], given)} ? {number(a['max'], given)} : {x}" if high else x
        return f"{x} < {number(a['min'], given)} ? {number(a['min'], given)} : {text}" if low else text
    if step.op == "gelu":
        x = operands[0]
        if a["approximate"]:
            return f"0.5f * {x} * (1.0f + tanhf(0.7978845608f * ({x} + 0.044715f * {x} * {x} * {x})))"
        return f"0.5f * {x} * (1.0f + erff({x} * 0.7071067812f))"
    if step.op == "lookup":
        return f"{operands[1]}[(uint8_t)({operands[0]} - {a['first']})]"
    if step.op == "pair":
        x, y = (f"(uint32_t){operands[2 + i]}[(uint8_t)({operands[i]} - {a['first']})]" for i in (0, 1))
        sign = "+-*"[a["how"]]
        return _rescaled(made, f"(int32_t)({x} {sign} {y})", a)
    if step.op == "rescale":
        return _rescaled(made, operands[0], a)
    if step.op in ("quantize", "dequantize", "combine"):
        return _of_steps(made, step, operands)
    names = {name: number(v, given) for name, v in a.items() if isinstance(v, float)}
    if given.kind in "iu":
        names |= {"most": number(np.iinfo(given).max, given), "bits": str(8 * given.itemsize)}
    single = given.itemsize == 4
    text = template(program, step).format(
        *operands, f="f" if single else "", one="1.0f" if single else "1.0", **names
    )
    if made.kind != "b":
        kind = C_TYPES[made.name]
        text = text.replace("(T)", f"({kind})").replace(
            "(U)", f"({'' if kind.startswith('u') else 'u'}{kind})"
        )
        if given.kind in "iu" and given.itemsize < 4 and not text.startswith("("):
            text = f"({kind})({text})"
        return text
    return f"(uint8_t)({text})"


def _of_steps(made: np.dtype, step: Step, operands: list[str]) -> str:
    """Between numbers and the integers that stand for them."""
    a, real, whole = step.attributes, np.dtype(np.float32), np.dtype(np.int32)

    def numbers(x: str, zero: int, scale: float) -> str:
        return f"(float)({x} - {number(zero, whole)}) * {number(scale, real)}"

    if step.op == "dequantize":
        return numbers(operands[0], a["zero"], a["scale"])
    if step.op == "quantize":
        text = f"{operands[0]} / {number(a['scale'], real)}"
    else:
        x, y = (numbers(operands[i], a[f"{n}_zero"], a[f"{n}_scale"]) for i, n in enumerate("xy"))
        text = f"{x} {'+-*'[a['how']]} {y}"
    limits = ", ".join(number(a[name], whole) for name in ("zero", "low", "high"))
    return f"({C_TYPES[made.name]})micro_rounded({text}, {limits})"


def _rescaled(made: np.dtype, x: str, a: dict) -> str:
    down = -1 if a["right"] and not a["up"] else 0
    numbers = f"{a['multiplier']}, {a['left']}, {a['right']}, {down}, {a['zero']}, "
    low, high = (number(a[side], np.dtype(np.int32)) for side in ("low", "high"))
    return f"({C_TYPES[made.name]})micro_rescale({x}, {numbers}{low}, {high})"


def _cast(given: np.dtype, made: np.dtype, x: str) -> str:
    if made.kind == "b":
        return f"(uint8_t)({x} != 0)"
    if given.kind == "f" and made.kind in "iu":
        # What no integer of the type has is undefined in C; the runtime's wider conversion cuts it off.
        return f"({C_TYPES[made.name]})(int64_t){x}" if made.itemsize < 8 else f"({C_TYPES[made.name]}){x}"
    return f"({C_TYPES[made.name]}){x}"
