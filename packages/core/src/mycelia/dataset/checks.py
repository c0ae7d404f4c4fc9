"""Checks of arguments of nodes and transforms: TypeError for a wrong type, ValueError for a wrong value.

Scripts look for pieces of these messages, so the middle of each has the form that MindSpore's have: the
argument, its value and the types, or the interval as it is written there.
"""

from __future__ import annotations

import math

from mycelia.engine.base import errors

INT32_MAX = 2**31 - 1
FLOAT_MAX = 2**24  # integers up to here are exact in float32: the range taken for float arguments


def kind(op: str, name: str, value, *types: type):
    """`value` if it is of one of the types; a bool counts as an int only where bool is among them."""
    flag = isinstance(value, bool) and int in types and bool not in types
    if flag or not isinstance(value, types):
        shown = '""' if isinstance(value, str) and not value else value
        types = tuple(t for t in types if t is not type(None)) or types
        wanted = types if flag else list(types)
        raise errors.type_error(
            op, f"Argument {name} with value {shown} is not of type {wanted}, but got {type(value)}."
        )
    return value


def between(op: str, name: str, value, low: float, high: float, *, above: bool = False, below: bool = False):
    """`value` if it lies in [low, high]; `above` leaves `low` out, `below` leaves `high` out."""
    inside = (low < value if above else low <= value) and (value < high if below else value <= high)
    if not inside:
        interval = f"{'(' if above else '['}{low}, {high}{')' if below else ']'}"
        raise outside(op, name, value, interval)
    return value


def outside(op: str, name: str, value, interval: str) -> errors.MyceliaValueError:
    """The error for a value outside of an interval."""
    return errors.value_error(
        op, f"Input {name} is not within the required interval of {interval}. Its value is {value}."
    )


def choice(op: str, name: str, value, choices):
    """`value` if it is among the choices; the nearest ones are a hint."""
    if value not in choices:
        near = errors.one_of(value, choices, subject=op, what=name).hint
        raise errors.value_error(
            op, f"Input {name} is not within the valid set of {list(choices)}. It is {value!r}.", hint=near
        )
    return value


def integer(op: str, name: str, value, low: int = 1, high: int = INT32_MAX) -> int:
    """An int of [low, high]."""
    return between(op, name, kind(op, name, value, int), low, high)


def number(op: str, name: str, value, low: float = -FLOAT_MAX, high: float = FLOAT_MAX, *, above=False):
    """A float or int of [low, high], or of (low, high] with `above`."""
    kind(op, name, value, float, int)
    if math.isnan(value):
        raise errors.value_error(op, f"{name} must be a number, but got {value}")
    return between(op, name, value, low, high, above=above)


def nonzero(op: str, name: str, value, *types: type):
    """An int (or one of the types) that is not zero."""
    kind(op, name, value, *(types or (int,)))
    low, high = (-FLOAT_MAX, FLOAT_MAX) if types else (-INT32_MAX - 1, INT32_MAX)
    if value == 0 or not low <= value <= high:
        raise outside(op, name, value, f"[{low}, 0) and (0, {high}]")
    return value
