"""What a constant of a primitive may be: each function takes the value and gives it back in its own form.

They are the annotations of keyword-only parameters, ``axis: integer = -1``. A value that does not fit raises
TypeError (wrong type) or ValueError (wrong value); the caller adds the primitive's name.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import dtypes
from mycelia.engine.ir.symint import SymInt


class Misfit(Exception):
    """Why a value does not fit: `kind` is the error to raise, the text says what was expected."""

    def __init__(self, kind: type[Exception], expected: str):
        super().__init__(expected)
        self.kind = kind


def anything(value: Any) -> Any:
    """Any value."""
    return value


def boolean(value: Any) -> bool:
    """True or False, no number."""
    if not isinstance(value, bool):
        raise Misfit(TypeError, "a bool")
    return value


def integer(value: Any) -> int:
    """An int, no bool."""
    if isinstance(value, bool) or not isinstance(value, (int, SymInt)) and not _is_index(value):
        raise Misfit(TypeError, "an int")
    return value if isinstance(value, (int, SymInt)) else int(value)


def _is_index(value: Any) -> bool:
    return isinstance(value, numbers.Integral)  # NumPy's integers


def real(value: Any) -> float:
    """An int or a float, no bool."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Misfit(TypeError, "a float")
    return float(value)


def number(value: Any) -> Any:
    """An int, a float or a bool, kept as it is."""
    if not isinstance(value, numbers.Number):
        raise Misfit(TypeError, "a number")
    return value


def text(value: Any) -> str:
    """A str."""
    if not isinstance(value, str):
        raise Misfit(TypeError, "a str")
    return value


def dtype(value: Any) -> Any:
    """A dtype."""
    try:
        return dtypes.as_dtype(value)
    except (TypeError, ValueError):
        raise Misfit(TypeError, "a dtype such as float32") from None


_TYPE_IDS = {
    "bool": 30, "int8": 32, "int16": 33, "int32": 34, "int64": 35, "uint8": 37, "uint16": 38, "uint32": 39,
    "uint64": 40, "float16": 42, "float32": 43, "float64": 44, "bfloat16": 45, "complex64": 51,
    "complex128": 52,
}  # fmt: skip


def type_id(value: Any) -> int | None:
    """MindSpore's number of a dtype, as which some primitives print theirs."""
    return None if value is None else _TYPE_IDS[dtypes.as_dtype(value).name]


def integers(value: Any) -> tuple[int, ...]:
    """An int or a list or tuple of them, as a tuple."""
    if isinstance(value, (list, tuple)):
        try:
            return tuple(map(integer, value))
        except Misfit:
            raise Misfit(TypeError, "an int or a tuple of int") from None
    try:
        return (integer(value),)
    except Misfit:
        raise Misfit(TypeError, "an int or a tuple of int") from None


def integer_tuple(value: Any) -> tuple[int, ...]:
    """A list or tuple of int, as a tuple."""
    if not isinstance(value, (list, tuple)):
        raise Misfit(TypeError, "a tuple of int")
    return integers(value)


def optional(check: Callable) -> Callable:
    """None, or what `check` takes."""

    def checked(value: Any) -> Any:
        return None if value is None else check(value)

    return checked


def within(
    check: Callable, low: float | None = None, high: float | None = None, *, open: str = ""
) -> Callable:
    """What `check` takes, from `low` to `high`; `open`: ends that do not belong, as in "low high"."""

    def checked(value: Any) -> Any:
        value = check(value)
        for one in value if isinstance(value, tuple) else (value,):
            below = low is not None and (one <= low if "low" in open else one < low)
            above = high is not None and (one >= high if "high" in open else one > high)
            if below or above:
                left = "" if low is None else f" {'>' if 'low' in open else '>='} {low}"
                right = "" if high is None else f" {'<' if 'high' in open else '<='} {high}"
                raise Misfit(ValueError, f"a value{left}{' and' if left and right else ''}{right}")
        return value

    return checked


def choice(*names: Any, fold: bool = False, other: type[Exception] = TypeError) -> Callable:
    """One of the names; with `fold` in any case, given as it is written here. `other`: for no text at all."""

    def checked(value: Any) -> Any:
        if not isinstance(value, type(names[0])):
            raise Misfit(other, f"a {type(names[0]).__name__}")
        for one in names:
            if value == one or fold and value.lower() == one.lower():
                return one
        raise Misfit(ValueError, f"one of {list(names)}")

    return checked


positive = within(integer, 1)
natural = within(integer, 0)
