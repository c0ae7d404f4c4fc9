"""What a compiled function is kept for: types of tensors, values of Python arguments, objects by identity.

`KINDS` says for each type of argument what counts of it. Three keys follow it: `signature`, the key with the
shapes apart; `_C.call_key`, one string of bytes for a call that is known; `fingerprint`, which is the same in
another process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.engine import _C
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

# What counts of an argument besides its type, by the numbers that native code knows.
TYPED, ALONE, INTEGER, FLOATS, TEXT, ITEMS, ENTRIES = range(7)

#: Arguments that all three keys know, by their exact type.
KINDS: dict[type, int] = {
    Tensor: TYPED,  # dtype and sizes: the elements are an input of the graph
    type(None): ALONE,
    bool: INTEGER,
    int: INTEGER,
    float: FLOATS,  # bit for bit: -0.0 and each nan are values of their own
    complex: FLOATS,
    str: TEXT,
    bytes: TEXT,
    tuple: ITEMS,
    list: ITEMS,
    dict: ENTRIES,  # in order
}
_C.call_kinds(tuple(KINDS.items()))

_NUMBERS = (MutableInt, MutableFloat)  # numbers whose value is an input of the graph
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
    counts = KINDS.get(kind)
    if counts == TYPED:
        tensors.append(value)
        return value.dtype, value.ndim
    if counts in (ALONE, INTEGER, TEXT):
        return kind, value
    if counts == FLOATS:
        return kind, float_bytes(value)
    if counts == ITEMS or kind is VariableList or isinstance(value, tuple):
        return (kind, *(_part(v, tensors, kept) for v in value))
    if counts == ENTRIES:
        return (kind, *((_part(k, tensors, kept), _part(v, tensors, kept)) for k, v in value.items()))
    if kind in _NUMBERS:
        tensors.append(number_tensor(value))
        return kind
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dtypes.DType):
        return kind, value
    kept.append(value)
    return kind, id(value)


def float_bytes(value: complex) -> bytes:
    """A float or complex number bit for bit."""
    return struct.pack("<d", value) if type(value) is float else struct.pack("<dd", value.real, value.imag)


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
