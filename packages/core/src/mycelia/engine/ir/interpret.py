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
    """Who follows the evaluations of this thread, those of branches and loops among them."""

    visit: Callable[[Node], None] | None = None


followed = _Followed()


def evaluate(
    graph: Graph, arguments: Sequence[Any], visit: Callable[[Node], None] | None = None
) -> list[Any]:
    """The outputs of `graph` for one Tensor per parameter. A value is dropped after its last use.

    `visit` is called before each node, or else `followed.visit`.
    """
    visit = visit or followed.visit
    if len(arguments) != len(graph.parameters):
        raise TypeError(f"graph {graph.name} takes {len(graph.parameters)} tensors, got {len(arguments)}")
    environment: dict[Value, Any] = dict(zip(graph.parameters, arguments))
    for node, dead in zip(graph.nodes, last_uses(graph)):
        if visit is not None:
            visit(node)
        flat = [None if v is None else v.constant if v.is_constant else environment[v] for v in node.inputs]
        environment.update(zip(node.outputs, apply(node.op, flat, node.attrs), strict=True))
        for value in dead:
            del environment[value]
    return [v.constant if v.is_constant else environment[v] for v in graph.outputs]


def apply(op: Any, flat: Sequence[Any], attrs: dict[str, Any]) -> Sequence[Any]:
    """The outputs of one node. An op that updates its inputs works on aliases here:
    what it would write is an output.
    """
    definition = op.definition
    arguments = group_inputs(op, flat)
    updated = [definition.param_names.index(name) for name in definition.updates]
    for index in updated:
        if arguments[index] is not None:
            given = arguments[index]
            arguments[index] = given._detach()
            if definition.nondiff:  # an assignment: what is overwritten keeps its gradient
                arguments[index]._tape_place = given._tape_place
    result = op(*arguments, *(attrs[a.name] for a in definition.attrs))
    if not updated:
        return result if isinstance(result, tuple) else (result,)
    written = [arguments[index] for index in updated]
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
