"""Functions on Python values: what MindSpore has as primitives of scalars, tuples, lists, dicts and texts.

In a graph they run while it is captured; numbers among them may be traced tensors.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.control_flow.variable import is_variable


def _with_item(items: Any, index: Any, value: Any) -> Any:
    """A copy of a tuple, list or dict with one member replaced."""
    if isinstance(items, dict):
        return {**items, index: value}
    made = list(items)
    made[index] = value
    return type(items)(made)


def _broadcast_axes(x_shape: tuple, y_shape: tuple) -> tuple:
    """Which axes of the broadcast shape each operand was repeated along: what a gradient sums over."""
    rank = max(len(x_shape), len(y_shape))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in (x_shape, y_shape)]
    found = []
    for mine, other in (padded, padded[::-1]):
        found.append(tuple(i for i in range(rank) if mine[i] == 1 and (other[i] != 1 or mine[i] == other[i])))
    return tuple(found)


def _quotients(x: tuple, y: tuple) -> tuple:
    if len(x) != len(y):
        raise errors.value_error("tuple_div", f"the tuples have {len(x)} and {len(y)} members")
    if any(a % b for a, b in zip(x, y)):
        raise errors.value_error("tuple_div", f"the members of {x} are not divisible by those of {y}")
    return tuple(a // b for a, b in zip(x, y))


def _reduced(shape: tuple, axes: tuple) -> tuple:
    return tuple(1 if i in {a % len(shape) for a in axes} else n for i, n in enumerate(shape))


# name -> function of any arguments
_ANY: dict[str, Callable] = {
    **dict.fromkeys(("tuple_getitem", "list_getitem", "dict_getitem"), operator.getitem),
    **dict.fromkeys(("tuple_setitem", "list_setitem", "dict_setitem"), _with_item),
    **dict.fromkeys(("tuple_len", "list_len"), len),
    **dict.fromkeys(("tuple_equal", "list_equal", "string_eq", "bool_eq"), operator.eq),
    "scalar_ne": operator.ne,
    "tuple_reversed": lambda x: x[::-1],
    "tuple_div": _quotients,
    "make_range": lambda *limits: tuple(range(*limits)),
    "make_tuple": lambda *items: items,
    "make_list": lambda *items: list(items),
    "make_dict": lambda keys, values: dict(zip(keys, values)),
    "make_slice": slice,
    "string_concat": operator.add,
    "bool_not": operator.not_,
    "bool_or": lambda x, y: x or y,
    "bool_and": lambda x, y: x and y,
    "is_": operator.is_,
    "is_not": operator.is_not,
    "in_dict": lambda x, y: x in y,
    "not_in_dict": lambda x, y: x not in y,
    "broadcast_gradient_args": _broadcast_axes,
    "reduced_shape": _reduced,
    "switch": lambda condition, x, y: x if condition else y,
    "isconstant": lambda x: not is_variable(x),
    "hastype": lambda x, t: (x.dtype if isinstance(x, _C.Tensor) else type(x)) is t,
    "is_tensor_bool_cond": lambda x: isinstance(x, _C.Tensor),
    "typeof": lambda x: x.dtype if isinstance(x, _C.Tensor) else type(x),
}  # fmt: skip
# of two numbers, and of one
_BINARY: dict[str, Callable] = {
    "scalar_add": operator.add, "scalar_sub": operator.sub, "scalar_mul": operator.mul,
    "scalar_div": operator.truediv, "scalar_floordiv": operator.floordiv, "scalar_mod": operator.mod,
    "scalar_pow": operator.pow, "scalar_gt": operator.gt, "scalar_ge": operator.ge,
    "scalar_lt": operator.lt, "scalar_le": operator.le, "scalar_eq": operator.eq,
    "scalar_max": lambda x, y: max(x, y), "scalar_min": lambda x, y: min(x, y),
}  # fmt: skip
_UNARY: dict[str, Callable] = {
    "scalar_uadd": operator.pos, "scalar_usub": operator.neg, "scalar_log": lambda x: math.log(x),
}  # fmt: skip


def _named(name: str, function: Callable, parameters: str) -> Callable:
    """`function` under a name of its own, with parameters of these names."""

    def named(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = signature.bind(*args, **kwargs).args
        return function(*args)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(p, kind) for p in parameters])
    named.__name__ = named.__qualname__ = name
    named.__doc__ = f"{name.replace('_', ' ').strip().capitalize()}, of Python values."
    if parameters:
        named.__signature__ = signature
    return named


for _names, _parameters in ((_ANY, ""), (_BINARY, "xy"), (_UNARY, "x")):
    globals().update({name: _named(name, function, _parameters) for name, function in _names.items()})


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """The number `input_x` as Python's type for the dtype `input_y`: int64, float64 or bool."""
    kinds = {"int64": int, "float64": float, "bool": bool}
    name = dtypes.as_dtype(input_y).name
    if name not in kinds:
        raise errors.value_error("ScalarCast", f"the dtype must be int64, float64 or bool, but got {name}")
    return kinds[name](input_x)


def scalar_to_tensor(input_x: Any, dtype: Any = dtypes.float32) -> Any:
    """A number as a tensor of rank 0.  Errors: TypeError for anything else."""
    if not isinstance(input_x, (bool, int, float)):
        raise errors.type_error(
            "scalar_to_tensor", f"input_x must be a number, but got {type(input_x).__name__}"
        )
    return constant(input_x, dtypes.as_dtype(dtype))


def scalar_to_array(input_x: Any) -> Any:
    """A number as a tensor of rank 0, int64 or float32 as it is."""
    return constant(input_x, dtypes.int64 if isinstance(input_x, int) else dtypes.float32)


def tuple_to_array(input_x: tuple) -> Any:
    """A tuple or range of numbers of one type as a vector: int32 or float32.  Errors: TypeError for other
    members.
    """
    if not isinstance(input_x, (tuple, range)):
        raise errors.type_error("tuple_to_array", f"expected a tuple, but got {type(input_x).__name__}")
    kinds = {x.__class__ for x in input_x}  # open sizes count as int
    if len(kinds) > 1 or not kinds <= {int, float}:
        raise errors.type_error(
            "tuple_to_array", f"the members must all be int or all be float, but got {input_x}"
        )
    return constant(input_x, dtypes.int32 if kinds == {int} else dtypes.float32)


__all__ = [
    *_ANY, *_BINARY, *_UNARY, "scalar_cast", "scalar_to_array", "scalar_to_tensor", "tuple_to_array",
]  # fmt: skip
