"""Where the calls in the last place of a captured model's graphs lead to (`structured.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.capture.jumps import RESULT
from mycelia.engine.capture.trace import active, is_traced
from mycelia.engine.capture.values import Undefined, equal_objects, flatten, load
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.run import Closure, Function


class Frame:
    """Where calls in the last place lead to: the result of a call that is under way."""

    header: Function | None = None
    outer: Frame | None = None
    names: tuple[str, ...] = (RESULT,)

    def __init__(self) -> None:
        self.state: list[Any] = [Undefined(RESULT)]

    def get(self) -> tuple:
        return tuple(self.state)

    def set(self, values: Sequence[Any]) -> None:
        self.state[:] = values

    def end(self, value: Any) -> None:
        self.state[0] = value

    def headers(self) -> frozenset[Function]:
        """The loops that are under way here."""
        found, frame = [], self
        while frame is not None and frame.header is not None:
            found.append(frame.header)
            frame = frame.outer
        return frozenset(found)


class Loop(Frame):
    """The same inside a loop: its header is called again, or a graph from which no call leads back.

    State: whether the loop goes on, the number of the exit that was taken, what changes of that with which
    the header is called (`leaves`), and what each exit is called with.
    """

    def __init__(self, outer: Frame, closure: Closure, arguments: tuple, exits: Sequence[Function]) -> None:
        self.outer, self.header, self.exits = outer, closure.function, list(exits)
        self.leaves: list[Any] = []
        self.rebuild = flatten((arguments, dict(closure.captured)), self.leaves)
        self.moving: list[int] = []

    def start(self, moving: Sequence[int]) -> None:
        self.moving = list(moving)
        self.names = (
            "going on",
            "the exit",
            *(f"value {i}" for i in self.moving),
            *(RESULT for _ in self.exits),
        )
        self.state = [_traced(Tensor(True)) if self.exits else True, 0]
        self.state += [_traced(self.leaves[i]) for i in self.moving]
        self.state += [Undefined(RESULT) for _ in self.exits]

    def entered(self) -> tuple[Closure, tuple]:
        """The header and its arguments in this round."""
        leaves = list(self.leaves)
        for place, i in enumerate(self.moving, 2):
            leaves[i] = load(self.state[place])
        arguments, captured = self.rebuild(leaves)
        return Closure(self.header, captured), tuple(arguments)

    def again(self, closure: Closure, arguments: tuple) -> None:
        leaves: list[Any] = []
        flatten((arguments, dict(closure.captured)), leaves)
        if len(leaves) != len(self.leaves):
            raise NotImplementedError(
                f"a loop of graph {self.header.name} that changes the structure of a value"
            )
        moved = [i for i, (a, b) in enumerate(zip(self.leaves, leaves)) if not _same(a, b)]
        if not set(moved) <= set(self.moving):
            raise Moves(moved)
        for place, i in enumerate(self.moving, 2):
            self.state[place] = leaves[i]

    def leave(self, closure: Closure, arguments: tuple) -> None:
        if closure.function not in self.exits:
            raise NotImplementedError(
                f"a loop of graph {self.header.name} that goes on in graph {closure.function.name}, which it "
                "gets as a value"
            )
        number = self.exits.index(closure.function)
        self.state[0], self.state[1] = False, number
        self.state[len(self.state) - len(self.exits) + number] = (arguments, dict(closure.captured))

    def left(self, number: int) -> tuple[Closure, tuple]:
        arguments, captured = load(self.state[len(self.state) - len(self.exits) + number])
        return Closure(self.exits[number], captured), tuple(arguments)

    def end(self, value: Any) -> None:
        raise NotImplementedError(
            f"a loop of graph {self.header.name} that ends in an operator as a function"
        )


class Moves(Exception):
    """Values that a loop was thought to leave alone: `args[0]`, their positions."""


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.traced is not None and a.traced is b.traced)
    return a is b or equal_objects(a, b)


def _traced(value: Any) -> Any:
    """A constant tensor as one that is known only when the graph runs: a loop over it is not unrolled."""
    if not isinstance(value, Tensor) or is_traced(value):
        return value
    trace = active()
    return trace.tensor(trace.constant(value))
