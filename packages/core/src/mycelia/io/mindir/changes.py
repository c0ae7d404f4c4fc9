"""Operators of a MindIR file that change Parameters themselves: steps of optimizers, running statistics.

In a graph what they change are new values, which its end assigns. Where nothing else needs those they are
written as MindSpore's operators, which get references to the Parameters and stand in the order of the states;
else they are composed of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mycelia.engine.ir import Graph, Node, Value
from mycelia.io.mindir.rules.table import find_step
from mycelia.io.mindir.values import MONAD


class Changes:
    """What a graph does to its Parameters while it is written.

    `assigned`: (Parameter, value) pairs that are left for its end; `state`: of the Parameters, so far.
    """

    def __init__(
        self, writer: Any, graph: Graph, weights: dict[Value, Any], updates: Sequence[tuple[Any, Value]]
    ) -> None:
        self.state: Any = MONAD
        self.assigned = list(updates)
        self._writer = writer
        self._weights = weights
        self._left: list[tuple[Node, Callable]] = []  # steps of optimizers, for the end
        self._reads = Counter(v for node in graph.nodes for v in node.inputs if v is not None)
        self._final = {value: parameter for parameter, value in updates}
        self._results = Counter(graph.outputs)

    def write(self, node: Node) -> bool:
        """Write a node as an operator that changes Parameters, now or at the end; False if it is none."""
        write = find_step(node.op)
        if write is None or not self._changes(node):
            return False
        count = len(node.op.definition.updates)
        if count == len(node.outputs):
            if write(_Trial(), node, [None] * len(node.inputs), None) is None:
                return False
            self._left.append((node, write))
        elif not self._write_now(node, write, count):
            return False
        done = set(node.outputs[:count])
        self.assigned = [pair for pair in self.assigned if pair[1] not in done]
        return True

    def named_inputs(self) -> list[Callable[[Any], Any]]:
        """The steps of optimizers, each written by a call with the state before it. Their inputs are named
        now: what is read of Parameters is read before any of them is changed.
        """
        return [partial(write, self._writer, node, self._inputs(node)) for node, write in self._left]

    def _changes(self, node: Node) -> bool:
        """Whether what a node changes are Parameters, and the new values are the last ones, unread."""
        for given, made in zip(node.inputs, node.outputs[: len(node.op.definition.updates)]):
            parameter = self._weights.get(given)
            if parameter is None or self._final.get(made) is not parameter:
                return False
            if self._reads[made] or self._results[made] != 1:
                return False
        return True

    def _inputs(self, node: Node) -> list[Any]:
        """Names of the inputs; references of Parameters that are changed."""
        count = len(node.op.definition.updates)
        return [
            self._writer.names[v] if i < count else self._writer.value(v) for i, v in enumerate(node.inputs)
        ]

    def _write_now(self, node: Node, write: Callable, count: int) -> bool:
        """A node with results of its own, where nothing else reads what it changes."""
        if any(self._reads[v] != 1 for v in node.inputs[:count]):
            return False
        made = write(self._writer, node, self._inputs(node), self.state)
        if made is None:
            return False
        name, places = made
        self.state = self._writer.primitive("UpdateState", self.state, name)
        for value, place in zip(node.outputs[count:], places, strict=True):
            self._writer.names[value] = self._writer.item(name, place, value.type)
        return True


class _Trial:
    """A writer that writes nothing: whether an operator has a node's attributes."""

    def change(self, *given: Any, **more: Any) -> bool:
        return True
