"""A computation graph as scopes that fold: what is seen when some of them are open, search, one node.

The leaves are numbered in the order of the tree of scopes, so that what a folded scope stands for is a
range, and edges between what is seen are found in arrays, at any number of nodes.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from mycelia_insight.records.graph_outputs import Outputs

SIBLINGS = 5  # so many leaves of one type in a scope are shown as one
WINDOW = 400  # children of a scope that are shown at once; more are shown in parts
_DEEPEST = 100  # levels of scopes; what is deeper keeps the rest of its path as its name

_NUMBER = re.compile(r"(?:bool|bfloat16|(?:int|uint|float|complex)(\d+))")
End = tuple[int, bool]  # the number of a leaf, and whether it only decides the order
Typed = tuple[str, tuple[int, ...] | None]  # dtype and shape


def _untyped() -> Typed:
    return "", None


@dataclass(slots=True)
class Leaf:
    """An operator, a parameter or a constant.

    name: unique, the path of its scopes in front. type_of: computes, when it is asked, dtype and shape of its
    output, () of a number, None of what is no tensor, -1 where a size is not known before it runs.
    """

    name: str
    type: str
    scope: str
    kind: str = "operator"  # or "parameter", "constant", "output"
    inputs: list[End] = field(default_factory=list)
    type_of: Callable[[], Typed] = _untyped
    attributes: Callable[[], dict[str, str]] = dict
    source: str = ""  # file:line

    @property
    def dtype(self) -> str:
        return self.type_of()[0]

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.type_of()[1]

    @property
    def output_bytes(self) -> int | None:
        """Of the output; None where dtype or a size is not known, or it is no tensor of numbers."""
        dtype, shape = self.type_of()
        kind = _NUMBER.fullmatch(dtype)
        if kind is None or shape is None or any(n < 0 for n in shape):
            return None
        bits = 8 if dtype == "bool" else 16 if dtype == "bfloat16" else int(kind[1])
        return math.prod(shape) * bits // 8

    @property
    def is_dynamic(self) -> bool:
        return any(n < 0 for n in self.shape or ())


@dataclass(slots=True)
class Branch:
    """What can be shown as one: a scope, an aggregation, a part of a long list, or a leaf."""

    name: str
    label: str
    kind: str  # "scope", "aggregation", "part", or that of the leaf
    type: str
    parent: int  # -1: the root
    children: list[int] = field(default_factory=list)
    begin: int = 0  # its leaves, by their places
    end: int = 0


class ScopeGraph:
    """A graph below its root scope, branch 0.

    sides: of each input of each leaf, for two graphs as one: 1 the first has it, 2 the second, 3 both.
    """

    def __init__(self, name: str, leaves: list[Leaf], sides: np.ndarray | None = None):
        self.name, self.leaves, self.sides = name, leaves, sides
        self.branches: list[Branch] = [Branch("", name, "scope", "scope", -1)]
        self.branch_of_leaf = np.zeros(len(leaves), np.int64)
        self._plant()
        self._by_name = {branch.name: number for number, branch in enumerate(self.branches)}
        self._number()
        ends = [(source, number, control) for number, leaf in enumerate(leaves)
                for source, control in leaf.inputs]  # fmt: skip
        table = np.array(ends, np.int64).reshape(-1, 3)
        self._sources, self._targets, self._control = table[:, 0], table[:, 1], table[:, 2] != 0

    def _plant(self) -> None:
        scopes: dict[tuple[int, str], int] = {}
        paths: dict[str, int] = {}
        content: dict[int, list[int]] = {0: []}
        leaf_of: dict[int, int] = {}

        def grown(branch: Branch) -> int:
            self.branches.append(branch)
            return len(self.branches) - 1

        for leaf in self.leaves:
            if leaf.scope not in paths:
                at = 0
                for part in [p for p in leaf.scope.split("/") if p][:_DEEPEST]:
                    inner = scopes.get((at, part))
                    if inner is None:
                        above = self.branches[at].name
                        inner = scopes[at, part] = grown(
                            Branch(f"{above}/{part}" if above else part, part, "scope", "scope", at)
                        )
                        content[inner] = []
                        content[at].append(inner)
                    at = inner
                paths[leaf.scope] = at
        used = {branch.name for branch in self.branches}
        for number, leaf in enumerate(self.leaves):
            at = paths[leaf.scope]
            while leaf.name in used:  # TensorFlow has nodes that are called like a scope
                leaf.name += " (node)"
            used.add(leaf.name)
            above = self.branches[at].name
            label = leaf.name[len(above) + 1 :] if above and leaf.name.startswith(above + "/") else leaf.name
            made = grown(Branch(leaf.name, label, leaf.kind, leaf.type, at))
            leaf_of[made] = number
            content[at].append(made)
        for scope, inside in content.items():
            self._arrange(scope, inside, leaf_of, used)
        self._leaf_of = leaf_of

    def _arrange(self, scope: int, inside: list[int], leaf_of: dict[int, int], used: set[str]) -> None:
        """Children of a scope: siblings of one type as one, long lists in parts."""
        alike: dict[tuple[str, str], list[int]] = {}
        for child in inside:
            if child in leaf_of:
                alike.setdefault((self.branches[child].kind, self.branches[child].type), []).append(child)
        gathered: dict[int, int] = {}
        for (_, kind), members in alike.items():
            if SIBLINGS <= len(members) < len(inside):
                one = self._gather(scope, f"{kind}[{len(members)}]", "aggregation", kind, members, used)
                gathered.update(dict.fromkeys(members, one))
                self._parted(one, members, used)
        shown = list(dict.fromkeys(gathered.get(child, child) for child in inside))
        self._parted(scope, shown, used)

    def _parted(self, owner: int, members: list[int], used: set[str]) -> None:
        while len(members) > WINDOW:
            parts = []
            for begin in range(0, len(members), WINDOW):
                some = members[begin : begin + WINDOW]
                label = f"{begin + 1}–{begin + len(some)}"
                part = self._gather(owner, label, "part", "part", some, used)
                self.branches[part].children = some
                parts.append(part)
            members = parts
        self.branches[owner].children = members
        for child in members:
            self.branches[child].parent = owner

    def _gather(
        self, owner: int, label: str, kind: str, type: str, members: list[int], used: set[str]
    ) -> int:
        above = self.branches[owner].name
        count = 0
        while (name := f"{above}/{label}_{count}" if above else f"{label}_{count}") in used:
            count += 1
        used.add(name)
        self.branches.append(Branch(name, f"{label}_{count}", kind, type, owner))
        one = len(self.branches) - 1
        for member in members:
            self.branches[member].parent = one
        return one

    def _number(self) -> None:
        #: The leaf at each place of the tree.
        self.order = np.zeros(len(self.leaves), np.int64)
        self._place = np.zeros(len(self.leaves), np.int64)  # leaf -> place
        place, stack = 0, [(0, False)]
        while stack:
            number, done = stack.pop()
            branch = self.branches[number]
            if done:
                branch.end = place
                continue
            branch.begin = place
            if number in self._leaf_of:
                leaf = self._leaf_of[number]
                self.order[place], self._place[leaf] = leaf, place
                self.branch_of_leaf[leaf] = number
                place += 1
                branch.end = place
                continue
            stack.append((number, True))
            stack += [(child, False) for child in reversed(branch.children)]

    def find(self, name: str) -> int | None:
        """The number of a branch, the root for ""."""
        return self._by_name.get(name)

    def leaf(self, number: int) -> Leaf | None:
        """The leaf that a branch is."""
        at = self._leaf_of.get(number)
        return None if at is None else self.leaves[at]

    def leaf_number(self, number: int) -> int | None:
        """Which of the leaves a branch is."""
        return self._leaf_of.get(number)

    @functools.cached_property
    def outputs(self) -> Outputs:
        """Bytes and dtypes of what the nodes give."""
        return Outputs(self)

    def path(self, number: int) -> list[str]:
        """Names of what a branch lies in, the outermost first, without the root."""
        names = []
        while (number := self.branches[number].parent) > 0:
            names.append(self.branches[number].name)
        return names[::-1]

    def view(self, opened: Iterable[str]) -> tuple[list[int], list[dict]]:
        """(branches that are seen, in the order of the tree; edges between those that are not open).

        An edge has the numbers of its ends, how many it stands for, whether all of them only decide the
        order, one of its sources, and which of two graphs have one of them (`sides`, 3 without two). An open
        branch whose scopes are not open is not seen.
        """
        wanted = {number for name in opened if (number := self._by_name.get(name)) is not None} | {0}
        seen, shown, stack = [], np.zeros(len(self.leaves), np.int64), [0]
        while stack:
            number = stack.pop()
            branch = self.branches[number]
            if number:
                seen.append(number)
            if number in wanted and branch.children:
                stack += reversed(branch.children)
            else:
                shown[self.order[branch.begin : branch.end]] = number
        return seen, self._between(shown)

    def _between(self, shown: np.ndarray) -> list[dict]:
        ends = np.stack([shown[self._sources], shown[self._targets]], 1)
        outer = np.flatnonzero(ends[:, 0] != ends[:, 1])
        if not len(outer):
            return []
        pairs, first, which, counts = np.unique(
            ends[outer], axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        data = np.bincount(which.reshape(-1), weights=~self._control[outer], minlength=len(pairs))
        sides = np.full(len(pairs), 3 if self.sides is None else 0, np.int64)
        if self.sides is not None:
            np.bitwise_or.at(sides, which.reshape(-1), self.sides[outer])
        return [
            {"from": int(a), "to": int(b), "count": int(count), "control": not some, "leaf": int(leaf),
             "sides": int(side)}
            for (a, b), count, some, leaf, side in zip(
                pairs, counts, data, self._sources[outer[first]], sides, strict=True
            )
        ]  # fmt: skip

    def neighbours(self, number: int, most: int = 1000) -> tuple[list[End], list[End]]:
        """(leaves that a branch takes from, leaves that take from it)."""
        branch = self.branches[number]

        def outside(ends: np.ndarray, others: np.ndarray) -> list[End]:
            places = self._place[ends]
            mine = (places >= branch.begin) & (places < branch.end)
            far = self._place[others]
            mine &= (far < branch.begin) | (far >= branch.end)
            found = dict.fromkeys(zip(others[mine].tolist(), self._control[mine].tolist(), strict=True))
            return list(found)[:most]

        return outside(self._targets, self._sources), outside(self._sources, self._targets)

    def search(self, text: str, most: int = 1000) -> tuple[list[int], int]:
        """(branches whose names have `text` in them, whatever the case; how many there are)."""
        wanted = text.lower()
        found = [
            number for number, branch in enumerate(self.branches)
            if number and branch.kind != "part" and wanted in branch.name.rpartition("/")[2].lower()
        ]  # fmt: skip
        if not found:
            found = [n for n, branch in enumerate(self.branches) if n and wanted in branch.name.lower()]
        return found[:most], len(found)
