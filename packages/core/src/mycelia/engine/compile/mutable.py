"""`mutable`: Python numbers that compiled functions take as tensors: other values do not compile anew."""

from __future__ import annotations

from typing import Any

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.variable import (
    MutableFloat,
    MutableInt,
    VariableList,
    VariableTuple,
    as_variable,
    in_graph,
    of_variable_length,
)
from mycelia.engine.tensors.tensor import Tensor

_NUMBERS = (MutableInt, MutableFloat)


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The same data, its numbers made variables of compiled functions instead of constants.

    Tensors are variables anyway. A tuple, list or dict comes back with its members made mutable; a bool is a
    constant. With `dynamic_len` the length of the tuple or list counts as unknown in a graph, see
    `ops.variable`: its members must be alike; an argument of another length compiles anew.
    Errors: TypeError for other types, for what holds itself, and for `dynamic_len` without a sequence;
    in a graph ValueError for members of different types, RuntimeError to make a length known again.
    """
    if not isinstance(dynamic_len, bool):
        raise _complaint(f"the second input should be bool, but got {type(dynamic_len).__name__}")
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise _complaint(
            "when the variable_len is True, the first input should be list or tuple, but got "
            f"{type(input_data).__name__}"
        )
    if isinstance(input_data, (VariableList, VariableTuple)):
        if not dynamic_len and in_graph():
            raise _complaint(
                "can not convert a dynamic length sequence to constant length.", errors.MyceliaRuntimeError
            )
        if dynamic_len:
            return input_data
        input_data = (list if isinstance(input_data, list) else tuple)(input_data)
    made = _variables(input_data, [])
    return of_variable_length(made) if dynamic_len else made


def _variables(value: Any, around: list[int]) -> Any:
    """`value` with its numbers made variables; `around`: the containers that hold it, by identity."""
    kind = type(value)
    if kind is Tensor:
        return as_variable(value) if in_graph() else value
    if isinstance(value, (bool, Tensor, *_NUMBERS)):
        return value
    if kind is int or kind is float:
        return as_variable(value)
    if isinstance(value, (VariableList, VariableTuple)):
        return value
    if kind in (tuple, list, dict) and id(value) not in around:
        inside = [*around, id(value)]
        if kind is dict:
            return {k: _variables(v, inside) for k, v in value.items()}
        return kind(_variables(v, inside) for v in value)
    raise _complaint(
        "the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their nested "
        f"structures with no self-reference, but got {type(value).__name__}: {value!r:.60}"
    )


def _complaint(text: str, kind: type[errors.MyceliaError] = errors.MyceliaTypeError) -> Exception:
    return errors.error(kind, f"For 'mutable', {text}")


def number_tensor(value: Any) -> Tensor:
    """The tensor that stands for a mutable number."""
    return (
        Tensor(int(value), dtypes.int64) if isinstance(value, int) else Tensor(float(value), dtypes.float32)
    )
