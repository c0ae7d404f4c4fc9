"""Eager calls that are watched: an interceptor of the thread, as captures have one.

The calls of one step are one run. A step ends when the code leaves a Cell in which a Parameter was updated by
an optimizer's op, or when `end_step` is called.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base.origins import Origin, calling_cells, origin
from mycelia.engine.observing.calls import flat, observed_call
from mycelia.engine.observing.eager_programs import EagerPrograms
from mycelia.engine.observing.observers import (
    VALUES,
    Observer,
    Run,
    Watched,
    iteration,
    next_iteration,
)
from mycelia.engine.observing.operator_names import Names
from mycelia.engine.observing.parameter_names import ParameterNames
from mycelia.engine.ops.type_names import type_name
from mycelia.engine.tensors.tensor import Parameter, Tensor

_GRADIENTS = ("grad", "gradient", "g")  # by these names optimizer steps take the gradient


class _Innermost(threading.local):
    calls: EagerCalls | None = None  # of the thread, whether or not something else intercepts before them


_innermost = _Innermost()


class EagerCalls:
    """The calls of one thread, told to `observers`."""

    def __init__(self) -> None:
        self.observers: tuple[Observer, ...] = ()
        self.programs = EagerPrograms(Watched("eager"))
        self.run: Run | None = None
        self.watching: list[Observer] = []
        self.names = Names()
        self.parameter_names = ParameterNames()
        self.optimizer: int | None = None  # id of the Cell that updates Parameters in this step
        self.is_inside = False
        self.interceptor = self.intercept
        self.mode = 0  # of the thread before
        self.blocks = 0  # of `watch_calls` that share it
        self.outer = _innermost.calls

    def intercept(self, op: Any, inputs: tuple, attrs: tuple) -> Any:
        if self.is_inside:  # within a composition
            return op._execute(inputs, attrs)
        cells = calling_cells(sys._getframe(1))
        if self.optimizer is not None and all(id(cell) != self.optimizer for cell in cells):
            self.end_step()
        run = self.run or self.begin()
        self.is_inside = True
        try:
            result = self.call(run, op, inputs, attrs) if self.watching else op._execute(inputs, attrs)
        except BaseException as error:
            self.end_step(error)
            raise
        finally:
            self.is_inside = False
        if op.definition.updates and any(name in _GRADIENTS for name in op.definition.param_names):
            self.optimizer = id(cells[0]) if cells else None
        return result

    def add(self, observer: Observer) -> None:
        """Tell one more, from here on."""
        self.observers = (*self.observers, observer)
        if self.run is not None and observer.wants(self.run) == VALUES:
            observer.begin(self.run)
            self.watching.append(observer)

    def remove(self, observer: Observer) -> None:
        """End that."""
        self.observers = tuple(o for o in self.observers if o is not observer)
        self.watching = [o for o in self.watching if o is not observer]

    def call(self, run: Run, op: Any, inputs: tuple, attrs: tuple) -> Any:
        tensors = flat(inputs)
        for tensor in tensors:
            if isinstance(tensor, Parameter):
                name = self.parameter_names.of(tensor)
                if name not in run.parameters:
                    run.parameters[name] = tensor, tensor._detach()
        rank = tensors[0].ndim if tensors and isinstance(tensors[0], Tensor) else 0
        place = _C.gradient_origin() or origin(3)
        canonical = op.definition.canonical_attrs(attrs)
        operator = self.names.operator(op, place, canonical, rank)
        operator.numbers = {
            i: v for i, v in enumerate(tensors) if v is not None and not isinstance(v, Tensor)
        }
        run.operators.append(operator)
        result = observed_call(self.watching, run, operator, op, inputs, lambda: op._execute(inputs, attrs))
        self.remember(op, place, rank, result)
        return result

    @staticmethod
    def remember(op: Any, place: Any, rank: int, result: Any) -> None:
        """The tape's node tells where its gradient comes from."""
        made = result if isinstance(result, tuple) else (result,)
        node = next((t._node for t in made if isinstance(t, Tensor) and t._node is not None), None)
        if node is not None and node.op is op and isinstance(place, Origin):
            node.origin = place.of_gradient(type_name(op, rank))

    def begin(self) -> Run:
        run = self.run = Run(self.programs.calls, iteration(), programs=self.programs)
        self.watching = [o for o in self.observers if o.wants(run) == VALUES]
        self.names = Names()
        for observer in self.watching:
            observer.begin(run)
        return run

    def end_step(self, error: BaseException | None = None) -> None:
        """The next call belongs to another step."""
        run, self.run, self.optimizer = self.run, None, None
        if run is None:
            return
        outer, self.is_inside = self.is_inside, True  # what observers compute is nobody's step
        try:
            for observer in self.watching:
                observer.end(run, error)
            next_iteration()
            for observer in self.watching if error is None else ():
                observer.settled(run)
        finally:
            self.is_inside = outer


@contextmanager
def watch_calls(*observers: Observer) -> Iterator[EagerCalls]:
    """In this block the observers are told of all eager calls of this thread, beside those of blocks around
    it; a step begins and ends with the block.
    """
    calls = _innermost.calls
    if calls is None or not dispatch.is_innermost(calls.interceptor):
        calls = _innermost.calls = EagerCalls()
        calls.mode = dispatch.push_interceptor(calls.interceptor, dispatch.OBSERVING)
    calls.end_step()
    calls.observers += observers
    calls.blocks += 1
    try:
        yield calls
    finally:
        calls.blocks -= 1
        if not calls.blocks:
            dispatch.pop_interceptor(calls.mode)
            _innermost.calls = calls.outer
        calls.end_step()
        for observer in observers:
            calls.remove(observer)
