"""How heads of attention are laid out, whatever Reshapes and Transposes spell it.

What a chain of moves does is found on the numbers of elements: it is compared with the one way in which the
node multi_head_attention does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.shapes import order_of

#: Orders in which heads come to the front: of [B, T, H, D], and of [T, B, H, D] where positions are first.
_ORDERS = {False: (0, 2, 1, 3), True: (1, 2, 0, 3)}
_SHAPES = ("Reshape", "Squeeze", "Unsqueeze", "ExpandDims")
_FACTORS = ("MulFusion", "DivFusion", "RealDiv")
_OPEN = (3, 5)  # stand for an open size: moves by fixed numbers may agree with one of them
_MOST = 1 << 22  # elements whose numbers are moved


@dataclass
class Heads:
    """What is shared among heads: a tensor of `shape`, or its rows one behind the other, and a factor."""

    tensor: int
    shape: tuple[int, ...]
    heads: int
    scale: float
    nodes: list[FileNode]


@dataclass
class Chain:
    """Moves and factors that lead from `tensor` to another; `nodes` from the last to the first."""

    tensor: int
    scale: float
    nodes: list[FileNode]


def _factor(graph: FileGraph, node: FileNode) -> tuple[int, float] | None:
    """What a node multiplies by a number, and the number; its shape stays."""
    divides = node.kind != "MulFusion"
    for x, c in [tuple(node.inputs)] if divides else [tuple(node.inputs), tuple(node.inputs[::-1])]:
        number = graph.number(c) if graph.is_float(c) and graph.rank(c) <= 1 else None
        if number and graph.constant(x) is None and graph.shape(x) == graph.shape(node.output):
            return x, 1 / number if divides else number
    return None


def chains(
    graph: FileGraph, tensor: int, kinds: Sequence[str] = ("Transpose", *_SHAPES, *_FACTORS)
) -> Iterator[Chain]:
    """What leads to a tensor over nodes of these kinds that no one else reads, from nothing to all of it."""
    found = Chain(tensor, 1.0, [])
    yield found
    while (node := graph.sole_maker(found.tensor, *kinds)) is not None:
        before, scale = node.inputs[0], 1.0
        if node.kind in _FACTORS:
            factor = _factor(graph, node)
            if factor is None or node.activation != "NO_ACTIVATION":
                return
            before, scale = factor
        found = Chain(before, found.scale * scale, [*found.nodes, node])
        yield found


def scaled(graph: FileGraph, tensor: int) -> Chain:
    """A tensor that nothing else reads without factors and divisors that are numbers."""
    return list(chains(graph, tensor, _FACTORS))[-1]


def moved(graph: FileGraph, nodes: Sequence[FileNode], array: np.ndarray) -> np.ndarray | None:
    """What a chain makes of an array; None if that is not known. `nodes` from the last to the first."""
    for node in reversed(nodes):
        if node.kind in _FACTORS:
            continue
        if node.kind == "Transpose":
            order = order_of(graph, node)
            if order is None or len(order) != array.ndim:
                return None
            array = array.transpose(order)
            continue
        shape = graph.shape(node.output)
        known = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
        if (
            shape.count(-1) > 1
            or known < 1
            or array.size % known
            or (-1 not in shape and known != array.size)
        ):
            return None
        array = array.reshape(shape)
    return array


def numbers(shape: Sequence[int]) -> list[np.ndarray]:
    """The numbers of the elements of a tensor, for sizes that its open one may have; none if not known."""
    if list(shape).count(-1) > 1:
        return []
    known = [[n if size == -1 else size for size in shape] for n in (_OPEN if -1 in shape else _OPEN[:1])]
    if min(known[0]) < 1 or np.prod(known[-1], dtype=np.int64) > _MOST:
        return []
    return [np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes) for sizes in known]


def in_front(whole: np.ndarray, heads: int, first: bool, flat: bool) -> np.ndarray:
    """[B, T, H D], or [T, B, H D] if `first`, as [B, H, T, D]; `flat`: as [B H, T, D]."""
    a, b, width = whole.shape
    apart = whole.reshape(a, b, heads, width // heads).transpose(_ORDERS[first])
    return apart.reshape(-1, *apart.shape[2:]) if flat else apart


def together(apart: np.ndarray, first: bool) -> np.ndarray:
    """[B, H, T, D] as [B, T, H D], or [T, B, H D] if `first`."""
    back = apart.transpose(np.argsort(_ORDERS[first]))
    return back.reshape(*back.shape[:2], -1)


def heads_of(graph: FileGraph, tensor: int, swapped: bool = False) -> dict[bool, Heads]:
    """What lies in heads in a tensor [B, H, T, D] or [B H, T, D], of which the last two axes may be swapped.

    By whether positions are in front of the batch: both if its sizes of 1 do not tell.
    """
    shape = graph.shape(tensor)
    width = shape[-2 if swapped else -1]
    alone: dict[bool, Heads] = {}  # one head, as which each [B, T, D] can be seen
    for chain in chains(graph, tensor):
        whole = graph.shape(chain.tensor)
        if len(whole) == 2 and chain.nodes:  # rows one behind the other
            rows = graph.shape(chain.nodes[-1].output)[:2]
            whole = (*rows, whole[1]) if min(rows, default=0) > 0 and np.prod(rows) == whole[0] else whole
        if len(whole) != 3 or width < 1 or whole[2] < width or whole[2] % width:
            continue
        starts = numbers(whole)
        ends = [end for start in starts if (end := moved(graph, chain.nodes, start)) is not None]
        if not starts or len(ends) < len(starts):
            continue
        ends = [end.swapaxes(-1, -2) for end in ends] if swapped else ends
        count, flat = whole[2] // width, len(shape) == 3
        found = {
            first: Heads(chain.tensor, whole, count, chain.scale, chain.nodes)
            for first in _ORDERS
            if all(np.array_equal(in_front(x, count, first, flat), y) for x, y in zip(starts, ends))
        }
        if found and count > 1:
            return found
        alone = alone or found
    return alone
