"""Operators of TensorFlow Lite that work on each element."""

from __future__ import annotations

import functools
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import cast, scalar, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, activated, operator

_truncate_div = find("truncate_div")


def _of_one(name: str, op: Any) -> None:
    operator(name)(lambda call, x: op(x))


for _name, _op in {
    "ABS": ops.abs, "NEG": ops.neg, "SQRT": ops.sqrt, "RSQRT": ops.rsqrt, "EXP": ops.exp, "LOG": ops.log,
    "SIN": ops.sin, "COS": ops.cos, "SQUARE": ops.square, "FLOOR": ops.floor, "CEIL": ops.ceil,
    "ROUND": ops.round, "SIGN": ops.sign, "LOGICAL_NOT": ops.logical_not, "ZEROS_LIKE": ops.zeros_like,
}.items():  # fmt: skip
    _of_one(_name, _op)


def _of_two(name: str, op: Any) -> None:
    operator(name)(lambda call, a, b: op(a, b))


for _name, _op in {
    "MAXIMUM": ops.maximum, "MINIMUM": ops.minimum, "EQUAL": ops.equal, "NOT_EQUAL": ops.not_equal,
    "LESS": ops.less, "LESS_EQUAL": ops.less_equal, "GREATER": ops.greater,
    "GREATER_EQUAL": ops.greater_equal, "LOGICAL_AND": ops.logical_and, "LOGICAL_OR": ops.logical_or,
    "ATAN2": ops.atan2, "BITWISE_XOR": ops.bitwise_xor, "RIGHT_SHIFT": ops.bitwise_right_shift,
    "SQUARED_DIFFERENCE": lambda a, b: ops.square(ops.sub(a, b)),
}.items():  # fmt: skip
    _of_two(_name, _op)


def _with_activation(name: str, table: str, op: Any) -> None:
    def run(call: Call, a: Any, b: Any) -> Any:
        if "pot_scale_int16" in _FIELDS.get(name, ()):
            call.get(table, "pot_scale_int16")
        return activated(call, table, op(a, b))

    operator(name)(run)


def _div(a: Any, b: Any) -> Any:
    """Of integers it is rounded to zero."""
    return ops.div(a, b) if a.dtype.is_floating else cast(_truncate_div(a, b), a.dtype)


_FIELDS = {"ADD": ("pot_scale_int16",), "SUB": ("pot_scale_int16",)}
for _name, _table, _op in (
    ("ADD", "AddOptions", ops.add), ("SUB", "SubOptions", ops.sub),
    ("MUL", "MulOptions", ops.mul), ("DIV", "DivOptions", _div),
):  # fmt: skip
    _with_activation(_name, _table, _op)


@operator("FLOOR_DIV")
def _floor_div(call, a, b):
    return cast(ops.floor_div(a, b), a.dtype)


@operator("FLOOR_MOD")
def _floor_mod(call, a, b):
    """The sign is that of the divisor."""
    return cast(ops.floor_mod(a, b), a.dtype)


@operator("POW")
def _pow(call, a, b):
    return cast(ops.pow(a, b), a.dtype)


@operator("ADD_N")
def _add_n(call, first, *rest):
    return functools.reduce(ops.add, rest, first)


@operator("CAST")
def _cast(call, x):
    """Fractions are cut off; what the options say is what the tensors have."""
    call.get("CastOptions", "in_data_type")
    call.get("CastOptions", "out_data_type")
    dtype = call.outputs[0].dtype
    return ops.not_equal(x, scalar(0, x)) if dtype == ms.bool_ else cast(x, dtype)


@operator("SELECT_V2")
def _select_v2(call, condition, a, b):
    return ops.where(condition, a, b)


@operator("SELECT")
def _select(call, condition, a, b):
    """A condition of rank 1 chooses along the first axis."""
    rank = len(shape_of(a))
    if len(shape_of(condition)) == 1 and rank > 1:
        condition = ops.reshape(condition, (*shape_of(condition), *(1,) * (rank - 1)))
    return ops.where(condition, a, b)
