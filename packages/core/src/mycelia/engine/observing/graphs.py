"""A run of a compiled function that is watched: its graph, operator by operator.

Each operator runs by the Plan that an eager call would get, so what is seen does not depend on what a program
joins, leaves out or computes ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycelia.engine import dispatch
from mycelia.engine.backends import registry
from mycelia.engine.ir import interpret
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.observing.calls import observed_call
from mycelia.engine.observing.observers import (
    NOTHING,
    RESULTS,
    VALUES,
    Observer,
    Operator,
    Run,
    Watched,
    iteration,
    next_iteration,
    observers,
    watched,
)
from mycelia.engine.ops.cost import Cost, cost
from mycelia.engine.tensors.tensor import Tensor

#: What one core does in less than half a millisecond. Between watched operators is so much Python that
#: workers fall asleep: to wake them for less costs more than they help.
_SMALL = Cost(1 << 24, 1 << 22)


class _Inside(threading.local):
    depth = 0  # runs of compiled functions around the present one, all of one step


_inside = _Inside()


def asks(graph: Graph, given: list[Tensor], inputs: list[Tensor]) -> tuple[Run, dict[int, list[Observer]]]:
    """The coming run of `graph` on tensors that are `given` and `inputs` from outside, and who wants what
    of it.
    """
    run = Run(watched(graph), iteration(), given + inputs, len(given))
    wanted: dict[int, list[Observer]] = {VALUES: [], RESULTS: [], NOTHING: []}
    for observer in observers:
        wanted[observer.wants(run)].append(observer)
    return run, wanted


def is_passed() -> bool:
    """Whether all observers say so of the coming run, which is counted then."""
    number = iteration()
    for observer in observers:
        if not observer.passes(number):
            return False
    pass_by()
    return True


def pass_by() -> None:
    """Count a run that nobody looks at."""
    if not _inside.depth:
        next_iteration()


def run_watched(
    run: Run, watching: Sequence[Observer], updates: Sequence[tuple[int, int]], count: int
) -> list[Tensor]:
    """The outputs of the run's graph, operator by operator.

    `updates`: (output, parameter) pairs as of `executable.program`; the tensors given as those parameters
    take these outputs when all went well. The first `count` outputs are returned.
    """
    graph = run.of.graph
    assert graph is not None
    error: BaseException | None = None
    for observer in watching:
        observer.begin(run)
    arguments = [t._detach() for t in run.arguments]  # what an operator updates is another tensor
    for alias, given in zip(arguments, run.arguments):
        alias._tape_place = given._tape_place
    follower = _Follower(run, watching)
    mode = dispatch.push_interceptor(execute, dispatch.OBSERVING)  # what compositions call is no node
    outer, interpret.followed.run = interpret.followed.run, follower.run_node
    _inside.depth += 1
    try:
        outputs = interpret.evaluate(graph, arguments)
    except BaseException as caught:
        error = caught
        raise
    finally:
        _inside.depth -= 1
        interpret.followed.run = outer
        follower.end()
        dispatch.pop_interceptor(mode)
        for observer in watching:
            observer.end(run, error)
        if not _inside.depth:
            next_iteration()
    for output, parameter in updates:
        target = run.arguments[parameter]
        place = target._tape_place
        target._assign(outputs[output])
        target._tape_place = place  # the tape follows a Parameter, whatever is assigned to it
    for observer in watching:
        observer.settled(run)
    return outputs[:count]


def execute(op: Any, inputs: tuple, attrs: tuple) -> Any:
    """A call that nobody looks at."""
    return op._execute(inputs, attrs)


class _Call(NamedTuple):
    """What running a node takes that is the same each time. `threads`: the most that it may use, 0 all."""

    operator: Operator
    attrs: tuple
    threads: int


def _calls(of: Watched) -> dict[Node, _Call]:
    """Of the nodes that observers are told of."""
    assert of.graph is not None
    found = of.graph.cache.get("watched calls")
    if found is None:
        found = of.graph.cache["watched calls"] = {
            node: _Call(
                operator, tuple([node.attrs[a.name] for a in node.op.definition.attrs]), _threads(node)
            )
            for node, operator in of.operators.items()
        }
    return found


def _threads(node: Node) -> int:
    types = ([None if v is None else v.type for v in node.inputs], [v.type for v in node.outputs])
    price = cost(node.op.definition, *map(tuple, types), node.attrs)
    return int(price is not None and price.flops < _SMALL.flops and price.bytes < _SMALL.bytes)


class _Follower:
    """Runs the nodes of the graph, those of its branches and loops among them, while observers look."""

    def __init__(self, run: Run, watching: Sequence[Observer]) -> None:
        self.run, self.watching, self.calls = run, watching, _calls(run.of)
        self.backend, self.threads = registry.host().backend, 1
        self.before = self.backend.limit_threads(self.threads)

    def run_node(self, node: Node, flat: list[Any]) -> Sequence[Any]:
        op, call = node.op, self.calls.get(node)
        if call is None or not dispatch.is_innermost(execute):
            return interpret.apply(op, flat, node.attrs)
        operator, attrs, threads = call
        threads = threads or self.before
        if threads != self.threads:
            self.threads = threads
            self.backend.limit_threads(threads)
        inputs = tuple(interpret.arguments_of(op, flat))
        result = observed_call(
            self.watching, self.run, operator, op, inputs, lambda: op._execute(inputs, attrs)
        )
        return interpret.results_of(op, inputs, result)

    def end(self) -> None:
        """Threads are as they were before the run."""
        self.backend.limit_threads(self.before)
