"""Checks of arguments of nodes and transforms: TypeError for a wrong type, ValueError for a wrong value."""

from __future__ import annotations

import math

from mycelia import errors

INT32_MAX = 2**31 - 1
FLOAT_MAX = 2**24  # integers up to here are exact in float32: the range taken for float arguments


def kind(op: str, name: str, value, *types: type):
    """`value` if it is of one of the types; a bool counts as an int only where bool is among them."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        wanted = " or ".join("None" if t is type(None) else t.__name__ for t in types)
        raise errors.type_error(op, f"{name} must be of type {wanted}, but got {value!r}")
    return value


def between(op: str, name: str, value, low: float, high: float, *, above: bool = False):
    """`value` if it lies in [low, high], or in (low, high] with `above`."""
    if not (low < value if above else low <= value) or not value <= high:
        raise errors.value_error(
            op, f"{name} must be in {'(' if above else '['}{low}, {high}], but got {value}"
        )
    return value


def integer(op: str, name: str, value, low: int = 1, high: int = INT32_MAX) -> int:
    """An int of [low, high]."""
    return between(op, name, kind(op, name, value, int), low, high)


def number(op: str, name: str, value, low: float = -FLOAT_MAX, high: float = FLOAT_MAX, *, above=False):
    """An int or float of [low, high], or of (low, high] with `above`."""
    kind(op, name, value, int, float)
    if math.isnan(value):
        raise errors.value_error(op, f"{name} must be a number, but got {value}")
    return between(op, name, value, low, high, above=above)


def nonzero(op: str, name: str, value, *types: type):
    """An int (or one of the types) that is not zero."""
    kind(op, name, value, *(types or (int,)))
    between(op, name, value, *((-FLOAT_MAX, FLOAT_MAX) if types else (-INT32_MAX - 1, INT32_MAX)))
    if value == 0:
        raise errors.value_error(op, f"{name} must not be 0")
    return value
