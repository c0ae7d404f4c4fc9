"""`Cell.set_inputs`: which sizes of the arguments change from call to call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor


def check_declaration(construct: Callable, inputs: tuple, named: dict) -> tuple:
    """The declared arguments in order; with names, None for those that are not declared.

    Errors: TypeError for too many, ValueError for a name that is none.
    """
    parameters = inspect.signature(construct).parameters
    names = list(parameters)
    for name in named:
        if name not in names:
            raise errors.value_error("set_inputs", f"the arguments are {names}, but got {name!r}")
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return inputs
    if len(inputs) > len(names):
        raise errors.type_error(
            "set_inputs", f"construct takes {len(names)} arguments, but {len(inputs)} were declared"
        )
    given = {**dict(zip(names, inputs)), **named}
    return tuple(given.get(name) for name in (names if named else names[: len(inputs)]))


def open_axes(declared: tuple, args: tuple, kwargs: dict) -> list[tuple[int, int]]:
    """(number of the tensor among the arguments, axis) of each size that was declared as None.

    Errors: TypeError for another dtype, ValueError for another rank or size than declared.
    """
    if kwargs or len(args) != len(declared):
        if len(args) + len(kwargs) != len(declared) and None not in declared:
            raise errors.value_error(
                "set_inputs", f"{len(declared)} arguments were declared, but {len(args) + len(kwargs)} came"
            )
        if kwargs or len(args) > len(declared):
            return []
    found: list[tuple[int, int]] = []
    position = 0
    for number, (type_, value) in enumerate(zip(declared, args), 1):
        position = _walk(type_, value, number, position, found)
    return found


def _walk(type_: Any, value: Any, number: int, position: int, found: list) -> int:
    """Adds the open axes of one argument; returns the position of the next tensor."""
    if isinstance(value, (tuple, list)):
        members = (
            type_ if isinstance(type_, (tuple, list)) and len(type_) == len(value) else [None] * len(value)
        )
        for inner, item in zip(members, value):
            position = _walk(inner, item, number, position, found)
        return position
    if type(value) is not Tensor:
        return position
    if isinstance(type_, Tensor):
        _check(type_, value, number)
        sizes = (-1,) * value.ndim if type_.shape == (-2,) else type_.shape  # -2: of any rank
        found += [(position, axis) for axis, n in enumerate(sizes) if n < 0]
    return position + 1


def _check(type_: Tensor, value: Tensor, number: int) -> None:
    if type_.dtype is not value.dtype:
        raise errors.type_error(
            "set_inputs", f"argument {number} must be {type_.dtype} as declared, but is {value.dtype}"
        )
    if type_.shape == (-2,):
        return
    if type_.ndim != value.ndim or any(m >= 0 and m != n for m, n in zip(type_.shape, value.shape)):
        raise errors.value_error(
            "set_inputs",
            f"the shape of argument {number} must be {_text(type_.shape)} as declared, "
            f"but is {list(value.shape)}",
        )


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join("None" if n < 0 else str(n) for n in shape) + "]"
