"""Who watches, and what they are told of: runs, operators, parameters."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mycelia.engine.ir.graph import Graph
from mycelia.engine.observing.operator_names import Operator, operators_of
from mycelia.engine.observing.parameter_names import all_distinct
from mycelia.engine.tensors.tensor import Parameter, Tensor

if TYPE_CHECKING:
    from mycelia.engine.observing.eager_programs import EagerPrograms

PARAMETER, OPTIMIZER_STATE = "Parameter", "optimizer state"  # what a graph's argument may be to the training

NOTHING, VALUES, RESULTS = range(3)  # what an observer wants of a run


class Watched:
    """What observers are told of a graph, or of the eager calls of a thread: `number`, in order of first use,
    `name`, the `graph` (None for eager calls), and its operators in order of execution.
    """

    _count = 0
    _lock = threading.Lock()

    def __init__(self, name: str, graph: Graph | None = None, number: int | None = None) -> None:
        if number is None:
            with Watched._lock:
                number = Watched._count
                Watched._count += 1
        self.number = number
        self.name, self.graph = name, graph
        self.operators = {} if graph is None else operators_of(graph)

    @cached_property
    def parameter_names(self) -> list[str]:
        """Of the graph's parameters, each another: those of Parameters, and ``inputs0``, ``inputs1``... for
        arguments.
        """
        if self.graph is None:
            return []
        unnamed = iter(range(len(self.graph.parameters)))
        return all_distinct(v.name or f"inputs{next(unnamed)}" for v in self.graph.parameters)


def watched(graph: Graph) -> Watched:
    """What is kept of `graph` for observers; the same in every run."""
    found = graph.cache.get("watched")
    if found is None:
        found = graph.cache["watched"] = Watched(graph.name, graph)
    return found


class Run:
    """One run of a compiled function, or the eager calls of one step.

    `of`: the graph, or the thread's calls; `iteration`: which step of the process it is, from 0;
    `arguments`: the tensors given, in the order of `of.parameter_names`, of which the first `count` came with
    the call and the others from outside; `operators`: of eager calls those that ran so far, and `parameters`
    the Parameters that they read, by names that are their own, each with an alias of what it was then.
    """

    __slots__ = ("arguments", "count", "iteration", "notes", "of", "operators", "parameters", "programs")

    def __init__(
        self,
        of: Watched,
        number: int,
        arguments: Sequence[Tensor] = (),
        count: int | None = None,
        programs: EagerPrograms | None = None,
    ) -> None:
        self.of, self.iteration, self.arguments = of, number, arguments
        self.count = len(arguments) if count is None else count
        self.operators: list[Operator] = []
        self.parameters: dict[str, tuple[Tensor, Tensor]] = {}
        self.programs = programs
        self.notes: dict[Any, Any] = {}  # what observers keep for the time of the run, by a key of theirs

    @property
    def program(self) -> Watched:
        """What it is a run of: `of`, or, of eager calls, the program that they are of as far as they ran; the
        rest of a step may show that it is of another one.
        """
        return self.of if self.programs is None else self.programs.of(self.operators, self.parameters)

    def roles(self) -> dict[str, str]:
        """`OPTIMIZER_STATE` or `PARAMETER` of each Parameter by name, of eager calls those read so far."""
        named = [(name, tensor) for name, tensor, is_parameter in self.named_arguments() if is_parameter]
        named += [(name, parameter) for name, (parameter, _) in self.parameters.items()]
        return {name: OPTIMIZER_STATE if p._is_optimizer_state else PARAMETER for name, p in named}

    @property
    def extent(self) -> int:
        """How much of a program eager calls have shown so far: who shows more describes it better."""
        return len(self.operators) + len(self.parameters)

    @property
    def candidates(self) -> list[Watched]:
        """Those that `program` may be when the step has ended, as far as they are known."""
        if self.programs is None:
            return [self.of]
        return self.programs.of_which_are(self.operators, self.parameters)

    def named_arguments(self) -> Iterator[tuple[str, Tensor, bool]]:
        """(name, tensor, whether it is a Parameter)."""
        for name, tensor in zip(self.of.parameter_names, self.arguments):
            yield name, tensor, isinstance(tensor, Parameter)


class Observer:
    """Base of those who watch; each method may be left as it is. What one raises ends the run."""

    def passes(self, number: int) -> bool:
        """Whether nothing is wanted of any run of a compiled function in iteration `number`; `wants` is not
        asked then. Steps between those that are looked at ask nothing else.
        """
        return False

    def wants(self, run: Run) -> int:
        """`VALUES` to be told of this run's operators, `RESULTS` to be told what a compiled function gave,
        which then runs as it is compiled, else `NOTHING`.
        """
        return VALUES

    def begin(self, run: Run) -> None:
        """Before the first operator; `run.arguments` are what they will be read as."""

    def before(self, run: Run, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
        """Before an operator runs."""

    def seen(
        self,
        run: Run,
        operator: Operator,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
    ) -> None:
        """After an operator ran. The tensors may be kept: nobody writes into them."""

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        """Instead of `seen`, if the operator raised."""

    def end(self, run: Run, error: BaseException | None) -> None:
        """After the last operator, or after an error."""

    def gave(self, run: Run, results: Any) -> None:
        """After a run whose `RESULTS` were wanted: what the compiled function returns."""

    def settled(self, run: Run) -> None:
        """After a run without an error, when the Parameters have their new values. Values may be changed
        here; what it raises leaves the call that ran.
        """


#: Who watches compiled functions; compiled calls look only whether there is anyone.
observers: list[Observer] = []


def watch(observer: Observer) -> None:
    """Tell `observer` of all runs of compiled functions from now on, on all threads."""
    if observer not in observers:
        observers.append(observer)


def unwatch(observer: Observer) -> None:
    """End that; nothing happens if it was not watching."""
    if observer in observers:
        observers.remove(observer)


class _Steps:
    """The number of the step, which all graphs share: each run of one is a step."""

    number = 0
    lock = threading.Lock()


def iteration() -> int:
    """The number of the present step, counted from 0 while someone watches."""
    return _Steps.number


def set_iteration(number: int) -> None:
    """The number of the next step."""
    _Steps.number = number


def next_iteration() -> None:
    with _Steps.lock:
        _Steps.number += 1
