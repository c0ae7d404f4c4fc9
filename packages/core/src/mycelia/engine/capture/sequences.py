"""What captured code does with lists and tuples whose length, members or indices count as unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.capture.trace import active, is_traced
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.control_flow.variable import (
    VARIABLE_LENGTH,
    MutableInt,
    as_variable,
    count_in_graph,
    has_unknown_length,
    is_variable,
    made_variable,
    of_variable_length,
    require_alike,
    require_like,
    sort_of,
)
from mycelia.engine.tensors.tensor import Tensor

_KINDS = (list, tuple, *VARIABLE_LENGTH.values())


def get_item(owner: Any, key: Any) -> Any:
    """`owner[key]`. What a variable picks from a list or tuple is a variable, what it cuts out is of unknown
    length."""
    if type(owner) not in _KINDS or not is_variable(key):
        return owner[key]
    if isinstance(key, slice):
        return of_variable_length(owner[key])
    if not owner:
        raise errors.value_error("jit", "cannot get item by index from an empty sequence")
    return as_variable(owner[key])


def put_item(value: Any, owner: Any, key: Any) -> None:
    """``owner[key] = value``. A variable index makes all members of a list variables, a variable slice or a
    value of unknown length makes the length unknown; the members must be alike then.

    Errors: TypeError for a new value that is not like the members, ValueError or TypeError for different
    members.
    """
    if type(owner) is not list or active() is None:
        owner[key] = value
    elif isinstance(key, slice) and (is_variable(key) or has_unknown_length(value)):
        if has_unknown_length(value):
            require_alike(owner)
        for member in value[:1]:
            require_like(owner, member, "what is put in must be like the element within origin sequence")
        owner[key] = value
        made_variable(owner)
    elif not is_traced(key) and is_variable(key):
        _require_equal_members(owner)
        require_like(owner, value, "the new value must be like the element within constant length sequence")
        owner[key] = value
        owner[:] = map(as_variable, owner)
    else:
        owner[key] = value


def _require_equal_members(owner: list) -> None:
    for index, member in enumerate(owner):
        if sort_of(member) != sort_of(owner[0]):
            raise errors.type_error(
                "jit",
                "where a variable says which member is set, all members must be alike, but sequence[0] item "
                f"is not like sequence[{index}] item: {owner!r:.80}",
            )


def count(owner: Any, value: Any) -> Any:
    """`owner.count(value)`."""
    counted = count_in_graph(owner, value)
    return owner.count(value) if counted is None else counted


def length(owner: Any) -> int:
    """`len(owner)`; of a tensor whose first size may change it is that size."""
    if isinstance(owner, Tensor) and owner.ndim and type(owner.shape[0]) is SymInt:
        return owner.shape[0]
    found = len(owner)
    return MutableInt(found) if active() is not None and has_unknown_length(owner) else found


def converted(kind: type) -> Callable:
    """`list` or `tuple`, which keep an unknown length unknown."""

    def convert(*args: Any) -> Any:
        if active() is not None and len(args) == 1 and has_unknown_length(args[0]):
            return VARIABLE_LENGTH[kind](args[0])
        return kind(*args)

    return convert


def require_known_length(name: str, arguments: tuple) -> None:
    """Errors: RuntimeError for a sequence of unknown length."""
    if active() is not None and any(map(has_unknown_length, arguments)):
        raise errors.error(
            errors.MyceliaRuntimeError, f"For '{name}', the dynamic length input is unsupported in graph mode"
        )
