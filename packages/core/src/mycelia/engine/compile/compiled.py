"""A function compiled for one signature: its graph, the tensors from outside that it reads and changes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.compile import clock, differentiate, executable, failures
from mycelia.engine.compile.differentiate import Differentiable
from mycelia.engine.compile.memory import MemoryReport
from mycelia.engine.compile.passes import NOTHING, with_asked, without_folding
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.observing import RESULTS, VALUES, graphs, observers
from mycelia.engine.tensors.tensor import Tensor


class Compiled:
    """One function for one signature."""

    __slots__ = (
        "graph",
        "inputs",
        "targets",
        "count",
        "build",
        "program",
        "frozen",
        "updates",
        "asked",
        "is_arranged",
        "__weakref__",
    )

    def __init__(
        self, graph: Graph, inputs: list[Tensor], targets: list[Tensor], count: int, build: Callable
    ) -> None:
        self.graph = graph
        self.inputs = inputs  # tensors from outside that the graph reads, after its arguments
        self.targets = targets  # tensors from outside that take the last results
        self.count = count  # results that the function returns
        self.build = build
        self.program: _C.Program | None = None
        self.frozen: tuple[int, ...] = ()  # positions of parameters of the graph that seldom change
        self.updates: tuple[tuple[int, int], ...] = ()  # (output, parameter that becomes it)
        failures.compiled.add(self)
        self.asked = NOTHING  # its own choice of algorithms and passes, see `passes.with_asked`
        self.is_arranged = False

    def __call__(self, tensors: list[Tensor]) -> Any:
        if observers and not graphs.is_passed():
            return self.run_watched(tensors)
        return self.run(tensors)

    def run(self, tensors: list[Tensor]) -> Any:
        """What the function returns, by its program."""
        try:
            program = self.program
            if program is None:
                program = self.prepare()
            if _C.tape_level():
                with with_asked(self.asked):
                    function = Differentiable(self.graph, self.frozen, self.updates, self.tensors())
                    results = differentiate.run(function, tensors + self.inputs)
                if results is not None:
                    return self.build(results)
            return self.build(program.run(tensors, self.inputs))
        except Exception as error:
            if self.gives_up_folding(error):
                return self.run(tensors)
            failures.failed(error, self, tensors)
            raise

    def run_watched(self, tensors: list[Tensor]) -> Any:
        """What the function returns, operator by operator if an observer wants to see the values."""
        self.arrange()
        run, wanted = graphs.asks(self.graph, tensors, self.inputs)
        watching = wanted[VALUES]
        if watching:
            try:
                results = self.build(graphs.run_watched(run, watching, self.updates, self.count))
            except Exception as error:
                failures.failed(error, self, tensors)
                raise
        else:
            graphs.pass_by()
            results = self.run(tensors)
        for observer in wanted[RESULTS]:
            observer.gave(run, results)
        return results

    def arrange(self) -> None:
        """Gives the graph a parameter for each tensor that it changes, once: each run asks."""
        if self.is_arranged:
            return
        self.inputs, self.frozen, self.updates = arranged(self.graph, self.inputs, self.targets, self.count)
        self.is_arranged = True

    def gives_up_folding(self, error: Exception) -> bool:
        """Whether `error` says that weights cannot be folded; nothing has run then, and the next program
        leaves them as they are.
        """
        found = without_folding(self.asked, error)
        if found is not None:
            self.asked, self.program = found, None
        return found is not None

    def prepare(self) -> _C.Program:
        """The program, built at the first call."""
        self.arrange()
        with clock.compiling(), with_asked(self.asked):
            self.program = executable.program(self.graph, self.frozen, self.updates, self.tensors())
        self.watch()
        return self.program

    def tensors(self) -> dict[int, Tensor]:
        """The tensors from outside, by position."""
        return dict(zip(self.frozen, self.inputs))

    def watch(self) -> None:
        if self.program.hoisted:
            method = weakref.WeakMethod(self.keep_nothing)
            self.program.unfreeze = lambda: _call(method)

    def memory_report(self) -> MemoryReport:
        """How the program uses its arena."""
        program = self.prepare() if self.program is None else self.program
        return program.info() if callable(program.info) else program.info

    def keep_nothing(self) -> None:
        """Computes all values in each run from now on: the Parameters they depend on change all the time."""
        executable.discard(self.graph, self.program)
        self.frozen = ()
        with with_asked(self.asked):
            self.program = executable.program(self.graph, (), self.updates)


def arranged(
    graph: Graph, inputs: list[Tensor], targets: list[Tensor], count: int
) -> tuple[list[Tensor], tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Gives `graph` a parameter for each of `targets` that it does not read: the inputs with those, their
    positions, and the updates of `executable.program`. `inputs` are the last parameters, `targets` take the
    outputs from `count` on.
    """
    first = len(graph.parameters) - len(inputs)
    positions = {id(t): first + i for i, t in enumerate(inputs)}
    inputs = list(inputs)
    for index, target in enumerate(targets):
        if id(target) in positions:
            continue
        type_ = graph.outputs[count + index].type  # overwritten without being read
        positions[id(target)] = len(graph.parameters)
        graph.parameters.append(Value(type_, getattr(target, "name", "")))
        inputs.append(target)
    updates = tuple((count + i, positions[id(t)]) for i, t in enumerate(targets))
    return inputs, tuple(range(first, len(graph.parameters))), updates


def _call(method: weakref.WeakMethod) -> None:
    found = method()
    if found is not None:
        found()
