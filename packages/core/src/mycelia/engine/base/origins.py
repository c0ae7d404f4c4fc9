"""Where an operator comes from: the Cells whose code runs, and the lines of the user's that lead there.

The scope is spelled as MindSpore's full names are:
``Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d``,
with ``Gradients/`` in front and ``/Grad_Conv2D`` behind for what computes a gradient. It is read from the
frames of the interpreter, so that calls of Cells need not keep account of it.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NamedTuple

from mycelia.engine.base import settings
from mycelia.engine.base.errors import _OWN, Place

ROOT = "Default"
GRADIENTS = "Gradients"
_LONGEST_STACK = 32  # lines; a recursion deeper than that says nothing new


class Numbered(NamedTuple):
    """Which operator of a captured graph: the `number`-th of type `kind` in its scope, at `place` among all;
    from `free` on no operator of the graph has a number.
    """

    kind: str
    number: int
    place: int
    free: int


class Origin(Place):
    """A line of the user's code with the lines that called it and the scope of the Cells around it.

    `stack`: (file, line, function), the innermost first, this one included. `dumped`: what `set_dump` said of
    the innermost Cell that it was called for, None if of none; `dumped_kinds`: the primitives of the Cell
    that it was called for, by name. `numbered`: of what passes make of an operator of a captured graph, that
    operator.
    """

    __slots__ = ("dumped", "dumped_kinds", "numbered", "scope", "stack")

    def __init__(
        self,
        stack: tuple[tuple[str, int, str], ...],
        scope: str = ROOT,
        dumped: bool | None = None,
        called: str = "",
        dumped_kinds: tuple[str, ...] = (),
        numbered: Numbered | None = None,
    ) -> None:
        super().__init__(*stack[0], called)
        self.stack, self.scope, self.dumped, self.dumped_kinds = stack, scope, dumped, dumped_kinds
        self.numbered = numbered

    def __reduce__(self) -> tuple:
        return Origin, (
            self.stack, self.scope, self.dumped, self.called, self.dumped_kinds, self.numbered,
        )  # fmt: skip

    def of_operator(self, numbered: Numbered) -> Origin:
        """The same of one operator of a captured graph."""
        return Origin(self.stack, self.scope, self.dumped, self.called, self.dumped_kinds, numbered)

    def number_of(self, kind: str) -> int | None:
        """The number of an operator of type `kind` from here: that of the captured one, or, where a pass put
        one of another type in its place, one that no captured operator has; None if nobody numbered it.
        """
        if self.numbered is None:
            return None
        _, number, place, free = self.numbered
        return number if kind == self.numbered.kind else free + place

    def of_gradient(self, kind: str) -> Origin:
        """The origin of what computes the gradient of an operator of type `kind` that comes from here."""
        scope = self.scope if self.scope.startswith(GRADIENTS) else f"{GRADIENTS}/{self.scope}"
        return Origin(self.stack, f"{scope}/Grad_{kind}", self.dumped, self.called)


def origin(depth: int = 1) -> Origin | None:
    """The origin of a call, from `depth` frames up; None when no line of it is the user's."""
    try:
        frame: FrameType | None = sys._getframe(depth)
    except ValueError:
        return None
    stack: list[tuple[str, int, str]] = []
    cells: list[Any] = []  # innermost first
    inside = True  # the script has not begun yet
    while frame is not None:
        code = frame.f_code
        cell = _cell_of(frame)
        if cell is not None and not (cells and cells[-1] is cell):
            cells.append(cell)
        if inside and len(stack) < _LONGEST_STACK and _is_the_users(frame):
            stack.append((code.co_filename, frame.f_lineno, code.co_qualname))
            inside = code.co_name != "<module>" or frame.f_globals.get("__name__") != "__main__"
        frame = frame.f_back
    if not stack:
        return None
    return Origin(tuple(stack), scope_of(cells[::-1]), _dumped(cells), "", _dumped_kinds(cells))


def calling_cells(frame: FrameType | None) -> list[Any]:
    """The Cells whose `construct` runs, the innermost first, from `frame` up."""
    return [cell for cell, _ in cell_calls(frame)]


def cell_calls(frame: FrameType | None) -> list[tuple[Any, FrameType]]:
    """The Cells whose `construct` runs, the innermost first, from `frame` up, each with the frame in which
    its call begins.
    """
    found: list[tuple[Any, FrameType]] = []
    while frame is not None:
        cell = _cell_of(frame)
        if cell is not None and found and found[-1][0] is cell:
            found[-1] = cell, frame  # a part of the same call
        elif cell is not None:
            found.append((cell, frame))
        frame = frame.f_back
    return found


def _cell_of(frame: FrameType) -> Any:
    """The Cell whose `construct` a frame runs, or None."""
    code = frame.f_code
    if code.co_name != "construct":
        return None
    first = code.co_varnames[0] if code.co_argcount else ""
    cell = frame.f_locals.get(first)
    return cell if hasattr(cell, "_cells") and first == _self_name(type(cell)) else None


def _self_name(kind: type) -> str:
    """What `construct` of a class calls its object; functions that a capture made of parts of it are
    named alike.
    """
    function = kind.construct
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else ""


def _is_the_users(frame: FrameType) -> bool:
    top = frame.f_globals.get("__name__", "").partition(".")[0]
    own = top == _OWN or top.startswith(_OWN + "_") or top == "contextlib"  # which calls ours
    return not own and not frame.f_code.co_filename.startswith("<frozen")


def scope_of(cells: list[Any]) -> str:
    """The scope below the first of `cells`, each of which calls the next.

    A Cell in a container (`CellList`, say) that its caller holds has the container in its path; one that its
    caller does not hold at all, its class alone.
    """
    parts = [ROOT]
    for above, below in zip(cells, cells[1:]):
        parts += _path(above, below, set()) or [type(below).__name__]
    return "/".join(parts)


def _path(above: Any, below: Any, seen: set[int]) -> list[str]:
    """The names with classes that lead from one Cell to another, the direct way first."""
    seen.add(id(above))
    held = [(name, cell) for name, cell in above._cells.items() if cell is not None]
    for name, cell in held:
        if cell is below:
            return [_named(name, cell)]
    for name, cell in held:
        found = _path(cell, below, seen) if id(cell) not in seen else []
        if found:
            return [_named(name, cell), *found]
    return []


def _named(name: str, cell: Any) -> str:
    return f"{name}-{type(cell).__name__}" if settings.get("reserve_class_name_in_scope") else name


def _dumped_kinds(cells: list[Any]) -> tuple[str, ...]:
    """The names of the primitives of the innermost Cell that are to be dumped: their calls leave no frame."""
    held = vars(cells[0]).values() if cells else ()
    attributes = ((p, getattr(p, "attrs", None)) for p in held)
    return tuple(p.name for p, a in attributes if isinstance(a, dict) and a.get("dump") == "true")


def _dumped(cells: list[Any]) -> bool | None:
    """What the flag `dump` of the innermost Cell that has one says."""
    for cell in cells:
        wanted = getattr(cell, "_flags", {}).get("dump")
        if wanted is not None:
            return wanted
    return None
