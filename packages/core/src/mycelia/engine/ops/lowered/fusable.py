"""Which elementwise ops become steps of a fused program, and which steps: said here only."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from mycelia.engine.base import dtypes
from mycelia.engine.ops.lowered.fused import FLOAT, INT, MASK, NARROW, TYPES, Program
from mycelia.engine.ops.lowered.rounded import ROUNDING

#: Ops whose float32 kernel is the primitive of the same name.
_SAME = {
    "add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "square", "sign", "reciprocal", "sqrt",
    "rsqrt", "floor", "ceil", "trunc", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "tanh_grad",
    "erf", "sigmoid", "sigmoid_grad", "relu", "relu_grad", "relu6", "hardsigmoid", "hardswish",
    "hardswish_grad", "silu", "silu_grad", "fast_gelu", "mish", "round_f16", "round_bf16",
}  # fmt: skip
_INTEGER = {"add": "add_int", "sub": "sub_int", "mul": "mul_int"}
_COMPARED = {  # op -> primitive, operands swapped
    "equal": ("equal", False), "not_equal": ("not_equal", False), "less": ("less", False),
    "less_equal": ("less_equal", False), "greater": ("less", True), "greater_equal": ("less_equal", True),
}  # fmt: skip
_LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}


def _pow(p: Program, x: int, exponent: int) -> int:
    """Exponents that the kernel of pow treats apart are treated apart here."""
    name, operands = p.steps[exponent]
    number = struct.unpack("<f", struct.pack("<I", operands[0]))[0] if name == "constant" else None
    if number == 2:
        return p.step("square", x)
    if number == 3:
        return p.step("mul", p.step("square", x), x)
    if number == -1:
        return p.step("reciprocal", x)
    if number == 0.5:  # of -0.0 it is 0.0
        root = p.step("add", p.step("sqrt", x), p.constant(0.0))
        return p.step("select", p.step("equal", x, p.constant(-math.inf)), p.constant(math.inf), root)
    return p.step("pow", x, exponent)


def _bounds(p: Program, attrs: dict) -> tuple[int, int]:
    low = -math.inf if attrs["min"] is None else attrs["min"]
    return p.constant(low), p.constant(math.inf if attrs["max"] is None else attrs["max"])


def _clip_grad(p: Program, dy: int, x: int, attrs: dict) -> int:
    low, high = _bounds(p, attrs)
    inside = p.step("and", p.step("less_equal", low, x), p.step("less_equal", x, high))
    return p.step("select", inside, dy, p.constant(0.0))


def _hardtanh_grad(p: Program, dy: int, x: int, attrs: dict) -> int:
    low, high = p.constant(attrs["min_val"]), p.constant(attrs["max_val"])
    inside = p.step("and", p.step("less", low, x), p.step("less", x, high))
    return p.step("select", inside, dy, p.constant(0.0))


def _softplus(p: Program, x: int, attrs: dict) -> int:
    scaled = p.step("mul", x, p.constant(attrs["beta"]))
    smooth = p.step("mul", p.step("softplus", scaled), p.constant(1 / attrs["beta"]))
    return p.step("select", p.step("less", p.constant(attrs["threshold"]), scaled), x, smooth)


def _softplus_grad(p: Program, dy: int, x: int, attrs: dict) -> int:
    scaled = p.step("mul", x, p.constant(attrs["beta"]))
    smooth = p.step("mul", dy, p.step("sigmoid", scaled))
    return p.step("select", p.step("less", p.constant(attrs["threshold"]), scaled), dy, smooth)


#: Ops with attributes: (program, values..., attrs) -> value.
_WITH_ATTRIBUTES: dict[str, Callable] = {
    "leaky_relu": lambda p, x, a: p.step("leaky_relu", x, p.constant(a["alpha"])),
    "leaky_relu_grad": lambda p, dy, x, a: p.step("leaky_relu_grad", dy, x, p.constant(a["alpha"])),
    "elu": lambda p, x, a: p.step("elu", x, p.constant(a["alpha"])),
    "elu_grad": lambda p, dy, y, a: p.step("elu_grad", dy, y, p.constant(a["alpha"])),
    "clip": lambda p, x, a: p.step("clip", x, *_bounds(p, a)),
    "clip_grad": _clip_grad,
    "hardtanh": lambda p, x, a: p.step("clip", x, p.constant(a["min_val"]), p.constant(a["max_val"])),
    "hardtanh_grad": _hardtanh_grad,
    "softplus": _softplus,
    "softplus_grad": _softplus_grad,
    "gelu": lambda p, x, a: p.step("gelu" if a["approximate"] == "none" else "gelu_tanh", x),
    "gelu_grad": lambda p, dy, x, a: p.step(
        "gelu_grad" if a["approximate"] == "none" else "gelu_tanh_grad", dy, x
    ),
}
_CASTS = {
    (INT, FLOAT): "float_of_int", (MASK, FLOAT): "float_of_mask", (FLOAT, INT): "int_of_float",
    (MASK, INT): "int_of_mask", (FLOAT, MASK): "mask_of_float", (INT, MASK): "mask_of_int",
}  # fmt: skip


_FLOATS = {dtypes.float32, *NARROW}


def is_fusable(name: str, attrs: dict, input_dtypes: tuple, output_dtype) -> bool:
    """Whether the elementwise op `name` on inputs of these dtypes has a translation."""
    first = input_dtypes[0] if input_dtypes else None
    if name == "cast" and {first, output_dtype} <= _FLOATS:
        return first is not output_dtype
    if output_dtype not in TYPES or any(d not in TYPES for d in input_dtypes):
        return False
    if name == "cast":
        return first is not output_dtype
    if name == "where":
        return input_dtypes[0] is dtypes.bool_ and output_dtype is not dtypes.bool_
    if name in _LOGICAL:
        return first is dtypes.bool_
    if name in _COMPARED or name in _INTEGER and first is dtypes.int32:
        return first in (dtypes.float32, dtypes.int32)
    known = name in _SAME or name in _WITH_ATTRIBUTES or name in ("pow", "logsigmoid")
    return known and all(d is dtypes.float32 for d in input_dtypes)


def translate(p: Program, name: str, values: list[int], attrs: dict) -> int:
    """The value of the op `name` of `values`, as steps of `p`."""
    type = p.types[values[0]]
    if name == "cast" and attrs["dtype"] in _FLOATS and type == FLOAT:
        rounding = ROUNDING.get(attrs["dtype"])
        if rounding is None or p.steps[values[0]][0] == rounding:  # its input has been rounded already
            return values[0]
        return p.step(rounding, values[0])
    if name == "cast":
        return p.step(_CASTS[type, TYPES[attrs["dtype"]]], values[0])
    if name == "where":
        return p.step("select", *values)
    if name in _LOGICAL:
        return p.step(_LOGICAL[name], *values)
    if name in _COMPARED:
        primitive, swapped = _COMPARED[name]
        return p.step(primitive + ("_int" if type == INT else ""), *(values[::-1] if swapped else values))
    if name in _INTEGER and type == INT:
        return p.step(_INTEGER[name], *values)
    if name == "pow":
        return _pow(p, *values)
    if name == "logsigmoid":
        return p.step("neg", p.step("softplus", p.step("neg", values[0])))
    if name in _WITH_ATTRIBUTES:
        return _WITH_ATTRIBUTES[name](p, *values, attrs)
    return p.step(name, *values)
