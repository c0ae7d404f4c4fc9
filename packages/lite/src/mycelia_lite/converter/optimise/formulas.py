"""The body of a loop as formulas, whatever operators spell them: sums of products by constant matrices, of
which rows are taken, under sigmoids and tangents; and the places that a run reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mycelia_lite.converter.optimise.graph import FileNode
from mycelia_lite.converter.optimise.loops import Loop, sizes
from mycelia_lite.converter.optimise.slices import read_slice


class NoCell(Exception):
    """The body computes something else."""


# ---- formulas


@dataclass(eq=False)
class Row:
    """What the loop reads of a sequence [T, B, I] in a run."""

    sequence: int


@dataclass(eq=False)
class State:
    """A value that a run gets from the one before."""

    parameter: int


@dataclass(eq=False)
class Apply:
    """A function of formulas: sigmoid, tanh, mul, add, complement (1 - x)."""

    name: str
    of: tuple


@dataclass(eq=False)
class Linear:
    """The sum of products of leaves by matrices [rows, depth], and a bias [rows]."""

    parts: dict[object, np.ndarray]
    bias: np.ndarray

    def rows(self, places: slice) -> Linear:
        return Linear({leaf: w[places] for leaf, w in self.parts.items()}, self.bias[places])

    def plus(self, other: Linear) -> Linear:
        if set(self.parts) & set(other.parts) or len(self.bias) != len(other.bias):
            raise NoCell
        return Linear(self.parts | other.parts, self.bias + other.bias)


@dataclass
class Body:
    """The formulas of a body, each made once; `claims`: (tensor, what it must be in run t), to be held."""

    loop: Loop
    claims: list[tuple[int, Callable[[int], object]]] = field(default_factory=list)
    made: dict[int, object] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    states: dict[int, State] = field(default_factory=dict)

    def formula(self, tensor: int) -> object:
        if tensor not in self.made:
            self.made[tensor] = self._read(tensor)
        return self.made[tensor]

    def state(self, parameter: int) -> State:
        return self.states.setdefault(parameter, State(parameter))

    def _read(self, tensor: int) -> object:
        loop, graph = self.loop, self.loop.body
        if tensor in loop.states:
            return self.state(tensor)
        node = graph.maker.get(tensor)
        if node is None or not graph.is_float(tensor):
            raise NoCell
        reader = _READERS.get(node.kind)
        if reader is None or (node.kind != "Activation" and node.activation != "NO_ACTIVATION"):
            raise NoCell
        return reader(self, node, tensor)

    def linear(self, tensor: int) -> Linear | None:
        found = self.formula(tensor)
        return found if isinstance(found, Linear) else None


def _row(body: Body, node: FileNode, tensor: int) -> Row:
    """A Gather of the row of this run"""
    loop, sequence = body.loop, node.inputs[0]
    if not loop.is_invariant(sequence) or loop.body.integers(node.inputs[2]) != [0]:
        raise NoCell
    if loop.body.rank(node.inputs[1]) or loop.body.rank(sequence) != 3:
        raise NoCell
    body.claims.append((node.inputs[1], lambda t: t))
    return body.rows.setdefault(sequence, Row(loop.first(sequence)))


def _product(body: Body, node: FileNode, tensor: int) -> Linear:
    weight = body.loop.constant(node.inputs[1])
    if weight is None or weight.ndim != 2:
        raise NoCell
    if node.kind == "MatMulFusion":
        if node.op.transpose_a:
            raise NoCell
        weight = weight if node.op.transpose_b else weight.T
    elif node.op.use_axis:
        raise NoCell
    bias = np.zeros(len(weight), np.float32)
    if len(node.inputs) > 2:
        bias = body.loop.constant(node.inputs[2])
        if bias is None or bias.shape != (len(weight),):
            raise NoCell
    return Linear(_leaves(body, node.inputs[0], weight), bias)


def _leaves(body: Body, tensor: int, weight: np.ndarray) -> dict[object, np.ndarray]:
    """The matrices of what is multiplied: a leaf, or several that are put side by side."""
    graph = body.loop.body
    if graph.rank(tensor) != 2:
        raise NoCell
    node = graph.maker.get(tensor)
    if node is not None and node.kind == "Concat" and node.op.axis % 2 == 1:
        found: dict[object, np.ndarray] = {}
        begin = 0
        for part in node.inputs:
            end = begin + graph.shape(part)[1]
            leaves = _leaves(body, part, weight[:, begin:end])
            if graph.shape(part)[1] < 0 or set(leaves) & set(found):
                raise NoCell
            found, begin = found | leaves, end
        return found
    if graph.shape(tensor)[1] != weight.shape[1]:
        raise NoCell
    return {body.formula(tensor): weight}


def _sum(body: Body, node: FileNode, tensor: int) -> object:
    graph = body.loop.body
    for one, other in (node.inputs, node.inputs[::-1]):
        bias = body.loop.constant(other)
        if bias is not None:
            term = body.linear(one)
            if (
                term is None
                or bias.size != len(term.bias)
                or bias.shape[-1:] != (bias.size,)
                or bias.ndim > 2
            ):
                raise NoCell
            return Linear(term.parts, term.bias + bias.reshape(-1))
    if graph.shape(node.inputs[0]) != graph.shape(node.inputs[1]):
        raise NoCell
    terms = [body.formula(i) for i in node.inputs]
    if all(isinstance(term, Linear) for term in terms):
        return terms[0].plus(terms[1])
    return Apply("add", tuple(terms))


def _product_of_elements(body: Body, node: FileNode, tensor: int) -> Apply:
    if body.loop.body.shape(node.inputs[0]) != body.loop.body.shape(node.inputs[1]):
        raise NoCell
    return Apply("mul", tuple(body.formula(i) for i in node.inputs))


def _complement(body: Body, node: FileNode, tensor: int) -> Apply:
    one = body.loop.constant(node.inputs[0])
    if one is None or one.size != 1 or one.item() != 1:
        raise NoCell
    return Apply("complement", (body.formula(node.inputs[1]),))


def _function(body: Body, node: FileNode, tensor: int) -> Apply:
    name = node.activation.lower()
    if name not in ("sigmoid", "tanh"):
        raise NoCell
    return Apply(name, (body.formula(node.inputs[0]),))


def _part(body: Body, node: FileNode, tensor: int) -> Linear:
    """One of the parts of a Split of the columns"""
    term, parts = body.linear(node.inputs[0]), list(node.op.size_splits)
    if term is None or node.op.axis % 2 != 1 or sum(parts) != len(term.bias) or min(parts) < 1:
        raise NoCell
    at = node.outputs.index(tensor)
    return term.rows(slice(sum(parts[:at]), sum(parts[: at + 1])))


def _columns(body: Body, node: FileNode, tensor: int) -> Linear:
    """A slice of columns, of all rows"""
    graph, term = body.loop.body, body.linear(node.inputs[0])
    cut = read_slice(graph, node)
    if cut is None:
        cut = _cut_of_open_rows(body, node)
    elif cut[0] != (0, 1, graph.shape(node.inputs[0])[0]):
        raise NoCell
    if term is None or len(cut) != 2 or cut[1][1] != 1 or cut[1][2] < 1:
        raise NoCell
    return term.rows(slice(cut[1][0], cut[1][0] + cut[1][2]))


def _cut_of_open_rows(body: Body, node: FileNode) -> list[tuple[int, int, int]]:
    """Of a StridedSlice of [B, N] with an open B, of which all rows are taken."""
    loop, graph = body.loop, body.loop.body
    op = node.op
    masks = (op.begin_mask, op.ellipsis_mask, op.new_axis_mask, op.shrink_axis_mask, op.end_mask & ~1)
    if node.kind != "StridedSlice" or len(node.inputs) != 4 or any(masks):
        raise NoCell
    begin, stride = graph.integers(node.inputs[1]), graph.integers(node.inputs[3])
    ends = sizes([(graph, loop), (loop.graph, None)], node.inputs[2])
    if begin is None or stride != [1, 1] or ends is None or len(ends) != 2 or begin[0] != 0:
        raise NoCell
    whole = bool(op.end_mask) or ends[0] == np.iinfo(np.int32).max or ends[0] == _batch(loop)
    last = ends[1]
    if not whole or not isinstance(last, int) or not 0 <= begin[1] < last <= graph.shape(node.inputs[0])[1]:
        raise NoCell
    return [(0, 1, -1), (begin[1], 1, last - begin[1])]


def _batch(loop: Loop) -> object:
    """The open number of rows of the states, by the tensor whose size it is; None if that is not known."""
    found = set()
    for state in loop.states:
        if loop.body.is_float(state) and loop.body.rank(state) == 2:
            made = loop.graph.maker.get(loop.first(state))
            if made is None or made.kind != "BroadcastTo":
                return None
            items = sizes([(loop.graph, None)], made.inputs[1])
            found.add(items[0] if items else None)
    return found.pop() if len(found) == 1 else None


_READERS: dict[str, Callable[[Body, FileNode, int], object]] = {
    "Gather": _row, "MatMulFusion": _product, "FullConnection": _product, "AddFusion": _sum, "BiasAdd": _sum,
    "MulFusion": _product_of_elements, "SubFusion": _complement, "Activation": _function, "Split": _part,
    "StridedSlice": _columns, "SliceFusion": _columns,
}  # fmt: skip


# ---- what the loop collects


def collected(body: Body, parameter: int, hidden: int) -> int:
    """How many rows a value has into which each run writes its state `hidden`, one behind the other, or the
    last one alone.
    """
    loop, graph = body.loop, body.loop.body
    shape = graph.shape(parameter)
    if len(shape) != 3 or shape[1:] != graph.shape(hidden) or shape[0] < 1:
        raise NoCell
    node = graph.maker.get(loop.next(parameter))
    while node is not None and node.kind == "Reshape" and _is_same(body, node, hidden):
        if graph.maker.get(node.inputs[0]) is None or node.inputs[0] == hidden:
            break
        node = graph.maker[node.inputs[0]]
    if node is None:
        raise NoCell
    if node.kind == "Where":
        _written_by_choice(body, node, parameter, hidden, shape[0])
    elif node.kind == "Concat":
        _written_between(body, node, parameter, hidden, shape)
    elif shape[0] != 1 or not _is_row(body, node.output, hidden):
        raise NoCell
    return shape[0]


def _is_same(body: Body, node: FileNode, hidden: int) -> bool:
    """Whether a Reshape only says what the shape is."""
    graph = body.loop.body
    before, after = graph.shape(node.inputs[0]), graph.shape(node.output)
    return len(before) == len(after) and all(m in (n, -1) for m, n in zip(before, after))


def _is_row(body: Body, tensor: int, hidden: int) -> bool:
    """Whether it is the state with an axis of size 1 in front."""
    graph = body.loop.body
    node = graph.maker.get(tensor)
    if node is None or node.kind not in ("Reshape", "ExpandDims", "Unsqueeze") or node.inputs[0] != hidden:
        return False
    return graph.shape(tensor) == (1, *graph.shape(hidden))


def _written_by_choice(body: Body, node: FileNode, parameter: int, hidden: int, count: int) -> None:
    """Where(places == counter, state, value)"""
    graph = body.loop.body
    place, row, rest = node.inputs
    if rest != parameter or not _is_row(body, row, hidden) or graph.shape(place) != (count, 1, 1):
        raise NoCell
    if count == 1:
        body.claims.append((place, lambda t: True))
    else:
        body.claims.append((place, lambda t: (np.arange(count) == t).reshape(count, 1, 1)))


def _written_between(body: Body, node: FileNode, parameter: int, hidden: int, shape: Sequence[int]) -> None:
    """Concat(rows before this one, state, rows behind it)"""
    if (
        node.op.axis != 0
        or len(node.inputs) != 3
        or min(shape) < 1
        or not _is_row(body, node.inputs[1], hidden)
    ):
        raise NoCell
    ends = [_rows_of(body, node.inputs[i], parameter) for i in (0, 2)]
    whole = np.asarray(shape)
    body.claims += [
        (ends[0][0], lambda t: [0] * len(whole)),
        (ends[0][1], lambda t: [t, *whole[1:]]),
        (ends[1][0], lambda t: [t + 1, *[0] * (len(whole) - 1)]),
        (ends[1][1], lambda t: whole),
    ]


def _rows_of(body: Body, tensor: int, parameter: int) -> tuple[int, int]:
    """Begin and end of a slice of a value, of all axes."""
    graph = body.loop.body
    node = graph.maker.get(tensor)
    if node is None or node.kind != "StridedSlice" or len(node.inputs) not in (4, 5):
        raise NoCell
    op = node.op
    if any((op.begin_mask, op.end_mask, op.ellipsis_mask, op.new_axis_mask, op.shrink_axis_mask)):
        raise NoCell
    rank = graph.rank(parameter)
    if len(node.inputs) == 5 and graph.integers(node.inputs[3]) != list(range(rank)):
        raise NoCell
    if graph.integers(node.inputs[-1]) != [1] * rank:
        raise NoCell
    x = node.inputs[0]
    before = graph.maker.get(x)
    while before is not None and before.kind == "Custom" and before.op.type == "require":
        body.claims.append((before.inputs[1], lambda t: True))
        x = before.inputs[0]
        before = graph.maker.get(x)
    if x != parameter:
        raise NoCell
    return node.inputs[1], node.inputs[2]
