"""Evaluates a graph by calling its ops one after another.

The ops decide what that means: on concrete tensors they compute, on traced tensors they append to the
graph being captured, with a tape active they are recorded. So one function serves as executor, as inliner
and as the primal program of a gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine.ir.graph import Graph, Node, Value, group_inputs


class _Followed(threading.local):
    """Who runs the nodes of this thread's evaluations, those of branches and loops among them: as `apply`
    does, given the inputs one by one.
    """

    run: Callable[[Node, list[Any]], Sequence[Any]] | None = None


followed = _Followed()


def evaluate(
    graph: Graph, arguments: Sequence[Any], visit: Callable[[Node], None] | None = None
) -> list[Any]:
    """The outputs of `graph` for one Tensor per parameter. A value is dropped after its last use.

    `visit` is called before each node, which nobody else runs then.
    """
    run = followed.run if visit is None else None
    if len(arguments) != len(graph.parameters):
        raise TypeError(f"graph {graph.name} takes {len(graph.parameters)} tensors, got {len(arguments)}")
    environment: dict[Value, Any] = dict(zip(graph.parameters, arguments))
    for node, dead in zip(graph.nodes, last_uses(graph)):
        flat = [None if v is None else v.constant if v.is_constant else environment[v] for v in node.inputs]
        if visit is not None:
            visit(node)
        made = apply(node.op, flat, node.attrs) if run is None else run(node, flat)
        environment.update(zip(node.outputs, made, strict=True))
        for value in dead:
            del environment[value]
    return [v.constant if v.is_constant else environment[v] for v in graph.outputs]


def apply(op: Any, flat: Sequence[Any], attrs: dict[str, Any]) -> Sequence[Any]:
    """The outputs of one node. An op that updates its inputs works on aliases here:
    what it would write is an output.
    """
    arguments = arguments_of(op, flat)
    return results_of(op, arguments, op(*arguments, *(attrs[a.name] for a in op.definition.attrs)))


def arguments_of(op: Any, flat: Sequence[Any]) -> list[Any]:
    """What `op` is called with for the inputs of a node."""
    definition = op.definition
    arguments = group_inputs(op, flat)
    for name in definition.updates:
        index = definition.param_names.index(name)
        if arguments[index] is not None:
            given = arguments[index]
            arguments[index] = given._detach()
            if definition.nondiff:  # an assignment: what is overwritten keeps its gradient
                arguments[index]._tape_place = given._tape_place
    return arguments


def results_of(op: Any, arguments: Sequence[Any], result: Any) -> Sequence[Any]:
    """The outputs of a node for what the call gave."""
    definition = op.definition
    if not definition.updates:
        return result if isinstance(result, tuple) else (result,)
    written = [arguments[definition.param_names.index(name)] for name in definition.updates]
    rest = result if isinstance(result, tuple) else () if result is written[0] else (result,)
    return (*written, *rest)


def last_uses(graph: Graph) -> list[list[Value]]:
    """For each node the values (parameters excepted) that nothing needs after it."""
    cached = graph.cache.get("last_uses")
    if cached is None:
        seen = set(graph.outputs) | set(graph.parameters)
        cached = []
        for node in reversed(graph.nodes):
            candidates = [
                v for v in dict.fromkeys([*node.inputs, *node.outputs]) if v is not None and not v.is_constant
            ]
            cached.append([v for v in candidates if v not in seen])
            seen.update(candidates)
        cached.reverse()
        graph.cache["last_uses"] = cached
    return cached
