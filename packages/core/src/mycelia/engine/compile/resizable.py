"""Programs of one graph for many sizes.

A graph captured with sizes that stay open (`ir/symint.py`) is lowered, scheduled and laid out once, with the
sizes open all the while: what these decisions compare become conditions. For given sizes a program is then a
copy of that one with other numbers: types, attributes and places in the arena. Estimates go by the sizes of
the time, so a `Variant` serves sizes up to twice as large and half as small; others get one of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import log
from mycelia.engine.capture.gradients import joint_graph
from mycelia.engine.capture.trace import number_tensor
from mycelia.engine.compile import differentiate, executable, hoist
from mycelia.engine.compile.gc_pause import gc_paused
from mycelia.engine.compile.memory import MemoryReport
from mycelia.engine.compile.passes import lower, unfolded
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.sizes import Numbers, is_open_graph, is_symbolic
from mycelia.engine.ir.symint import Conditions, SizeTable, SymInt, holds
from mycelia.engine.ir.types import TensorType

_VARIANTS = 16  # of one graph; the oldest goes
_RANGE = 2  # a variant serves sizes up to so many times larger or smaller than those it was made for
_REFERENCE, _LAUNCH = 2, 4  # kinds of Plan


class Resizable:
    """The programs of `graph`, whose sizes follow from the symbols of `table`. The other arguments are those
    of `executable.program`."""

    def __init__(
        self,
        graph: Graph,
        table: SizeTable,
        frozen: Collection[int],
        updates: Sequence[tuple[int, int]],
        tensors: Mapping[int, Any],
    ) -> None:
        self.graph, self.table = graph, table
        self.frozen, self.updates, self.tensors = frozen, updates, tensors
        self.variants: list[tuple[tuple[int, ...], Conditions, Variant]] = []
        self.is_closed = False  # a decision needs the numbers themselves: no program serves other sizes

    def program(self, sizes: Sequence[int], numbers: list) -> _C.Program | None:
        """For symbols of these sizes, from which `numbers` follow; None if each size needs a lowering."""
        if len(numbers) < len(self.table.entries):  # variants that came since then have added some
            numbers = self.table.resolve(sizes)
        for position, (hints, conditions, variant) in enumerate(self.variants):
            if _is_near(sizes, hints) and holds(conditions, numbers):
                if position:
                    self.variants.insert(0, self.variants.pop(position))
                return variant.resized(Numbers(numbers))
        return None if self.is_closed else self.another(sizes)

    def another(self, sizes: Sequence[int]) -> _C.Program | None:
        """The program of a new variant."""
        with gc_paused(), self.table.learning(sizes) as conditions:
            frozen = executable.frozen_of(self.frozen, self.updates)
            lowered = lower(self.graph, registry.target(), frozen)
            variant = Variant(lowered, self.table, self.updates, frozen, self.tensors)
            self.is_closed = bool(self.table.specialized)
        if self.is_closed:
            log.logger(__name__).info("%s is lowered for each size", self.graph.name)
        else:
            self.variants.insert(0, (tuple(sizes), conditions, variant))
            del self.variants[_VARIANTS:]
        return variant.model


def _is_near(sizes: Sequence[int], hints: Sequence[int]) -> bool:
    return all(n <= hint * _RANGE and hint <= n * _RANGE for n, hint in zip(sizes, hints))


class OpenDerivative:
    """The forward and backward graph of `graph`, with open sizes, and their programs."""

    def __init__(
        self,
        graph: Graph,
        table: SizeTable,
        sizes: Sequence[int],
        wanted: tuple[bool, ...],
        given: tuple[bool, ...],
        frozen: Collection[int],
        updates: Sequence[tuple[int, int]],
        tensors: Mapping[int, Any],
    ) -> None:
        with gc_paused(), table.learning(sizes) as self.conditions:
            joint = joint_graph(graph, wanted, given, table)
            self.numbers = joint.cache.pop("open_numbers")
            forward, backward = differentiate.parted(joint, graph, sum(given))
            self.is_closed = bool(table.specialized)
        frozen = tuple(i for i in frozen if not wanted[i])
        self.parameters, self.kept = forward.parameters, forward.outputs[len(graph.outputs) :]
        self.forward = Resizable(forward, table, frozen, updates, tensors)
        self.backward = Resizable(backward, table, (), (), {})

    def programs(self, sizes: Sequence[int], numbers: list) -> differentiate.Derivative | None:
        """For symbols of these sizes, from which `numbers` follow; None if they need graphs of their own."""
        if self.is_closed or not holds(self.conditions, numbers):
            return None
        forward, backward = (side.program(sizes, numbers) for side in (self.forward, self.backward))
        if forward is None or backward is None:
            return None
        given = [number_tensor(numbers[size.index], dtype) for size, dtype in self.numbers]
        return differentiate.Derivative(forward, lambda: backward, self.parameters, self.kept, given)


class Variant(executable.Builder):
    """Builds the program `model` of a lowered graph, or a prologue, for the present sizes, and copies of it
    for others. `table` must be learning."""

    def __init__(self, graph: Graph, table: SizeTable, *what: Any) -> None:
        self.table = table
        self.sizes = Numbers(None)
        self.regions: dict[Graph, Variant] = {}
        self.prologues: dict[int, Variant] = {}  # by the position of the part
        super().__init__(graph, *what)
        self.model = self.build()
        numbers = self.numbers
        self.open = _bytes(
            (position, axis, size.index)
            for value, position in numbers.items()
            for axis, size in enumerate(value.type.shape)
            if type(size) is SymInt
        )
        self.blocks = _bytes(
            (numbers[v], i.first, i.last) for v, i in zip(self.places.values, self.places.intervals)
        )
        self.followers = _bytes((numbers[v], numbers[root]) for v, root in self.places.root.items())
        self.changing = [i for i, (node, _, _) in enumerate(self.order) if self.is_changing(node)]

    def is_changing(self, node: Node) -> bool:
        """Whether the instruction of `node` depends on sizes, apart from those of its inputs and results."""
        plan = self.plans[node]
        if any(region in self.regions for region in node.regions) or is_symbolic(node.attrs):
            return True
        return (
            plan is not None
            and plan.kind in (_REFERENCE, _LAUNCH)
            and any(v is not None and is_symbolic(v.type) for v in (*node.inputs, *node.outputs))
        )

    def resized(self, sizes: Numbers) -> _C.Program:
        """The program for other numbers."""
        self.sizes = sizes
        instructions = {}
        for position in self.changing:
            node = self.order[position][0]
            if self.plans[node] is not None:
                self.plans[node] = self.plan(node)
            instructions[position] = self.instruction(position)
        sources = None
        if self.prologues:
            sources = tuple(
                self.hoisted(part) if i in self.prologues else None for i, part in enumerate(self.parts)
            )
        made = self.model.resized(sizes.values, self.open, self.blocks, self.followers, instructions, sources)
        made.nodes = partial(self.nodes_for, sizes)
        made.info = partial(self.report, sizes)
        executable.announce(made, self.graph)
        return made

    def nodes_for(self, sizes: Numbers) -> tuple[Node, ...]:
        return tuple(sizes.nodes([node for node, _, _ in self.order], {}))

    def report(self, sizes: Numbers) -> MemoryReport:
        return self.places.report([sizes.type(v.type).nbytes for v in self.places.values])

    # ---- what a Builder asks

    def build(self) -> _C.Program:
        made = super().build()
        made.info = partial(self.report, self.sizes)
        return made

    def type(self, value: Value) -> TensorType:
        return self.sizes.type(value.type)

    def plan(self, node: Node) -> _C.Plan | None:
        inputs = tuple(v and self.sizes.type(v.type) for v in node.inputs)
        outputs = tuple(self.sizes.type(v.type) for v in node.outputs)
        return executable.plan_of(node, inputs, outputs, self.attributes(node))

    def attributes(self, node: Node) -> dict[str, Any]:
        return self.sizes.attribute(node.attrs) if is_symbolic(node.attrs) else node.attrs

    def hoisted(self, part: hoist.Part) -> _C.Hoisted:
        if not is_open_graph(part.prologue):
            return super().hoisted(part)
        position = self.parts.index(part)
        variant = self.prologues.get(position)
        if variant is None:
            variant = self.prologues[position] = Variant(part.prologue, self.table)
            return _C.Hoisted(variant.model)
        return _C.Hoisted(variant.resized(self.sizes))

    def inner(self, region: Graph, frozen: Collection[int] = ()) -> _C.Program:
        if not is_open_graph(region):
            return super().inner(region, frozen)
        variant = self.regions.get(region)
        if variant is None:
            with unfolded():
                lowered = lower(region, registry.target(), frozen)
            variant = self.regions[region] = Variant(lowered, self.table, (), frozen)
            return variant.model
        return variant.resized(self.sizes)

    def estimating(self) -> AbstractContextManager:
        return self.table.silence()  # any order is right, whatever the sizes


def _bytes(rows: Iterable[tuple[int, ...]]) -> bytes:
    return np.array([n for row in rows for n in row], np.int32).tobytes()
