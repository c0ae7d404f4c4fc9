"""`mutable`: Python numbers that compiled functions take as tensors: other values do not compile anew."""

from __future__ import annotations

from typing import Any

from mycelia import _C, dispatch, dtypes, errors
from mycelia.ops.variable import VARIABLE_LENGTH, MutableFloat, MutableInt
from mycelia.tensor import Tensor


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The same data, its numbers made variables of compiled functions instead of constants.

    Tensors are variables anyway. A tuple, list or dict comes back with its members made mutable; a bool is a
    constant. With `dynamic_len` the length of a tuple or list made inside of a graph counts as unknown there,
    see `ops.variable`; an argument of another length compiles anew.
    Errors: TypeError for other types, and for `dynamic_len` without a sequence.
    """
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise errors.type_error(
            "mutable",
            f"with dynamic_len a tuple or list is needed, but got {type(input_data).__name__}",
        )
    kind = type(input_data)
    if isinstance(input_data, (bool, Tensor, MutableInt, MutableFloat)):
        return input_data
    if kind is int:
        return MutableInt(input_data)
    if kind is float:
        return MutableFloat(input_data)
    if kind is tuple or kind is list:
        variable = dynamic_len and _C.mode() & dispatch.TRACING
        return (VARIABLE_LENGTH[kind] if variable else kind)(mutable(v) for v in input_data)
    if kind is dict:
        return {k: mutable(v) for k, v in input_data.items()}
    raise errors.type_error(
        "mutable",
        "the data must be a number, a Tensor, or a tuple, list or dict of them, "
        f"but got {type(input_data).__name__}: {input_data!r:.60}",
    )


def as_variable(value: Any) -> Tensor:
    """The tensor that stands for a mutable number."""
    return (
        Tensor(int(value), dtypes.int64) if isinstance(value, int) else Tensor(float(value), dtypes.float32)
    )
