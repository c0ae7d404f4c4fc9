"""Transposes moved through operators that work in any order of the axes, where that leaves fewer of them.

Nodes that hang together and do not mind the order are a region. Behind a Transpose it works in the order
before that: Transposes of that order in front of it and inverse ones behind it go, and one stands at each
other border.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import graph_fusion
from mycelia_lite.converter.optimise.shapes import order_of
from mycelia_lite.converter.optimise.slices import read_slice, write_slice
from mycelia_lite.format import Table

_OF_ONE = {
    "Abs", "Activation", "Cast", "Ceil", "Clip", "Cos", "Erf", "ExpFusion", "Floor", "Log", "Neg",
    "Reciprocal", "Round", "Rsqrt", "Sin", "Sqrt", "Square",
}  # fmt: skip
_OF_TWO = {
    "AddFusion", "SubFusion", "MulFusion", "DivFusion", "RealDiv", "Maximum", "Minimum", "SquaredDifference",
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual",
}  # fmt: skip
_ALONG = {"Concat", "Split", "Softmax", "LogSoftmax", "ReduceFusion", "PadFusion", "StridedSlice"}


def _data(node: FileNode) -> list[int]:
    """The inputs whose axes are those of the results."""
    if node.kind == "Concat":
        return node.inputs
    return node.inputs[: 2 if node.kind in _OF_TWO else 1]


def _may_be_turned(graph: FileGraph, node: FileNode, rank: int) -> bool:
    """Whether a node does the same to axes in another order."""
    if node.kind not in _OF_ONE | _OF_TWO | _ALONG:
        return False
    if any(graph.rank(t) != rank for t in node.outputs):
        return False
    if node.kind == "Clip" and len(node.inputs) > 1:
        return False
    for tensor in _data(node):
        small = graph.constant(tensor) is not None and node.kind in _OF_TWO
        if graph.rank(tensor) != rank and not (small and graph.rank(tensor) < rank):
            return False
    if node.kind == "ReduceFusion":
        known = node.op.keep_dims and not node.op.reduce_to_end and len(node.inputs) == 2
        return known and bool(graph.integers(node.inputs[1]))
    if node.kind == "PadFusion":
        return len(node.inputs) == 2 and graph.integers(node.inputs[1]) is not None
    return node.kind != "StridedSlice" or read_slice(graph, node) is not None


class _Region:
    """The nodes around a Transpose by `order`, and what happens at their border if they work before it."""

    def __init__(self, graph: FileGraph, seed: FileNode, order: Sequence[int]) -> None:
        self.graph, self.order = graph, list(order)
        self.inverse = [self.order.index(a) for a in range(len(order))]
        self.nodes: list[FileNode] = []
        self._grow([r for r in graph.readers.get(seed.output, ())])

    def _grow(self, work: list[FileNode]) -> None:
        seen: set[int] = set()
        while work:
            node = work.pop()
            if id(node) in seen or not _may_be_turned(self.graph, node, len(self.order)):
                continue
            seen.add(id(node))
            self.nodes.append(node)
            work += [r for t in node.outputs for r in self.graph.readers.get(t, ())]
            work += [m for t in _data(node) if (m := self.graph.maker.get(t)) is not None]
        place = {id(n): i for i, n in enumerate(self.graph.nodes)}
        self.nodes.sort(key=lambda n: place[id(n)])
        self.members = seen
        self.made = {t for n in self.nodes for t in n.outputs}

    def _turn(self, tensor: int, order: list[int]) -> FileNode | None:
        """The Transpose by `order` that makes a tensor."""
        made = self.graph.maker.get(tensor)
        return (
            made
            if made is not None and made.kind == "Transpose" and order_of(self.graph, made) == order
            else None
        )

    def _outside(self, tensor: int) -> bool:
        """Whether somebody needs a result in the old order."""
        if tensor in self.graph.pinned:
            return True
        return any(
            id(r) not in self.members and not self._is_inverse(r) for r in self.graph.readers.get(tensor, ())
        )

    def _is_inverse(self, node: FileNode) -> bool:
        """Whether a Transpose undoes the seed's, outside of the region."""
        if node.kind != "Transpose" or order_of(self.graph, node) != self.inverse:
            return False
        readers = self.graph.readers.get(node.output, ())
        return node.output not in self.graph.pinned and not any(id(r) in self.members for r in readers)

    def gain(self) -> int:
        """How many Transposes fewer there would be."""
        given = {
            t for n in self.nodes for t in _data(n) if t not in self.made and self.graph.constant(t) is None
        }
        turns = {t: self._turn(t, self.order) for t in given}
        gone = sum(
            t not in self.graph.pinned and all(id(r) in self.members for r in self.graph.readers[t])
            for t, turn in turns.items()
            if turn is not None
        )
        ends = {id(r) for t in self.made for r in self.graph.readers.get(t, ()) if self._is_inverse(r)}
        new = sum(turn is None for turn in turns.values()) + sum(map(self._outside, self.made))
        return gone + len(ends) - new

    def turn(self) -> None:
        """Let the nodes work in the order before the Transpose."""
        graph, now = self.graph, {}
        for node in self.nodes:
            inputs = [self._before(node, t, now) for t in _data(node)] + node.inputs[len(_data(node)) :]
            op, inputs = self._remapped(node, inputs)
            outputs = []
            for t in node.outputs:
                shape = graph.shape(t)
                outputs.append(graph.add_tensor(graph.tensors[t].name, t, [shape[i] for i in self.inverse]))
                now[t] = outputs[-1]
            outside = [t for t in node.outputs if self._outside(t)]
            graph.rebuild(node, op, inputs, outputs)
            for t in outside:
                graph.make(t, Table("Transpose"), [now[t], self._constant(node, self.order)], after=now[t])
        for old, new in ((t, now[t]) for t in sorted(self.made)):  # not what was turned on the way in
            for reader in list(graph.readers.get(old, ())):
                if self._is_inverse(reader):
                    graph.bypass(reader, new)
        graph.drop_unused()

    def _constant(self, node: FileNode, order: Sequence[int]) -> int:
        return self.graph.add_constant(np.asarray(order, np.int32), f"{node.name}/order")

    def _before(self, node: FileNode, tensor: int, now: dict[int, int]) -> int:
        """An input in the order before the Transpose."""
        graph = self.graph
        if tensor in now:
            return now[tensor]
        array = graph.constant(tensor)
        if array is not None:
            if array.size == 1 and array.ndim < len(self.order):
                return tensor
            array = array.reshape((1,) * (len(self.order) - array.ndim) + array.shape)
            return graph.add_constant(array.transpose(self.inverse), graph.tensors[tensor].name)
        turn = self._turn(tensor, self.order)
        if turn is None:
            shape = graph.shape(tensor)
            inputs = [tensor, self._constant(node, self.inverse)]
            now[tensor] = graph.insert(node, Table("Transpose"), inputs, [shape[i] for i in self.inverse])
        else:
            now[tensor] = turn.inputs[0]
        return now[tensor]

    def _remapped(self, node: FileNode, inputs: list[int]) -> tuple[Table, list[int]]:
        """The operator on axes in the order before the Transpose."""
        op, rank, order = node.op.copy(), len(self.order), self.order
        if node.kind in ("Concat", "Split", "LogSoftmax"):
            op.axis = order[op.axis % rank]
        elif node.kind == "Softmax":
            op.axis = [order[a % rank] for a in op.axis]
        elif node.kind == "ReduceFusion":
            axes = sorted(order[a % rank] for a in self.graph.integers(inputs[1]))
            inputs[1] = self.graph.add_constant(np.asarray(axes, np.int32), f"{node.name}/axes")
        elif node.kind == "PadFusion":
            rows = np.asarray(self.graph.integers(inputs[1]), np.int32).reshape(rank, 2)
            inputs[1] = self.graph.add_constant(rows[self.inverse], f"{node.name}/paddings")
        elif node.kind == "StridedSlice":
            cut, whole = read_slice(self.graph, node), self.graph.shape(node.inputs[0])
            turned = ([v[i] for i in self.inverse] for v in (whole, cut))
            op, inputs = write_slice(self.graph, inputs[0], *turned, node.name)
        return op, inputs


@graph_fusion("TransposeFusion")
def fewer_transposes(graph: FileGraph) -> int:
    """Transposes that meet their inverses through nodes that work in any order -> gone"""
    fired = 0
    for node in [n for n in graph.nodes if n.kind == "Transpose"]:
        order = order_of(graph, node)
        if graph.maker.get(node.output) is not node or order is None or order == sorted(order):
            continue
        region = _Region(graph, node, order)
        if region.nodes and region.gain() > 0:
            region.turn()
            fired += 1
    return fired
