"""Which tensors of a graph stand for Python numbers.

While a function is captured, a number that shows only when the graph runs is a 0-d tensor: a `mutable`
argument, what two branches of a tensor condition leave, the counter of a loop, `int(x)`. Its graph value says
so, and what Python's operators make of such numbers is a number too. What a compiled function returns of them
is a bool, int or float again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.ir.graph import Value
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.tensors.tensor import Tensor

_PYTHON = (bool, int, float, SymInt)
_OPERATORS = frozenset(
    """
    abs add bitwise_and bitwise_or bitwise_xor div equal floor_div floor_mod greater greater_equal less
    less_equal logical_and logical_not logical_or maximum minimum mod mul neg not_equal pow remainder sub
    """.split()
)


def kind_of(dtype: Any) -> type:
    """The Python type whose numbers have this dtype in a graph."""
    return bool if dtype.is_bool else int if dtype.is_integer else float


def marked(tensor: Tensor) -> Tensor:
    """The traced tensor, from now on known as a number."""
    if isinstance(tensor.traced, Value):
        tensor.traced.is_number = True
    return tensor


def is_number(value: Any) -> bool:
    """True for a Python number and for a tensor that stands for one."""
    if isinstance(value, Tensor):
        return isinstance(value.traced, Value) and value.traced.is_number
    return type(value) in _PYTHON


def gives_number(op: Any, inputs: Sequence[Any]) -> bool:
    """Whether an operator of Python takes numbers alone, one of them known only to the graph."""
    return (
        op.name in _OPERATORS and all(map(is_number, inputs)) and any(isinstance(v, Tensor) for v in inputs)
    )
