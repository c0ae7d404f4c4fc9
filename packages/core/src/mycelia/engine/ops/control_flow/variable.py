"""Numbers and sequences that are variables of a compiled function: what `mutable` makes.

A graph here has a fixed structure, so a sequence of variable length is compiled for the length that it has,
and a number that `mutable` makes inside of a graph for its value. What code of graphs can ask, whether a
value is a constant and whether a length is known, is answered as in MindSpore: what is made of such a
sequence is of variable length too, what is counted in it a variable, and its members have to be alike.
Outside of graphs these are ordinary numbers, lists and tuples.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.methods.properties import marks, noted

# ---- numbers -----------------------------------------------------------------------------------------------


class MutableInt(int):
    """An int that is a variable of a compiled function: a 0-d int64 tensor inside."""


class MutableFloat(float):
    """A float that is a variable of a compiled function: a 0-d float32 tensor inside."""


_VARIABLE = {int: MutableInt, float: MutableFloat}


def in_graph() -> bool:
    """Whether a graph is captured."""
    return bool(_C.mode() & dispatch.TRACING)


def plain(value: Any) -> Any:
    """A number as Python has it."""
    kind = type(value)
    return int(value) if kind is MutableInt else float(value) if kind is MutableFloat else value


def _made(value: Any) -> Any:
    """What is computed of variables: a variable, in a graph."""
    kind = _VARIABLE.get(type(value))
    return value if kind is None or not in_graph() else kind(value)


def _operator(how: Callable, swapped: bool) -> Callable:
    def method(self: Any, other: Any) -> Any:
        if how is operator.mul and type(other) in VARIABLE_LENGTH and in_graph():
            return VARIABLE_LENGTH[type(other)](other * int(self))
        if not isinstance(other, (int, float)):
            return NotImplemented
        pair = plain(self), plain(other)
        return _made(how(*(pair[::-1] if swapped else pair)))

    return method


def _unary(how: Callable) -> Callable:
    return lambda self: _made(how(plain(self)))


for _kind in (MutableInt, MutableFloat):
    for _name in "add sub mul floordiv mod pow and or xor lshift rshift truediv".split():
        _how = getattr(operator, f"__{_name}__")
        if hasattr(_kind, f"__{_name}__"):
            setattr(_kind, f"__{_name}__", _operator(_how, False))
            setattr(_kind, f"__r{_name}__", _operator(_how, True))
    for _name in "neg pos abs invert".split():
        if hasattr(_kind, f"__{_name}__"):
            setattr(_kind, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))


def as_variable(value: Any) -> Any:
    """A value as a variable of the graph that is captured: numbers, Tensors and what holds them."""
    kind = type(value)
    if kind in _VARIABLE:
        return _VARIABLE[kind](value)
    if kind is tuple or kind is list:
        return kind(map(as_variable, value))
    if kind is dict:
        return {k: as_variable(v) for k, v in value.items()}
    if kind is _C.Tensor and value.traced is None and value._node is None:
        value = value._detach()
        marks(value)["variable"] = True
    return value


def is_variable(value: Any) -> bool:
    """Whether a graph does not know this value: a Tensor of the graph, or what `mutable` made."""
    if isinstance(value, _C.Tensor):
        return value.traced is not None or bool(noted(value, "variable"))
    if isinstance(value, slice):
        return any(map(is_variable, (value.start, value.stop, value.step)))
    return isinstance(value, (MutableInt, MutableFloat))


# ---- likeness ----------------------------------------------------------------------------------------------


def sort_of(value: Any) -> Any:
    """What must be equal in all members of a sequence of variable length."""
    if isinstance(value, _C.Tensor):
        number = getattr(value.traced, "is_number", False)
        if number:
            return "bool" if value.dtype.is_bool else "int" if value.dtype.is_integer else "float"
        return "Tensor", value.dtype
    if has_unknown_length(value):
        return type(value).__name__, *map(sort_of, value[:1])
    if isinstance(value, (tuple, list)):
        return "tuple" if isinstance(value, tuple) else "list", *map(sort_of, value)
    if isinstance(value, dict):
        return "dict", *((k, sort_of(v)) for k, v in value.items())
    return type(plain(value)).__name__


def _told(sort: Any) -> str:
    if isinstance(sort, str):
        return sort
    if sort[0] == "Tensor":
        return f"Tensor[{sort[1]}]"
    return f"{sort[0]} of ({', '.join(map(_told, sort[1:]))})"


def require_alike(members: Iterable) -> None:
    """Errors: ValueError for members of different types, TypeError for Tensors of different dtypes."""
    first = None
    for index, member in enumerate(members):
        sort = sort_of(member)
        if first is None:
            first = sort
        # MindSpore lets the lengths of sequences in it differ
        if sort == first or (isinstance(sort, tuple) and sort[0] == first[0] != "Tensor"):
            continue
        kind = errors.MyceliaValueError
        if isinstance(sort, tuple) and sort[0] == first[0] == "Tensor":
            kind = errors.MyceliaTypeError
        raise errors.error(
            kind,
            "jit",
            "In graph mode, the element type of dynamic length array must be the same. "
            "The element type do not match, can not convert to dynamic length sequence. "
            f"Element 0 is {_told(first)}, element {index} is {_told(sort)}.",
        )


def require_like(members: Any, value: Any, what: str) -> None:
    """Errors: TypeError unless the value is like the members; `what` says how the two belong together."""
    if members and sort_of(members[0]) != sort_of(value):
        raise errors.error(
            errors.MyceliaTypeError,
            "jit",
            f"{what}, but these are {_told(sort_of(members[0]))} and {_told(sort_of(value))}",
        )


def count_in_graph(members: Iterable, value: Any) -> Any:
    """How many members equal the value, as a number of the graph; None if no tensor of the graph decides."""
    if not in_graph() or not any(getattr(v, "traced", None) is not None for v in (value, *members)):
        return None
    total: Any = 0
    for member in members:
        same = _equal(member, value)
        total = total + (same.astype(dtypes.int64) if isinstance(same, _C.Tensor) else int(same))
    traced = getattr(total, "traced", None)
    if traced is None:
        return _made(total)
    traced.is_number = True
    return total


def _equal(member: Any, value: Any) -> Any:
    if not isinstance(member, _C.Tensor) and not isinstance(value, _C.Tensor):
        return member == value
    shapes = [
        v.shape if isinstance(v, _C.Tensor) else () if isinstance(v, (int, float)) else None
        for v in (member, value)
    ]
    return shapes[0] == shapes[1] and (member == value).all()


# ---- sequences ---------------------------------------------------------------------------------------------

_BY_INDEX = (
    "when the queue is dynamic length, a new value must be like the element within dynamic length sequence"
)
_ADDED = "in a sum, the element of first input is not same with the element of second input"
_APPENDED = "the mutable list's elements and what is added to them must be alike"


class _VariableLength:
    """What lists and tuples of variable length have in common."""

    def __add__(self, other: Any):
        return self._joined(self, other)

    def __radd__(self, other: Any):
        return self._joined(other, self)

    def _joined(self, first: Any, second: Any) -> Any:
        base = _base_of(self)
        if not isinstance(first, base) or not isinstance(second, base):
            return NotImplemented
        if in_graph():
            for value in second[:1]:
                require_like(first, value, _ADDED)
        return self._like((*first, *second))

    def __mul__(self, count: int):
        return self._like(_base_of(self)(self) * int(count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any):
        found = super().__getitem__(index)  # type: ignore[misc]
        return self._like(found) if isinstance(index, slice) else found

    def count(self, value: Any) -> Any:
        counted = count_in_graph(self, value)
        return _made(super().count(value)) if counted is None else counted  # type: ignore[misc]

    def index(self, value: Any, *limits: int) -> int:
        return _made(super().index(value, *limits))  # type: ignore[misc]

    def _like(self, members: Any) -> Any:
        return (type(self) if in_graph() else _base_of(self))(members)


class VariableList(_VariableLength, list):
    """A list of variable length."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if not in_graph():
            super().__setitem__(index, value)
        elif isinstance(index, slice):
            require_alike((*self, *value))
            super().__setitem__(index, map(as_variable, value))
        else:
            require_like(self, value, _BY_INDEX)
            super().__setitem__(index, as_variable(value))

    def append(self, value: Any) -> None:
        super().append(self._added(value))

    def insert(self, index: Any, value: Any) -> None:
        super().insert(index, self._added(value))

    def extend(self, values: Iterable) -> None:
        super().extend(map(self._added, values))

    def _added(self, value: Any) -> Any:
        if not in_graph():
            return value
        require_like(self, value, _APPENDED)
        return as_variable(value)


class VariableTuple(_VariableLength, tuple):
    """A tuple of variable length."""


VARIABLE_LENGTH: dict[type, type] = {list: VariableList, tuple: VariableTuple}
_SEQUENCES = (VariableList, VariableTuple)
_became: list[list] = []  # lists that captured code made variable in place


def _base_of(sequence: _VariableLength) -> type:
    return list if isinstance(sequence, list) else tuple


def of_variable_length(members: Any, kind: type | None = None) -> Any:
    """A list or tuple as a sequence of variable length; in a graph its members are variables."""
    if kind is None:
        kind = VARIABLE_LENGTH[list if isinstance(members, list) else tuple]
    if not in_graph():
        return kind(members)
    require_alike(members)
    return kind(map(as_variable, members))


def has_unknown_length(value: Any) -> bool:
    """Whether the length counts as unknown."""
    return isinstance(value, _SEQUENCES) or any(value is known for known in _became)


def made_variable(members: list) -> None:
    """From now on the length of this list counts as unknown, until the capture ends."""
    members[:] = map(as_variable, members)
    _became.append(members)


def forget() -> None:
    """The end of a capture."""
    _became.clear()
