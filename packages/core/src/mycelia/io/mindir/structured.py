"""Capturing a loaded model whose control flow depends on data: its graphs, which call one another, as
branches and loops.

In a MindIR file a loop is a graph, the header, that is called in the last place of graphs that the header
itself calls. Such a header is captured as a loop: what it is called with is carried from round to round, and
calls that do not lead back to it end the loop. A Switch in the last place is a branch. Recursion of another
kind cannot be captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mycelia.engine.capture.conditions import and_, not_
from mycelia.engine.capture.control import if_, if_else, while_
from mycelia.engine.capture.rewrite_expressions import Site
from mycelia.engine.capture.trace import Trace, active, is_traced, traces
from mycelia.engine.capture.values import load
from mycelia.engine.ops.control_flow.control import require
from mycelia.engine.ops.late import ops
from mycelia.io.mindir.frames import Frame, Loop, Moves
from mycelia.io.mindir.run import (
    BadStep,
    Closure,
    Function,
    Step,
    guarded,
    partial,
    switch,
    switch_layer,
    value_of,
)


def captured(main: Function, arguments: tuple) -> Any:
    """What the graph `main` returns, with branches and loops in the trace that is active.

    Errors: NotImplementedError for recursion that is no loop.
    """
    return _Capture(main).call(Closure(main, {}), arguments)


class Choice:
    """One of two function values by a condition that is known only when the graph runs."""

    def __init__(self, condition: Any, if_true: Any, if_false: Any) -> None:
        self.condition, self.if_true, self.if_false = condition, if_true, if_false

    def bound(self, arguments: tuple) -> Choice:
        return Choice(self.condition, _partial(self.if_true, *arguments), _partial(self.if_false, *arguments))


class _Capture:
    """One capture of a model, whose graphs are those that `main` leads to."""

    def __init__(self, main: Function) -> None:
        self.steps: dict[str, Step] = {}  # by what they make, which is unique in a file
        self.functions: list[Function] = []
        work = [main]
        while work:
            function = work.pop()
            if function in self.functions:
                continue
            self.functions.append(function)
            self.steps.update({s.output: s for s in function.steps if s.output is not None})
            work += _mentioned(function)
        self.next = {
            f: self._targets(f) for f in self.functions
        }  # graphs that may be called in the last place
        self.pure = not any(s.effect and callable(s.target) for f in self.functions for s in f.steps)
        self.running: list[tuple[Function, int]] = []

    # ---- which graphs lead where

    def _targets(self, function: Function) -> set[Function]:
        last = function.steps[-1] if function.steps else None
        if last is None or last.output is not None or callable(last.target):
            return set()
        return set(self._functions(last.target))

    def _functions(self, argument: Any) -> Iterator[Function]:
        """What an argument that is called may be."""
        if type(argument) is Function:
            yield argument
        step = self.steps.get(argument) if type(argument) is str else None
        if step is None:
            return
        if step.target is partial:
            yield from self._functions(step.arguments[0])
        elif step.target is switch:
            for branch in step.arguments[1:]:
                yield from self._functions(branch)
        else:  # SwitchLayer, and the tuple that it picks from
            for argument in step.arguments:
                yield from self._functions(argument)

    def _reached(self, start: Iterable[Function], blocked: Iterable[Function]) -> set[Function]:
        found, work = set(), list(start)
        while work:
            function = work.pop()
            if function not in found:
                found.add(function)
                work += [] if function in blocked else self.next.get(function, ())
        return found

    def _leads(self, function: Function, header: Function, blocked: frozenset[Function]) -> bool:
        """Whether calls in the last place go from one to the other, without those in `blocked`."""
        return function not in blocked and header in self._reached(self.next.get(function, ()), blocked)

    def _exits(
        self, start: Iterable[Function], header: Function, blocked: frozenset[Function]
    ) -> list[Function]:
        """The first graphs behind these from which no call leads to the header."""
        found, seen, work = [], set(), list(start)
        while work:
            function = work.pop()
            if function is header or function in seen:
                continue
            seen.add(function)
            if self._leads(function, header, blocked):
                work += self.next[function]
            else:
                found.append(function)
        return sorted(found, key=self.functions.index)

    # ---- running

    def call(self, called: Any, arguments: tuple) -> Any:
        """The result of a call that is not in the last place."""
        frame = Frame()
        self.walk(called, arguments, frame)
        return load(frame.state[0])

    def walk(self, called: Any, arguments: tuple, frame: Frame) -> None:
        """Follow calls in the last place to where the frame ends."""
        while True:
            if isinstance(called, Choice):
                self._either(
                    called.condition,
                    lambda c=called, a=arguments: self.walk(c.if_true, a, frame),
                    lambda c=called, a=arguments: self.walk(c.if_false, a, frame),
                    frame,
                )
                return
            if not isinstance(called, Closure):
                frame.end(guarded(called, arguments, {}, "a call"))
                return
            function = called.function
            arguments = called.bound + arguments
            called = Closure(function, called.captured)
            if len(arguments) != len(function.inputs):
                raise BadStep(
                    f"graph {function.name} takes {len(function.inputs)} values, but got {len(arguments)}"
                )
            if frame.header is not None:
                if function is frame.header:
                    frame.again(called, arguments)
                    return
                if not self._leads(function, frame.header, frame.outer.headers()):
                    frame.leave(called, arguments)
                    return
            if self._leads(function, function, frame.headers()):
                self._loop(called, arguments, frame)
                return
            env, tail = self._steps(called, arguments)
            if tail is None:
                frame.end(_result(function, env))
                return
            called, arguments = tail

    def _steps(self, closure: Closure, arguments: tuple) -> tuple[dict[str, Any], tuple | None]:
        """The values of a graph's steps, and what it calls in the last place, with what, if it does."""
        function = closure.function
        if any(f is function and depth < len(traces) for f, depth in self.running):
            raise NotImplementedError(
                f"graph {function.name} calls itself, and how deep shows only when the model runs; of such "
                "calls those in the last place are captured, as loops"
            )
        self.running.append((function, len(traces)))
        try:
            env = {**closure.captured, **dict(zip(function.inputs, arguments))}
            for step in function.steps:
                values = tuple([value_of(a, env) for a in step.arguments])
                if callable(step.target):
                    keywords = {name: value_of(a, env) for name, a in step.keywords.items()}
                    target = {partial: _partial, switch: self._switch, switch_layer: self._switch_layer}.get(
                        step.target, step.target
                    )
                    env[step.output] = guarded(target, values, keywords, step.output, step.locate)
                    continue
                called = value_of(step.target, env)
                if not callable(called) and not isinstance(called, (Closure, Choice)):
                    raise BadStep(
                        f"what a node of graph {function.name} calls is no function: {called!r:.80}"
                    )
                if step.output is None:
                    return env, (called, values)
                env[step.output] = self.call(called, values)
            return env, None
        finally:
            self.running.pop()

    def _either(self, condition: Any, then: Callable, otherwise: Callable, frame: Frame) -> None:
        if_(condition, then, otherwise, frame.get, frame.set, _site("if", frame.names))

    def _switch(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if not is_traced(condition):
            return if_true if bool(condition) else if_false
        if all(callable(v) or isinstance(v, (Closure, Choice)) for v in (if_true, if_false)):
            return Choice(condition, if_true, if_false)
        return if_else(condition, lambda: if_true, lambda: if_false, _site("if"))

    def _switch_layer(self, index: Any, branches: Sequence) -> Any:
        """Indices count from the back where they are negative; no other branch is taken for a wrong one."""
        if not is_traced(index):
            return branches[int(index)]
        index = index.reshape(())
        index = ops.where(index < 0, index + len(branches), index)
        inside = ops.logical_and(index >= 0, index < len(branches))
        error = IndexError(f"SwitchLayer has {len(branches)} branches, and the index names none of them")
        index = ops.where(require(inside, error), index, 0)
        chosen = branches[-1]
        for number in range(len(branches) - 2, -1, -1):
            chosen = self._switch(index == number, branches[number], chosen)
        return chosen

    # ---- loops

    def _loop(self, closure: Closure, arguments: tuple, frame: Frame) -> None:
        header, blocked = closure.function, frame.headers()
        tests = self.pure and self._tests(closure, arguments, blocked)
        start = self.next[header]
        if tests:
            start = [f for f in start if f is header or self._leads(f, header, blocked)]
        inner = Loop(frame, closure, arguments, self._exits(start, header, blocked))
        moving: set[int] = set()
        while True:
            try:
                inner.start(sorted(moving))
                self._probe(inner, tests)
                self._rounds(inner, tests)
                break
            except Moves as more:
                moving.update(more.args[0])
        self._behind(inner, frame, tests)

    def _tests(self, closure: Closure, arguments: tuple, blocked: frozenset[Function]) -> bool:
        """Whether the header goes on in one of two graphs, of which one alone leads back to it."""
        _, tail = self._steps(closure, arguments)
        return tail is not None and self._split(tail[0], closure.function, blocked) is not None

    def _split(
        self, called: Any, header: Function, blocked: frozenset[Function]
    ) -> tuple[Any, Any, Any] | None:
        """Whether a call leads back to the header, what does then, and what goes on otherwise."""

        def leads(target: Any) -> bool | None:
            if not isinstance(target, Closure):
                return None if isinstance(target, Choice) else False
            return target.function is header or self._leads(target.function, header, blocked)

        if not isinstance(called, Choice):
            return leads(called), called, called
        found = leads(called.if_true), leads(called.if_false)
        if found == (True, False):
            return called.condition, called.if_true, called.if_false
        if found == (False, True):
            return not_(called.condition), called.if_false, called.if_true
        return None

    def _header(self, inner: Loop) -> tuple[Any, Any, Any, tuple]:
        """`_split` of what the header calls in this round, and the arguments of that call."""
        _, (called, values) = self._steps(*inner.entered())
        found = self._split(called, inner.header, inner.outer.headers())
        if found is None:
            raise NotImplementedError(
                f"a loop of graph {inner.header.name} whose test changes from round to round"
            )
        return (*found, values)

    def _probe(self, inner: Loop, tests: bool) -> None:
        """One round whose results are dropped. Errors: Moves with the values that it changes."""
        before = inner.get()
        region = Trace("probe", active())
        with region:
            try:
                if not tests or self._header(inner)[0] is not False:
                    self._round(inner, tests)
            finally:
                region.changed()
                inner.set(before)

    def _round(self, inner: Loop, tests: bool) -> None:
        if tests:
            _, stay, _, values = self._header(inner)
            self.walk(stay, values, inner)
            return
        _, tail = self._steps(*inner.entered())
        self.walk(*tail, inner)

    def _rounds(self, inner: Loop, tests: bool) -> None:
        def test() -> Any:
            if not tests:
                return inner.state[0]
            going = self._header(inner)[0]
            return and_(lambda: inner.state[0], lambda: going) if inner.exits else going

        site = _site("while", inner.names)
        while_(test, lambda: self._round(inner, tests), inner.get, inner.set, site)

    def _behind(self, inner: Loop, frame: Frame, tests: bool) -> None:
        """What follows a loop: where its test ended it, or at the exit that was taken."""

        def ended() -> None:
            _, _, leave, values = self._header(inner)
            self.walk(leave, values, frame)

        def left(number: int) -> None:
            if number + 1 < len(inner.exits):
                which = load(inner.state[1]) == number
                self._either(
                    which, lambda: self.walk(*inner.left(number), frame), lambda: left(number + 1), frame
                )
            else:
                self.walk(*inner.left(number), frame)

        if not inner.exits:
            ended()
        elif tests:
            self._either(inner.state[0], ended, lambda: left(0), frame)
        else:
            left(0)


def _partial(function: Any, *arguments: Any) -> Any:
    return function.bound(arguments) if isinstance(function, Choice) else partial(function, *arguments)


def _result(function: Function, env: dict[str, Any]) -> Any:
    if isinstance(function.result, list):
        return tuple(value_of(a, env) for a in function.result)
    return value_of(function.result, env)


def _mentioned(function: Function) -> list[Function]:
    results = function.result if isinstance(function.result, list) else [function.result]
    return [a for a in (*(a for s in function.steps for a in s.used()), *results) if type(a) is Function]


def _site(kind: str, names: tuple[str, ...] = ()) -> Site:
    return Site(kind, "the MindIR file", 0, "mindir", names, ({}, {}))
