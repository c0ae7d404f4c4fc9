"""Two graphs as one: what both have stands there once; nodes tell whether one alone has them or they differ.

Operators are matched scope by scope and type by type, in their order, since their numbers change with what is
added before them; parameters, constants and outputs by their names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator
from difflib import SequenceMatcher

import numpy as np

from mycelia_insight.records.graph import Leaf, ScopeGraph

#: What a node can be: alike in both, in both but not alike, only in the first, only in the second.
STATES = ("same", "changed", "left", "right")
_SAME, _CHANGED, _LEFT, _RIGHT = range(4)
_ALIGNED = 2000  # operators of one type in a scope that are aligned; more are taken one after the other
_UNSEEN = ("source", "operator")  # attributes that say where a node was written, not what it does


@dataclasses.dataclass(frozen=True)
class Change:
    """What differs between two nodes that belong together; a side is "" where it has none.

    what: "type", "output", "inputs", or the name of an attribute.
    """

    what: str
    left: str
    right: str


class GraphDifference:
    """`left` and `right` in one ScopeGraph, `graph`, whose leaves have a state each, an index of STATES."""

    def __init__(self, left: ScopeGraph, right: ScopeGraph):
        self._left, self._right = left.leaves, right.leaves
        partner = _matched(self._left, self._right)
        #: Of each leaf of the whole: its numbers in the two graphs, -1 where one does not have it.
        pairs = [(at, partner.get(at, -1)) for at in range(len(self._left))]
        taken = set(partner.values())
        pairs += [(-1, at) for at in range(len(self._right)) if at not in taken]
        self._pairs = pairs
        self._of_left = {a: number for number, (a, _) in enumerate(pairs) if a >= 0}
        self._of_right = {b: number for number, (_, b) in enumerate(pairs) if b >= 0}
        leaves, sides = [], []
        for a, b in pairs:
            mine = [(self._of_left[end], order) for end, order in self._left[a].inputs] if a >= 0 else []
            its = [(self._of_right[end], order) for end, order in self._right[b].inputs] if b >= 0 else []
            ends = list(dict.fromkeys([*its, *mine]))
            had, has = set(mine), set(its)
            sides += [(end in had) | (end in has) << 1 for end in ends]
            leaves.append(dataclasses.replace(self._right[b] if b >= 0 else self._left[a], inputs=ends))
        self.graph = ScopeGraph(right.name or left.name, leaves, np.array(sides, np.int64))
        self.states = np.array([self._state(number) for number in range(len(pairs))], np.int64)
        order = self.states[self.graph.order]
        #: How many leaves of each state come before a place.
        self._before = np.zeros((len(STATES), len(pairs) + 1), np.int64)
        for state in range(len(STATES)):
            np.cumsum(order == state, out=self._before[state, 1:])

    def counts(self, number: int = 0) -> dict[str, int]:
        """How many leaves of a branch are in each state; of all without a number."""
        branch = self.graph.branches[number]
        found = self._before[:, branch.end] - self._before[:, branch.begin]
        return {name: int(count) for name, count in zip(STATES, found, strict=True)}

    def differing(self, most: int) -> tuple[list[int], int]:
        """(branches of leaves that are not alike, in the order of the tree; how many there are)."""
        places = np.flatnonzero(self.states[self.graph.order] != _SAME)
        leaves = self.graph.order[places[:most]]
        return [int(self.graph.branch_of_leaf[leaf]) for leaf in leaves], len(places)

    def state(self, number: int) -> str:
        """Which of STATES a leaf is in, or all leaves of a branch are; "changed" for several ones."""
        found = [name for name, count in self.counts(number).items() if count]
        return found[0] if len(found) == 1 else "changed"

    def changes(self, number: int) -> list[Change]:
        """What differs of the leaf that a branch is, empty for others and for those that one graph has."""
        at = self.graph.leaf_number(number)
        if at is None or self.states[at] != _CHANGED:
            return []
        a, b = self._pairs[at]
        return list(self._changes(self._left[a], self._right[b]))

    def _state(self, number: int) -> int:
        a, b = self._pairs[number]
        if a < 0 or b < 0:
            return _RIGHT if a < 0 else _LEFT
        return _CHANGED if next(self._changes(self._left[a], self._right[b]), None) else _SAME

    def _changes(self, a: Leaf, b: Leaf) -> Iterator[Change]:
        if a.type != b.type:
            yield Change("type", a.type, b.type)
        if a.type_of() != b.type_of():
            yield Change("output", _written(a), _written(b))
        mine = [(self._of_left[end], order) for end, order in a.inputs]
        if mine != [(self._of_right[end], order) for end, order in b.inputs]:
            yield Change(
                "inputs",
                ", ".join(self._left[end].name for end, _ in a.inputs),
                ", ".join(self._right[end].name for end, _ in b.inputs),
            )
        before, after = a.attributes(), b.attributes()
        for name in dict.fromkeys([*before, *after]):
            if name not in _UNSEEN and before.get(name) != after.get(name):
                yield Change(name, before.get(name, ""), after.get(name, ""))


def _written(leaf: Leaf) -> str:
    dtype, shape = leaf.type_of()
    return dtype + (f"[{', '.join('?' if n < 0 else str(n) for n in shape)}]" if shape is not None else "")


def _matched(left: list[Leaf], right: list[Leaf]) -> dict[int, int]:
    """Which leaf of `right` a leaf of `left` is."""
    found: dict[int, int] = {}
    groups: list[dict[Hashable, list[int]]] = []
    for leaves in (left, right):
        groups.append({})
        for number, leaf in enumerate(leaves):
            key = (leaf.scope, leaf.type) if leaf.kind == "operator" else (leaf.kind, leaf.name)
            groups[-1].setdefault(key, []).append(number)
    for key, mine in groups[0].items():
        its = groups[1].get(key, [])
        found.update(_aligned(mine, its, [_look(left[n]) for n in mine], [_look(right[n]) for n in its]))
    return found


def _look(leaf: Leaf) -> Hashable:
    """What a node is by itself, whatever its name."""
    attributes = leaf.attributes()
    return leaf.type_of(), len(leaf.inputs), tuple((k, v) for k, v in attributes.items() if k not in _UNSEEN)


def _aligned(
    mine: list[int], its: list[int], a: list[Hashable], b: list[Hashable]
) -> Iterator[tuple[int, int]]:
    """Pairs in their order: those that look alike, and between them one after the other."""
    if a == b or len(a) + len(b) > _ALIGNED:
        yield from zip(mine, its, strict=False)
        return
    for _, i, to_i, j, to_j in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        yield from zip(mine[i:to_i], its[j:to_j], strict=False)
