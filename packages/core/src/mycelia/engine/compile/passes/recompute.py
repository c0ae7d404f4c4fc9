"""Values that are computed twice, so that they need no memory in between.

What follows from other values by little work, and is read again only after the moment when most memory is in
use, is let go after its last reader before that moment and computed once more before the next: in a training
step the activations behind normalizations, whose inputs the gradients keep anyway. The clone runs the same
kernel on the same bytes, so its bits are the same. It reads nothing that would be kept for its sake alone;
what draws random numbers or runs Python code has none, and running statistics that the kernel of a
normalization moves as well go to a place that nobody reads.

How much work that may be is limited, and the values that save most for theirs come first: Jain et al. 2020,
"Checkmate", have the problem whole; near the budget here, a greedy choice leaves little on the table.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mycelia.engine import _C
from mycelia.engine.compile import memory
from mycelia.engine.compile.cost_model import nanoseconds
from mycelia.engine.compile.draft import Draft, view_bases
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ops.lowered.fused_steps import is_light

_VIEW = 1  # kind of a Plan
_LEAST_PEAK = 64 << 20  # bytes: a step that needs less is quicker than what it takes to find clones
_LEAST_SIZE = 1 << 20  # bytes of a value that is worth it
_LEAST_FALL = 0.02  # of the peak
_BUDGET = 0.02  # of the time of all nodes

# Elementwise, at most a few operations an element.
_LIGHT = frozenset("add sub mul neg abs square maximum minimum relu relu6 leaky_relu".split())
# Normalizations: which of their own results stand in for the running statistics, which only results without
# a reader depend on.
_STAND_INS = {"batch_norm_train": {0: 3, 1: 4}, "batch_norm_act_train": {0: 3, 1: 4}}


@dataclass(slots=True)
class _Clone:
    """`value` is let go after position `end` and is there again before position `begin`."""

    value: Value
    end: int
    begin: int


def run(graph: Graph, draft: Draft) -> int:
    """Returns how many values are computed twice."""
    base = view_bases(graph.nodes, draft.plans)
    overwritten = {p: u for u, p in draft.updates if u in draft.in_place}
    with draft.estimating():
        in_arena = draft.in_arena(graph.nodes, base)
        order, clones = arrange(graph.nodes, draft.plans, base, in_arena, overwritten)
    draft.plans.update((clone, draft.plans[node]) for clone, node in clones.items())
    draft.clones.extend(clones)
    graph.nodes = order
    return len(clones)


def arrange(
    nodes: Sequence[Node],
    plans: Mapping[Node, _C.Plan | None],
    base: Mapping[Value, Value],
    wanted: set[Value],
    overwritten: Mapping[Value, Value],
) -> tuple[list[Node], dict[Node, Node]]:
    """The order with the clones in it, and the node whose clone each of them is.

    `base`: the value whose memory a value shows, for views; `wanted`: values in the arena; `overwritten`:
    parameter -> the new value that is written there. Readers of what a clone gives are changed.
    """
    if sum(v.type.nbytes for v in wanted) < _LEAST_PEAK:
        return list(nodes), {}
    search = _Search(nodes, plans, base, wanted, overwritten)
    chosen = search.choose()
    return _Writer(nodes, chosen).write() if chosen else (list(nodes), {})


class _Search:
    """What lies in the arena when, and which clones lower the peak."""

    def __init__(
        self,
        nodes: Sequence[Node],
        plans: Mapping[Node, _C.Plan | None],
        base: Mapping[Value, Value],
        wanted: set[Value],
        overwritten: Mapping[Value, Value],
    ) -> None:
        self.base, self.wanted = base, wanted
        self.position = {node: i for i, node in enumerate(nodes)}
        self.uses: dict[Value, list[int]] = {}  # by value, views apart
        self.last: dict[Value, int] = {}  # views together with what they show
        for i, node in enumerate(nodes):
            for value in dict.fromkeys(node.inputs):
                if value is not None:
                    self.uses.setdefault(value, []).append(i)
                    self.last[base.get(value, value)] = i
        self.until = {p: self.position[v.producer] for p, v in overwritten.items()}
        self.in_place = set(overwritten.values())
        self.clones: dict[Value, _Clone] = {}
        viewed = set(base.values())
        self.price = {
            v: nanoseconds(node)
            for node in nodes
            if (plan := plans.get(node)) is not None and plan.kind != _VIEW and _is_light(node)
            for v in node.outputs
            if v in wanted and v not in viewed and v.type.nbytes >= _LEAST_SIZE and v not in _inputs(node)
        }
        if self.price:
            self.alive = memory.alive_bytes(memory.blocks(nodes, plans, base, wanted)[1], len(nodes))
            self.budget = _BUDGET * sum(nanoseconds(node) or 0.0 for node in nodes)

    def choose(self) -> list[_Clone]:
        """The clones up to the lowest peak within the budget."""
        if not self.price:
            return []
        first = lowest = int(self.alive.max())
        if first < _LEAST_PEAK:
            return []
        chosen: list[_Clone] = []
        worth = 0
        while (clone := self.next()) is not None:
            chosen.append(clone)
            node = clone.value.producer
            self.clones[clone.value] = clone
            self.budget -= self.price.pop(clone.value)
            self.alive[clone.end + 1 : clone.begin] -= clone.value.type.nbytes
            for value in _inputs(node):
                uses = self.uses.setdefault(value, [])
                uses.insert(bisect(uses, clone.begin), clone.begin)
            peak = int(self.alive.max())
            if peak < lowest:
                lowest, worth = peak, len(chosen)
        return chosen[:worth] if first - lowest >= _LEAST_FALL * first else []

    def next(self) -> _Clone | None:
        """The clone that takes most from the peak for its price."""
        peak = int(self.alive.argmax())
        best, most = None, (0.0, 0)
        for value, price in self.price.items():
            if price > self.budget:
                continue
            uses = self.uses.get(value, ())
            after = bisect(uses, peak)
            if after == len(uses):
                continue
            begin, made = uses[after], self.position[value.producer]
            end = uses[after - 1] if after else made
            gain = value.type.nbytes / price, end
            if made <= end < peak < begin and gain > most:
                if all(self.is_there(v, begin) for v in _inputs(value.producer)):
                    best, most = _Clone(value, end, begin), gain
        return best

    def is_there(self, value: Value, position: int) -> bool:
        """Whether `value` can be read right before `position` without being kept for that."""
        root = self.base.get(value, value)
        if root.is_constant or root.producer is None:
            return position <= self.until.get(root, position)
        if root in self.in_place or self.last.get(root, -1) < position:
            return False
        clone = self.clones.get(root)
        return clone is None or value is root and not clone.end < position < clone.begin


def _is_light(node: Node) -> bool:
    name = node.op.name
    return name in _LIGHT or name in _STAND_INS or (name == "fused_map" and is_light(node.attrs["code"]))


def _inputs(node: Node) -> list[Value]:
    """What the clone of `node` reads."""
    stand_ins = _STAND_INS.get(node.op.name, {})
    return [
        node.outputs[stand_ins[i]] if i in stand_ins else v
        for i, v in enumerate(node.inputs)
        if v is not None
    ]


class _Writer:
    """Puts the clones into the order."""

    def __init__(self, nodes: Sequence[Node], chosen: Sequence[_Clone]) -> None:
        self.nodes = nodes
        self.clones = {clone.value: clone for clone in chosen}
        self.made: dict[Value, Value] = {}  # a value -> what its clone gives
        self.copies: dict[Node, Node] = {}

    def write(self) -> tuple[list[Node], dict[Node, Node]]:
        due: dict[int, list[_Clone]] = {}
        for clone in self.clones.values():
            due.setdefault(clone.begin, []).append(clone)
        order: list[Node] = []
        for position, node in enumerate(self.nodes):
            for clone in due.get(position, ()):
                self.emit(clone, position, order)
            node.inputs = [self.present(v, position, order) for v in node.inputs]
            order.append(node)
        return order, self.copies

    def present(self, value: Value | None, position: int, order: list[Node]) -> Value | None:
        """What holds `value` at `position`."""
        clone = self.clones.get(value)
        if clone is None or position < clone.begin:
            return value
        self.emit(clone, position, order)
        return self.made[value]

    def emit(self, clone: _Clone, position: int, order: list[Node]) -> None:
        if clone.value in self.made:
            return
        node = clone.value.producer
        stand_ins = _STAND_INS.get(node.op.name, {})
        inputs = [
            self.present(node.outputs[stand_ins[i]] if i in stand_ins else v, position, order)
            for i, v in enumerate(node.inputs)
        ]
        again = Node(node.op, inputs, node.attrs, [v.type for v in node.outputs], node.location)
        self.made[clone.value] = again.outputs[node.outputs.index(clone.value)]
        self.made[clone.value].name = clone.value.name
        self.copies[again] = node
        order.append(again)
