"""Patterns over the nodes of a file: trees of operators, which a rule names and gets back.

    Op("MulFusion", X, Op("Activation", X, activation_type="SIGMOID"))

matches ``x * sigmoid(x)`` in either order. The same name twice must be the same tensor, or equal small
constants. What stands inside of a match must be read by the match alone, unless `shared`, so that nothing is
computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode

_COMMUTE = {"AddFusion", "MulFusion", "Maximum", "Minimum"}


class Any:
    """Every tensor, under a name; `test(graph, tensor)` narrows it."""

    def __init__(self, name: str, test: Callable[[FileGraph, int], bool] | None = None) -> None:
        self.name, self.test = name, test


class Constant(Any):
    """A float32 constant."""

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda graph, tensor: graph.float_constant(tensor) is not None)


class Number:
    """A constant whose elements all are this number: the float32 next to it, or one beside that."""

    def __init__(self, value: float, name: str = "") -> None:
        self.value, self.name = value, name

    def __call__(self, graph: FileGraph, tensor: int) -> bool:
        found = graph.number(tensor)
        if found is None or not graph.is_float(tensor):
            return False
        return abs(found - self.value) <= float(np.spacing(np.float32(abs(self.value))))


class Op:
    """The first result of a node of one of these kinds whose leading inputs match `operands`.

    Attributes given must be equal (enums by name); the activation that a node may end in must be absent if it
    is not given. `name` names the node. A number stands for a constant of that number.
    """

    def __init__(
        self,
        kinds: str | tuple[str, ...],
        *operands: Any | Op | Number | float,
        name: str = "",
        shared: bool = False,
        **attributes: object,
    ) -> None:
        self.kinds = (kinds,) if isinstance(kinds, str) else kinds
        self.operands = tuple(Number(p) if isinstance(p, (int, float)) else p for p in operands)
        self.name, self.shared, self.attributes = name, shared, attributes
        self.commutes = set(self.kinds) <= _COMMUTE and len(self.operands) == 2


@dataclass(frozen=True)
class Match:
    """What a pattern found: tensors and nodes by name, and all nodes, the root first."""

    tensors: dict[str, int] = field(default_factory=dict)
    named: dict[str, FileNode] = field(default_factory=dict)
    nodes: tuple[FileNode, ...] = ()
    private: frozenset[int] = frozenset()  # results that the match alone may read

    def __getitem__(self, name: str) -> int:
        return self.tensors[name]

    @property
    def root(self) -> FileNode:
        return self.nodes[0]

    @property
    def inner(self) -> tuple[FileNode, ...]:
        return self.nodes[:0:-1]


def match(graph: FileGraph, pattern: Op, root: FileNode) -> Iterator[Match]:
    """All ways in which `root` matches."""
    for found in _node(graph, pattern, root, Match()):
        if all(_is_private(graph, t, found) for t in found.private):
            yield found


def _is_private(graph: FileGraph, tensor: int, found: Match) -> bool:
    return tensor not in graph.pinned and all(r in found.nodes for r in graph.readers[tensor])


def _node(graph: FileGraph, pattern: Op, node: FileNode, found: Match) -> Iterator[Match]:
    if node.kind not in pattern.kinds or len(node.inputs) < len(pattern.operands):
        return
    if "activation_type" not in pattern.attributes and node.kind != "Activation":
        if node.activation != "NO_ACTIVATION":
            return
    for name, wanted in pattern.attributes.items():
        value = getattr(node.op, name)
        if (value.name if isinstance(value, IntEnum) else value) != wanted:
            return
    named = {**found.named, pattern.name: node} if pattern.name else found.named
    nodes = found.nodes if node in found.nodes else (*found.nodes, node)
    here = Match(found.tensors, named, nodes, found.private)
    orders = [node.inputs[: len(pattern.operands)]]
    if pattern.commutes:
        orders.append(orders[0][::-1])
    for order in orders:
        yield from _operands(graph, list(zip(pattern.operands, order)), here)


def _operands(graph: FileGraph, pairs: list, found: Match) -> Iterator[Match]:
    if not pairs:
        yield found
        return
    (pattern, tensor), *rest = pairs
    for step in _tensor(graph, pattern, tensor, found):
        yield from _operands(graph, rest, step)


def _tensor(graph: FileGraph, pattern: Any | Op | Number, tensor: int, found: Match) -> Iterator[Match]:
    if isinstance(pattern, Op):
        made = graph.maker.get(tensor)
        if made is None or made.output != tensor:
            return
        private = found.private if pattern.shared else found.private | {tensor}
        yield from _node(graph, pattern, made, Match(found.tensors, found.named, found.nodes, private))
        return
    if isinstance(pattern, Number):
        if pattern(graph, tensor):
            yield found
        return
    if pattern.name in found.tensors:
        if graph.same(found.tensors[pattern.name], tensor):
            yield found
        return
    if pattern.test is None or pattern.test(graph, tensor):
        tensors = {**found.tensors, pattern.name: tensor}
        yield Match(tensors, found.named, found.nodes, found.private)
