"""A program that is still being ordered: what the passes of the stage "order" know and decide.

They work on a lowered graph without its constant parts, and change the order of its nodes, which is the order
of execution. Beside it they need what runs each node, and which values others than kernels get to see.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from mycelia.engine import _C
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.verify import InvalidGraph, verify

VIEW = 1  # kind of a Plan


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes [begin, end) of an order; `ends`: where its tasks end."""

    begin: int
    end: int
    ends: tuple[int, ...]


@dataclass(slots=True)
class Draft:
    """What is known of the program of a graph before it is built, and what the passes have decided.

    `plans`: of each node, None for what Python code or inner programs do; `outside`: values that these get or
    that the program returns; `updates`: (new value, parameter that takes it); `hoisted`: parameters of the
    graph that a prologue computes. `estimating` makes a context in which open sizes may be compared without a
    condition: for what is right whatever the sizes. `off_device`: values that lie on another device than the
    program's arena.
    """

    plans: dict[Node, _C.Plan | None]
    outside: set[Value]
    updates: Sequence[tuple[Value, Value]]
    hoisted: Collection[Value] = ()
    estimating: Callable[[], AbstractContextManager] = contextlib.nullcontext
    off_device: Collection[Value] = ()

    #: New values of `updates` that are written into their parameter's own memory.
    in_place: set[Value] = field(default_factory=set)
    #: Nodes that compute a value for the second time.
    clones: list[Node] = field(default_factory=list)
    #: Parts of the order whose nodes may run at the same time, in order.
    windows: list[Window] = field(default_factory=list)

    def seen(self) -> set[Value]:
        """Values that others than kernels get, now or when the parameters take them."""
        return self.outside | {u for u, _ in self.updates if u not in self.in_place}

    def in_arena(self, nodes: Sequence[Node], base: dict[Value, Value]) -> set[Value]:
        """Values that lie in the arena, if `base` are the values whose memory views show."""
        apart = {base.get(v, v) for v in self.seen()} | self.in_place
        return {
            v
            for node in nodes
            for v in node.outputs
            if self.plans[node] is not None
            and v not in base
            and v not in apart
            and v.type.nbytes > 0
            and v not in self.off_device
        }

    def verify(self, graph: Graph) -> None:
        """Raises InvalidGraph if `graph` breaks an invariant, or what was decided does not suit its order."""
        verify(graph, self.hoisted)
        name = f"graph {graph.name}"
        for node in graph.nodes:
            if node not in self.plans:
                raise InvalidGraph(f"{name}: nothing is known to run the new node {node.op.name}")
        base = view_bases(graph.nodes, self.plans)
        positions = {node: i for i, node in enumerate(graph.nodes)}
        task = _tasks(self.windows)
        written = {p: u.producer for u, p in self.updates if u in self.in_place}
        for position, node in enumerate(graph.nodes):
            for value in {base.get(v, v) for v in node.inputs if v is not None}:
                maker, writer = value.producer, written.get(value, node)
                if maker in positions and _may_meet(task, positions[maker], position):
                    what = f"what node {positions[maker]} ({maker.op.name}) makes at the same time"
                elif writer is not node and (
                    positions[writer] < position or _may_meet(task, positions[writer], position)
                ):
                    what = f"a parameter that node {positions[writer]} ({writer.op.name}) overwrites before"
                else:
                    continue
                raise InvalidGraph(f"{name}, node {position} ({node.op.name}): it reads {what}")


def _tasks(windows: Sequence[Window]) -> dict[int, tuple[int, int]]:
    """Position in the order -> its window, and its task there."""
    found = {}
    for number, window in enumerate(windows):
        begin = window.begin
        for part, end in enumerate(window.ends):
            found.update((i, (number, part)) for i in range(begin, end))
            begin = end
    return found


def _may_meet(task: dict[int, tuple[int, int]], one: int, other: int) -> bool:
    """Whether the nodes at two positions may run at the same time."""
    a, b = task.get(one), task.get(other)
    return a is not None and b is not None and a[0] == b[0] and a[1] != b[1]


def view_bases(nodes: Collection[Node], plans: dict[Node, _C.Plan | None]) -> dict[Value, Value]:
    """For each view the value whose memory it shows."""
    base: dict[Value, Value] = {}
    for node in nodes:
        plan = plans.get(node)
        if plan is not None and plan.kind == VIEW:
            base[node.outputs[0]] = base.get(node.inputs[0], node.inputs[0])
    return base


def reorder(graph: Graph, nodes: list[Node]) -> int:
    """Gives `graph` this order; returns how many places changed."""
    changed = sum(a is not b for a, b in zip(graph.nodes, nodes)) + len(nodes) - len(graph.nodes)
    graph.nodes = nodes
    return changed
