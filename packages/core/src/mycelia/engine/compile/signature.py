"""What a compiled function is kept for: types of tensors, values of Python arguments, objects by identity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.capture.numbers import marked
from mycelia.engine.compile.mutable import number_tensor
from mycelia.engine.ops.control_flow.variable import (
    MutableFloat,
    MutableInt,
    VariableList,
    VariableTuple,
    of_variable_length,
)
from mycelia.engine.tensors.tensor import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_NUMBERS = (MutableInt, MutableFloat)
Shape = tuple[int, ...]


def signature(
    args: tuple, kwargs: dict, tensors: list[Tensor], kept: list[Any]
) -> tuple[Any, tuple[Shape, ...]]:
    """A hashable key for arguments without the shapes of their tensors, and these shapes.

    Collects the tensors, and the objects that the key names by identity. Errors: RuntimeError for a container
    that holds itself.
    """
    try:
        parts = [_part(value, tensors, kept) for value in args]
        if kwargs:
            parts.append(_part(kwargs, tensors, kept))
    except RecursionError:
        text = "Detect recursion when converting python object. An argument is a container that holds itself"
        raise errors.runtime_error("jit", text) from None
    return tuple(parts), tuple(t.shape for t in tensors)


def _part(value: Any, tensors: list[Tensor], kept: list[Any]) -> Any:
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return value.dtype, value.ndim
    if kind is MutableInt or kind is MutableFloat:
        tensors.append(number_tensor(value))
        return kind
    if kind in _PLAIN:  # -0.0 and nan are values of their own
        return kind, repr(value) if kind is float or kind is complex else value
    if kind is tuple or kind is list or kind is VariableList or isinstance(value, tuple):
        return (kind, *(_part(v, tensors, kept) for v in value))
    if kind is dict:
        return (kind, *((k, _part(v, tensors, kept)) for k, v in value.items()))
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (dtypes.DType, np.generic)):
        return kind, value
    kept.append(value)
    return kind, id(value)


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The argument with its tensors taken from an iterator, in the order of `signature`."""
    kind = type(value)
    if kind is Tensor:
        return next(tensors)
    if kind in _NUMBERS:
        return marked(next(tensors))
    if kind is list or kind is tuple:
        return kind(replaced(v, tensors) for v in value)
    if kind is VariableList or kind is VariableTuple:
        return of_variable_length([replaced(v, tensors) for v in value], kind)
    if kind is dict:
        return {k: replaced(v, tensors) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(replaced(v, tensors) for v in value))
    return value
