"""Checks of the arguments of image transforms: TypeError for a wrong kind, ValueError for a wrong range."""

from __future__ import annotations

import numbers

from mycelia.dataset import checks
from mycelia.dataset.checks import FLOAT_MAX as LARGEST
from mycelia.dataset.checks import INT32_MAX as INT32
from mycelia.dataset.checks import between, integer
from mycelia.engine.base import errors

__all__ = ["INT32", "LARGEST", "NUMBER", "between", "integer"]  # besides what is defined here

NUMBER = (float, int)


def kind(op: str, name: str, value, kinds) -> None:
    """TypeError unless `value` is of `kinds`; a bool counts as an int only if bool is named."""
    checks.kind(op, name, value, *(kinds if isinstance(kinds, tuple) else (kinds,)))


def number(op: str, name: str, value, low=-LARGEST, high=LARGEST, above: bool = False, kinds=NUMBER):
    """A number of `kinds` in a range."""
    kind(op, name, value, kinds)
    between(op, name, value, low, high, above=above)


def size(op: str, value) -> tuple[int, int]:
    """Height and width of a crop; one int is a square."""
    kind(op, "size", value, (int, list, tuple))
    if isinstance(value, int):
        value = (value, value)
    if len(value) != 2:
        raise errors.type_error(op, f"size must be an int or (height, width), but got {value!r}")
    for i, v in enumerate(value):
        integer(op, f"size[{i}]", v, 1, LARGEST)
    return tuple(value)


def resize_size(op: str, value) -> tuple[int, ...]:
    """(height, width), or one int for the shorter side."""
    if isinstance(value, bool) or not isinstance(value, (int, list, tuple)):
        raise errors.type_error(op, f"size must be an int or (height, width), but got {value!r}")
    if isinstance(value, int):
        integer(op, "size", value, 1, LARGEST)
        return (value,)
    return size(op, value)


def probability(op: str, value, name: str = "prob") -> None:
    """A number in [0, 1]."""
    number(op, name, value, 0.0, 1.0)


def colour(op: str, value) -> tuple[int, int, int]:
    """A fill value in 0..255: an int or three of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,) * 3
    elif not (isinstance(value, tuple) and len(value) == 3):
        raise errors.type_error(op, f"fill_value should be a single integer or a 3-tuple. It is {value!r}")
    for i, v in enumerate(value):
        integer(op, f"fill_value[{i}]", v, 0, 255)
    return value


def padding(op: str, value) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) from one int, (left and right, top and bottom) or all four."""
    kind(op, "padding", value, (int, list, tuple))
    if isinstance(value, int):
        value = (value,) * 4
    if len(value) not in (2, 4):
        raise errors.value_error(op, f"padding must have 2 or 4 values, but got {value!r}")
    for i, v in enumerate(value):
        integer(op, f"padding[{i}]", v, 0)
    return tuple(value) * 2 if len(value) == 2 else tuple(value)


def pair(op: str, name: str, value, low=-LARGEST, high=LARGEST, positive: bool = False) -> tuple:
    """(smallest, largest), both numbers in a range."""
    kind(op, name, value, (list, tuple))
    if len(value) != 2:
        raise errors.type_error(op, f"{name} must have two values, but got {value!r}")
    for i, v in enumerate(value):
        kind(op, f"{name}[{i}]", v, NUMBER)
    if value[0] > value[1]:
        raise errors.value_error(op, f"{name} must be (smallest, largest), but got {value!r}")
    for i, v in enumerate(value):
        between(op, f"{name}[{i}]", v, low, high, above=positive)
    return tuple(value)


def factors(op: str, name: str, value, centre: float = 1, low=0, high=LARGEST) -> tuple:
    """A range of factors; one number is a range around `centre`."""
    kind(op, name, value, (numbers.Number, list, tuple))
    if isinstance(value, numbers.Number):
        if value < 0:
            raise errors.value_error(op, f"{name} must not be negative, but got {value!r}")
        value = (max(0, centre - value) if low == 0 else centre - value, centre + value)
    return pair(op, name, value, low, high)


def degrees(op: str, value) -> None:
    """A number that is not negative, or (smallest, largest)."""
    kind(op, "degrees", value, (int, float, list, tuple))
    if isinstance(value, NUMBER):
        between(op, "degrees", value, 0, LARGEST)
    else:
        pair(op, "degrees", value)


def statistics(op: str, mean, std) -> None:
    """mean and std of one length, values in 0..255; std is positive."""
    kind(op, "mean", mean, (list, tuple))
    kind(op, "std", std, (list, tuple))
    if len(mean) != len(std):
        raise errors.value_error(op, f"mean and std must have one length, but got {mean} and {std}")
    for i, v in enumerate(mean):
        number(op, f"mean[{i}]", v, 0, 255)
    for i, v in enumerate(std):
        number(op, f"std[{i}]", v, 0, 255, above=True)


def contrast(op: str, cutoff, ignore) -> list[int]:
    """Cutoff in [0, 50) and the list of ignored grey values."""
    kind(op, "cutoff", cutoff, NUMBER)
    between(op, "cutoff", cutoff, 0, 50, below=True)
    if ignore is None:
        return []
    kind(op, "ignore", ignore, (list, tuple, int))
    ignore = [ignore] if isinstance(ignore, int) else list(ignore)
    for v in ignore:
        integer(op, "ignore", v, 0, 255)
    return ignore


def points(op: str, name: str, value) -> None:
    """Four points of two ints."""
    kind(op, name, value, (list, tuple))
    for i, point in enumerate(value):
        kind(op, f"{name}[{i}]", point, (list, tuple))
    if len(value) != 4 or any(len(point) != 2 for point in value):
        raise errors.type_error(op, f"{name} must be four points (x, y), but got {value!r}")
    for i, point in enumerate(value):
        for v in point:
            integer(op, f"{name}[{i}]", v, -INT32 - 1)
