"""The memory plan: which values lie in the arena of a program, where, and which take the place of an input.

Values that are never alive at the same time may share a place. Places are given to the largest values
first, each at the lowest offset where it fits among those whose lifetimes overlap: Pisarchyk and Lee 2020,
"Efficient memory management for deep neural net inference", greedy by size. A kernel that may work in place
writes over an input that is not read afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mycelia.engine import _C
from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.ir.sizes import hint_of

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_IN_PLACE = 1  # flag of a kernel: its first result may be the memory of an input


@dataclass(frozen=True, slots=True)
class Interval:
    """A value's need: `size` bytes from instruction `first`, which writes it, to `last`, which reads it last;
    instructions count from 0.
    """

    size: int
    first: int
    last: int


@dataclass(slots=True)
class MemoryReport:
    """What a program keeps in its arena, all sizes in bytes; its text is a table of the blocks.

    `peak`: the arena; `lower_bound`: the largest sum alive at one time, which no arrangement can beat;
    `values`: (name, bytes, offset, first and last instruction, counted from 0) of each block, in order of the
    first; `in_place`: how many results took an input's place; `recomputed`: how many values are computed
    twice, so that they need no memory in between. Arguments, results and Parameters are not in the arena.
    """

    peak: int = 0
    lower_bound: int = 0
    in_place: int = 0
    recomputed: int = 0
    values: list[tuple[str, int, int, int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"arena {self.peak:,} bytes, lower bound {self.lower_bound:,}, {len(self.values)} blocks, "
            f"{self.in_place} results in place, {self.recomputed} computed twice",
            f"{'value':32} {'bytes':>14} {'offset':>14} {'from':>6} {'to':>6}",
        ]
        lines += [f"{n:32} {size:14,} {at:14,} {a:6} {b:6}" for n, size, at, a, b in self.values]
        return "\n".join(lines)


def plan_offsets(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """An offset for each interval, a multiple of `ALIGNMENT`, and the bytes of the arena: greedy by size."""
    return _C.plan_offsets(
        [hint_of(i.size) for i in intervals], [i.first for i in intervals], [i.last for i in intervals]
    )


def lower_bound(intervals: Sequence[Interval]) -> int:
    """The largest sum of bytes that are alive at one time, each size rounded up to `ALIGNMENT`."""
    return int(alive_bytes(intervals, 1 + max((i.last for i in intervals), default=0)).max())


def alive_bytes(intervals: Sequence[Interval], count: int) -> np.ndarray:
    """The sum of bytes that are alive at each of `count` positions."""
    changes = np.zeros(count + 1, np.int64)
    for i in intervals:
        size = -(-hint_of(i.size) // ALIGNMENT) * ALIGNMENT
        changes[i.first] += size
        changes[i.last + 1] -= size
    return changes[:count].cumsum()


@dataclass(frozen=True, slots=True)
class Placement:
    """Arena offsets of values in `offsets`. `values` have a place of their own, for `intervals`; the others
    lie where the one that `root` names lies."""

    values: list[Value]
    intervals: list[Interval]
    root: dict[Value, Value]
    offsets: dict[Value, int]

    def report(self, sizes: Sequence[int] | None = None, recomputed: int = 0) -> MemoryReport:
        """The report for the intervals' sizes, or for others in bytes."""
        intervals = self.intervals
        offsets = [self.offsets[v] for v in self.values]
        if sizes is not None:
            intervals = [Interval(n, i.first, i.last) for n, i in zip(sizes, intervals)]
            offsets, _ = plan_offsets(intervals)
        ends = [-(-(at + hint_of(i.size)) // ALIGNMENT) * ALIGNMENT for at, i in zip(offsets, intervals)]
        found = MemoryReport(max(ends, default=0), lower_bound(intervals), len(self.root), recomputed)
        for value, interval, offset in zip(self.values, intervals, offsets):
            name = f"{value.producer.op.name}.{value.producer.outputs.index(value)}" if value.producer else ""
            found.values.append((name, hint_of(interval.size), offset, interval.first, interval.last))
        found.values.sort(key=lambda row: row[3:])
        return found


def place(
    nodes: Sequence[Node],
    plans: Mapping[Node, _C.Plan | None],
    memory: Mapping[Value, Value],
    wanted: set[Value],
    together: Sequence[tuple[int, int]] = (),
) -> Placement:
    """Places of the values `wanted`, which are results of kernels among `nodes`, in this order.

    `memory`: the value whose memory a value shows, for views. `together`: nodes [begin, end) that may run at
    the same time: what one of them touches is alive during all of them, and none takes an input's place.
    """
    found, intervals, root = blocks(nodes, plans, memory, wanted, together)
    places = dict(zip(found, plan_offsets(intervals)[0]))
    places.update((value, places[first]) for value, first in root.items())
    return Placement(found, intervals, root, places)


def blocks(
    nodes: Sequence[Node],
    plans: Mapping[Node, _C.Plan | None],
    memory: Mapping[Value, Value],
    wanted: set[Value],
    together: Sequence[tuple[int, int]] = (),
) -> tuple[list[Value], list[Interval], dict[Value, Value]]:
    """The values that get a place of their own, what each needs, and for each of the others the value that
    lay in its place first.
    """
    starts, ends_at = list(range(len(nodes))), list(range(len(nodes)))
    for begin, end in together:
        starts[begin:end] = [begin] * (end - begin)
        ends_at[begin:end] = [end - 1] * (end - begin)
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for position, node in enumerate(nodes):
        for value in node.outputs:
            first.setdefault(memory.get(value, value), starts[position])
        for value in (*node.inputs, *node.outputs):
            if value is not None:
                last[memory.get(value, value)] = ends_at[position]
    block: dict[Value, Value] = {}  # a value that took another's place -> the first one there
    ends: dict[Value, int] = {}
    for position, node in enumerate(nodes):
        for value in node.outputs:
            if value in wanted:
                ends[value] = last[value]
        alone = starts[position] == ends_at[position]
        taken = _place_to_take(node, plans.get(node), position, memory, wanted, last) if alone else None
        if taken is not None:
            root = block[node.outputs[0]] = block.get(taken, taken)
            ends[root] = last[node.outputs[0]]
    found = [v for v in ends if v not in block]
    return found, [Interval(v.type.nbytes, first[v], ends[v]) for v in found], block


def _place_to_take(
    node: Node,
    plan: _C.Plan | None,
    position: int,
    memory: Mapping[Value, Value],
    wanted: set[Value],
    last: Mapping[Value, int],
) -> Value | None:
    """The value in the arena whose place the first result of `node` may take."""
    if plan is None or plan.kind != 0 or not plan.flags & _IN_PLACE or node.op.definition.updates:
        return None
    made = node.outputs[0]
    if made not in wanted:
        return None
    roots: dict[Value, list[Value]] = {}
    for value in node.inputs:
        if value is not None:
            roots.setdefault(memory.get(value, value), []).append(value)
    for root, values in roots.items():
        if root in wanted and last[root] == position and all(v.type == made.type for v in values):
            return root
    return None
