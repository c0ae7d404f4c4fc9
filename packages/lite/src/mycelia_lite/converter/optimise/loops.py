"""Loops of a file (Custom nodes Loop), read for rules: what they carry, how often they run, which places they
name.

What counts the runs is no pattern: the numbers that a loop computes from its counters alone are computed by
the runtime, run after run, until its test says no.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.part import Part

_MOST_RUNS = 1 << 12  # of a loop whose counters are followed
_LEADING = 2  # parameters in front of those carried: the number of the run, and whether it goes on


@dataclass(frozen=True)
class Loop:
    """A loop with a test of its own. Parameters and results of the body are its tensors."""

    graph: FileGraph
    node: FileNode
    body: FileGraph
    test: FileGraph
    calls: tuple[FileNode, ...]  # of the test in front of the loop: Call and PartialFusion
    numbers: frozenset[int]  # of the subgraphs
    carried: int

    @property
    def states(self) -> list[int]:
        """Parameters of the body that change from run to run."""
        return self.body.parameters[_LEADING : _LEADING + self.carried]

    def first(self, parameter: int) -> int | None:
        """The tensor around the loop that a parameter of the body begins with."""
        at = self.body.parameters.index(parameter)
        return self.node.inputs[at] if at >= _LEADING else None

    def next(self, parameter: int) -> int:
        """What a run leaves for the next one."""
        return self.body.results[1 + self.states.index(parameter)]

    def result(self, parameter: int) -> int:
        """The tensor around the loop that has what the last run left."""
        return self.node.outputs[self.states.index(parameter)]

    def is_invariant(self, tensor: int) -> bool:
        return tensor in self.body.parameters[_LEADING + self.carried :]

    def constant(self, tensor: int) -> np.ndarray | None:
        """A float32 constant of the body, or one that is handed to it."""
        if self.is_invariant(tensor):
            return self.graph.float_constant(self.first(tensor))
        return self.body.float_constant(tensor)

    def counters(self) -> list[int]:
        """What is carried and begins with a constant integer."""
        found = []
        for state in self.states:
            first = self.graph.constant(self.first(state))
            if first is not None and first.dtype.kind == "i" and not first.shape:
                found.append(state)
        return found

    def follow(self, wanted: Sequence[int]) -> list[list[np.ndarray]] | None:
        """For each run the values of tensors of the body that depend on its counters alone; None if they
        depend on more, or it runs too often.
        """
        counters = self.counters()
        after = [self.next(c) for c in counters]
        tested = [self.test.parameters[self.states.index(c)] for c in counters]
        step = Part(self.body, counters, [*after, *wanted])
        test = Part(self.test, tested, self.test.results)
        values = [self.graph.constant(self.first(c)) for c in counters]
        runs: list[list[np.ndarray]] = []
        try:
            while bool(test(values)[0]):
                made = step(values)
                values = made[: len(counters)]
                runs.append(made[len(counters) :])
                if len(runs) > _MOST_RUNS:
                    return None
        except (RuntimeError, LookupError):
            return None
        return runs


def read_loop(graph: FileGraph, node: FileNode) -> Loop | None:
    """The loop that a node is if its test is a subgraph called in front of it and at the end of each run."""
    attributes = {a.name: int.from_bytes(bytes(a.data), "little") for a in node.op.attr if len(a.data) == 8}
    if node.kind != "Custom" or node.op.type != "Loop" or "body" not in attributes:
        return None
    carried, number = attributes.get("carried", 0), attributes["body"]
    if len(node.outputs) != carried or not 0 < number < len(graph.siblings):
        return None
    body = graph.siblings[number]
    before, after = _test_call(graph, node.inputs[1]), _test_call(body, body.results[0])
    if before is None or after is None or len(body.parameters) != len(node.inputs):
        return None
    partial, given = before[1], after[1]
    rest = body.parameters[_LEADING + carried :]
    if partial.op.sub_graph_index != given.op.sub_graph_index:
        return None
    if partial.inputs != node.inputs[_LEADING:] or given.inputs != [*body.results[1:], *rest]:
        return None
    most = graph.integers(node.inputs[0])
    if most is None or most[0] < np.iinfo(np.int64).max or graph.uses(node.inputs[1]) != 1:
        return None
    test = graph.siblings[partial.op.sub_graph_index]
    numbers = frozenset((number, partial.op.sub_graph_index))
    return Loop(graph, node, body, test, before, numbers, carried)


def _test_call(graph: FileGraph, tensor: int) -> tuple[FileNode, FileNode] | None:
    """Call and PartialFusion that make a tensor."""
    call = graph.maker.get(tensor)
    part = graph.maker.get(call.inputs[0]) if call is not None and call.kind == "Call" else None
    return (call, part) if part is not None and part.kind == "PartialFusion" else None


def sizes(graphs: Iterable[tuple[FileGraph, Loop | None]], tensor: int) -> list[object] | None:
    """The elements of a tensor of sizes: numbers, or (tensor, axis) for a size of another one.

    `graphs`: where it stands, the innermost first; a parameter of a body is looked up in the graph around it.
    """
    inner, *around = graphs
    graph, loop = inner
    array = graph.integers(tensor)
    if array is not None:
        return list(array)
    if loop is not None and loop.is_invariant(tensor):
        return sizes(around, loop.first(tensor))
    made = graph.maker.get(tensor)
    if made is None:
        return None
    if made.kind == "Cast":
        return sizes(graphs, made.inputs[0])
    if made.kind == "Shape":
        whole = made.inputs[0]
        at = loop.first(whole) if loop is not None and loop.is_invariant(whole) else whole
        return [n if n >= 0 else (at, axis) for axis, n in enumerate(graph.shape(whole))]
    if made.kind == "Concat":
        parts = [sizes(graphs, i) for i in made.inputs]
        return None if any(p is None for p in parts) else [item for p in parts for item in p]
    if made.kind == "Gather":
        items, index = sizes(graphs, made.inputs[0]), graph.integers(made.inputs[1])
        fits = items is not None and index is not None and all(0 <= i < len(items) for i in index)
        return [items[i] for i in index] if fits else None
    return None
