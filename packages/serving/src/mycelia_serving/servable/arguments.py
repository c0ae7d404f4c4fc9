"""Checks of arguments: a RuntimeError that names the parameter, what is wanted and what came."""

from __future__ import annotations

from typing import Any


def _kind(value: Any) -> str:
    return type(value).__name__


def check_str(name: str, value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str):
        raise RuntimeError(f"Parameter '{name}' should be str, but got {_kind(value)}")
    if not value:
        raise RuntimeError(f"Parameter '{name}' should not be empty")
    return value


def check_bytes(name: str, value: Any) -> bytes:
    """Bytes that are not empty."""
    if not isinstance(value, bytes):
        raise RuntimeError(f"Parameter '{name}' should be bytes, but got {_kind(value)}")
    if not value:
        raise RuntimeError(f"Parameter '{name}' should not be empty")
    return value


def check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RuntimeError(f"Parameter '{name}' should be bool, but got {_kind(value)}")
    return value


def check_int(name: str, value: Any, minimum: int | None = None, maximum: int | None = None) -> int:
    """A whole number, no bool, between the bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuntimeError(f"Parameter '{name}' should be int, but got {_kind(value)}")
    _check_range(name, value, minimum, maximum)
    return value


def check_number(
    name: str, value: Any, minimum: float | None = None, maximum: float | None = None
) -> int | float:
    """A number, whole or not, no bool, between the bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuntimeError(f"Parameter '{name}' should be int or float, but got {_kind(value)}")
    _check_range(name, value, minimum, maximum)
    return value


def _check_range(name: str, value: Any, minimum: Any, maximum: Any) -> None:
    below = minimum is not None and not value >= minimum  # so that NaN is refused, too
    above = maximum is not None and not value <= maximum
    if not below and not above:
        return
    if minimum is not None and maximum is not None:
        wanted = f"be in range [{minimum}, {maximum}]"
    else:
        wanted = f"be >= {minimum}" if below else f"be <= {maximum}"
    raise RuntimeError(f"Parameter '{name}' should {wanted}, but got {value}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few strings."""
    if check_str(name, value) not in choices:
        offered = ", ".join(repr(c) for c in choices)
        raise RuntimeError(f"Parameter '{name}' should be one of {offered}, but got '{value}'")
    return value


def _items(name: str, value: Any, kind: type) -> tuple:
    if not isinstance(value, tuple | list):
        word = kind.__name__
        raise RuntimeError(
            f"Parameter '{name}' should be {word} or tuple/list of {word}, but got {_kind(value)}"
        )
    seen: list = []
    for item in value:
        if item in seen and type(item) is kind:
            raise RuntimeError(f"Parameter '{name}' holds {item!r} more than once")
        seen.append(item)
    return tuple(value)


def check_strings(name: str, value: Any) -> tuple[str, ...]:
    """A string, or a tuple or list of different ones, none empty; at least one."""
    values = (value,) if isinstance(value, str) else _items(name, value, str)
    if not values:
        raise RuntimeError(f"Parameter '{name}' should not be empty")
    for item in values:
        check_str(name, item)
    return values


def check_ints(
    name: str, value: Any, minimum: int | None = None, maximum: int | None = None
) -> tuple[int, ...]:
    """A whole number, or a tuple or list of different ones, between the bounds."""
    values = (value,) if isinstance(value, int) and not isinstance(value, bool) else _items(name, value, int)
    for item in values:
        check_int(name, item, minimum, maximum)
    return values
