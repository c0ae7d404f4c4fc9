"""A run of a compiled function that is watched: its graph, operator by operator.

Each operator runs by the Plan that an eager call would get, so what is seen does not depend on what a program
joins, leaves out or computes ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from mycelia.engine import dispatch
from mycelia.engine.ir import interpret
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.observing.calls import observed_call
from mycelia.engine.observing.observers import (
    NOTHING,
    RESULTS,
    VALUES,
    Observer,
    Run,
    iteration,
    next_iteration,
    observers,
    watched,
)
from mycelia.engine.tensors.tensor import Tensor


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


class _Follower:
    """Runs the nodes of the graph, those of its branches and loops among them, while observers look."""

    def __init__(self, run: Run, watching: Sequence[Observer]) -> None:
        self.run, self.watching = run, watching

    def run_node(self, node: Node, flat: list[Any]) -> Sequence[Any]:
        op, operator = node.op, self.run.of.operators.get(node)
        if operator is None or node.regions or not dispatch.is_innermost(execute):
            return interpret.apply(op, flat, node.attrs)
        inputs = tuple(interpret.arguments_of(op, flat))
        attrs = tuple([node.attrs[a.name] for a in op.definition.attrs])
        result = observed_call(
            self.watching, self.run, operator, op, inputs, lambda: op._execute(inputs, attrs)
        )
        return interpret.results_of(op, inputs, result)
