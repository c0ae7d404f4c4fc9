"""What captured code leaves in variables and attributes that outlive the capture.

A graph would not do it again in each run. So the capture puts back what was there, and the function runs as
Python, unless it only repeats what was there already.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.capture.trace import Trace, UnknownValue, is_traced
from mycelia.engine.capture.values import Undefined, equal_objects, get_attribute, holds_traced
from mycelia.engine.tensors.tensor import Tensor


class OutsideChange(UnknownValue):
    """Each run has to change something outside of the function."""


class Note:
    """What a place outside held before: `read` gives what it holds now, or None when the place is gone."""

    __slots__ = ("before", "read", "what", "where", "write")

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], what: str, where: Any) -> None:
        self.read, self.write, self.what, self.where = read, write, what, where
        self.before = read()


def note_attribute(trace: Trace, owner: Any, name: str) -> None:
    """`owner.name` is about to be set."""
    key = id(owner), name
    known = trace.root.outside.get(key)
    if known is not None and known.read() is not _GONE:
        return
    reference = weakref.ref(owner) if type(owner).__weakrefoffset__ else _held(owner)

    def read() -> Any:
        alive = reference()
        return _GONE if alive is None else get_attribute(alive, name)

    def write(value: Any) -> None:
        alive = reference()
        if type(value) is Undefined:
            delattr(alive, name)
        else:
            setattr(alive, name, value)

    what = f"the attribute '{name}' of a {type(owner).__name__}"
    trace.root.outside[key] = Note(read, write, what, errors.user_place(2))


def note_variables(trace: Trace, function: types.FunctionType) -> None:
    """`function` is about to be called: the outer variables that it assigns."""
    for kind, name, line in _assigned(function.__code__):
        place = errors.Place(function.__code__.co_filename, line, function.__qualname__)
        if kind == "global":
            holder: Any = function.__globals__
            read, write = _of_dict(holder, name)
        else:
            holder = function.__closure__[function.__code__.co_freevars.index(name)]
            read, write = _of_cell(holder)
        note = Note(read, write, f"the {kind} variable '{name}'", place)
        trace.root.outside.setdefault((id(holder), name), note)


def put_back(trace: Trace) -> Note | None:
    """Undoes what the captured code changed outside; returns one such change."""
    found = None
    for note in trace.outside.values():
        now = note.read()
        if now is not _GONE and not _same(note.before, now):
            found = found or note
            note.write(note.before)
    trace.outside.clear()
    return found


def require_unchanged(trace: Trace) -> None:
    """Raises OutsideChange if each run of the captured code has to change something outside."""
    changed = put_back(trace)
    if changed is not None:
        raise errors.error(
            OutsideChange,
            "jit",
            f"{changed.what} gets another value in each run, at {changed.where}, which a graph cannot do",
            hint="return the value, or make it a Parameter",
        )


def _held(owner: Any) -> Callable[[], Any]:
    """Like a weak reference, for objects that cannot have one."""

    def alive() -> Any:
        return owner if sys.getrefcount(owner) > 2 else None  # by this closure and by the call

    return alive


_GONE = object()
_MISSING = Undefined("")


def _same(before: Any, now: Any) -> bool:
    if now is before or type(now) is type(before) is Undefined:
        return True
    if holds_traced(now) or type(now) is not type(before):
        return False
    if isinstance(now, Tensor):
        known = not is_traced(now) and not is_traced(before)
        return (
            known
            and (now.dtype, now.shape) == (before.dtype, before.shape)
            and bool(np.array_equal(now._bits(), before._bits()))
        )
    if isinstance(now, np.ndarray):
        return now.dtype == before.dtype and np.array_equal(now, before)
    return equal_objects(before, now)


def _of_dict(names: dict, name: str) -> tuple[Callable, Callable]:
    def write(value: Any) -> None:
        if value is _MISSING:
            names.pop(name, None)
        else:
            names[name] = value

    return lambda: names.get(name, _MISSING), write


def _of_cell(cell: types.CellType) -> tuple[Callable, Callable]:
    def read() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return _MISSING

    def write(value: Any) -> None:
        if value is _MISSING:
            del cell.cell_contents
        else:
            cell.cell_contents = value

    return read, write


@functools.lru_cache(maxsize=4096)
def _assigned(code: types.CodeType) -> tuple[tuple[str, str, int], ...]:
    """("global" | "nonlocal", name, line) of each outer variable that the code, or one in it, assigns."""
    found: dict[tuple[str, str], int] = {}
    _find_assigned(code, frozenset(code.co_freevars), found)
    return tuple((kind, name, line) for (kind, name), line in found.items())


def _find_assigned(code: types.CodeType, outer: frozenset[str], found: dict[tuple[str, str], int]) -> None:
    for instruction in dis.get_instructions(code):
        line = (instruction.positions.lineno if instruction.positions else None) or code.co_firstlineno
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            found.setdefault(("global", instruction.argval), line)
        elif instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in outer:
            found.setdefault(("nonlocal", instruction.argval), line)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _find_assigned(constant, outer & frozenset(constant.co_freevars), found)
