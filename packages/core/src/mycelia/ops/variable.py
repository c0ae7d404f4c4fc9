"""Numbers and sequences that are variables of a compiled function: what `mutable` makes.

A graph here has a fixed structure, so a sequence of variable length is compiled for the length that it has.
What code of graphs can ask, whether a value is a constant and whether a length is known, is answered as in
MindSpore: what is made of such a sequence is of variable length too, and what is counted in it a variable.
"""

from __future__ import annotations

from typing import Any

from mycelia import _C


class MutableInt(int):
    """An int that is a variable of a compiled function: a 0-d int64 tensor inside."""


class MutableFloat(float):
    """A float that is a variable of a compiled function: a 0-d float32 tensor inside."""


def is_variable(value: Any) -> bool:
    """Whether a graph does not know this value: a Tensor of the graph, or a number that `mutable` made."""
    if isinstance(value, _C.Tensor):
        return value.traced is not None
    return isinstance(value, (MutableInt, MutableFloat))


class _VariableLength:
    """What lists and tuples of variable length have in common."""

    def __add__(self, other: Any):
        return type(self)((*self, *other))

    def __radd__(self, other: Any):
        return type(self)((*other, *self))

    def __mul__(self, count: int):
        return type(self)(tuple(self) * count)

    __rmul__ = __mul__

    def __getitem__(self, index: Any):
        found = super().__getitem__(index)  # type: ignore[misc]
        return type(self)(found) if isinstance(index, slice) else found

    def count(self, value: Any) -> MutableInt:
        return MutableInt(super().count(value))  # type: ignore[misc]

    def index(self, value: Any, *limits: int) -> MutableInt:
        return MutableInt(super().index(value, *limits))  # type: ignore[misc]


class VariableList(_VariableLength, list):
    """A list of variable length."""


class VariableTuple(_VariableLength, tuple):
    """A tuple of variable length."""


VARIABLE_LENGTH: dict[type, type] = {list: VariableList, tuple: VariableTuple}
