"""Attention that is spelled by products, scales and turns of heads -> one node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.optimise.shapes import order_of
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.format import Table

#: Orders in which heads come to the front, and those that bring them back: [B, T, H, D] and [T, B, H, D].
_TURNS = {(0, 2, 1, 3): (0, 2, 1, 3), (1, 2, 0, 3): (2, 0, 1, 3)}


@dataclass
class Heads:
    """What is shared among heads: a tensor of `shape`, or its rows one behind the other, the order that
    brings heads to the front, a factor.
    """

    tensor: int
    shape: tuple[int, ...]
    order: tuple[int, ...]
    heads: int
    scale: float
    nodes: list[FileNode]


def _scaled(graph: FileGraph, tensor: int) -> tuple[int, float, list[FileNode]]:
    """A tensor that nothing else reads without factors and divisors that are numbers."""
    scale, nodes = 1.0, []
    while (node := graph.sole_maker(tensor, "MulFusion", "DivFusion", "RealDiv")) is not None:
        divides = node.kind != "MulFusion"
        pairs = [tuple(node.inputs)] if divides else [tuple(node.inputs), tuple(node.inputs[::-1])]
        found = [(x, graph.number(c)) for x, c in pairs if graph.is_float(c) and graph.rank(c) <= 1]
        found = [
            (x, n)
            for x, n in found
            if n and graph.constant(x) is None and graph.shape(x) == graph.shape(tensor)
        ]
        if not found or node.activation != "NO_ACTIVATION":
            break
        tensor, number = found[0]
        scale = scale / number if divides else scale * number
        nodes.append(node)
    return tensor, scale, nodes


def _heads(graph: FileGraph, tensor: int) -> Heads | None:
    tensor, scale, nodes = _scaled(graph, tensor)
    turn = graph.sole_maker(tensor, "Transpose")
    apart = turn and graph.sole_maker(turn.inputs[0], "Reshape")
    if not apart:
        return None
    order, x = tuple(order_of(graph, turn) or ()), apart.inputs[0]
    whole, parts = graph.shape(x), graph.shape(apart.output)
    if order not in _TURNS or len(parts) != 4:
        return None
    if len(whole) == 2 and min(*whole, *parts) > 0 and whole[0] == parts[0] * parts[1]:
        whole = (*parts[:2], whole[1])
    if len(whole) != 3 or whole[:2] != parts[:2]:
        return None
    if whole[:2].count(-1) > 1 or min(parts[2:]) < 1 or whole[2] != parts[2] * parts[3]:
        return None
    return Heads(x, whole, order, parts[2], scale, [*nodes, turn, apart])


def _apart(graph: FileGraph, heads: Heads, before: FileNode) -> int:
    """The tensor of `heads` with its shape, in front of a node."""
    if graph.rank(heads.tensor) == 3:
        return heads.tensor
    shape = graph.add_constant(np.array(heads.shape, np.int32), f"{before.name}/shape")
    return graph.insert(before, Table("Reshape"), [heads.tensor, shape], heads.shape)


def _plain_product(graph: FileGraph, tensor: int, transposed: bool) -> FileNode | None:
    """A product of two tensors, of which nothing is fused."""
    node = graph.sole_maker(tensor, "MatMulFusion")
    if node is None or len(node.inputs) != 2 or node.activation != "NO_ACTIVATION" or graph.rank(tensor) != 4:
        return None
    fits = not node.op.transpose_a and bool(node.op.transpose_b) == transposed
    return node if fits and graph.is_float(*node.inputs, tensor) else None


def _masked(graph: FileGraph, tensor: int) -> tuple[int, int | None, list[FileNode]]:
    """Scores in front of a mask that is added to them, and the mask."""
    node = graph.sole_maker(tensor, "AddFusion")
    if node is None or node.activation != "NO_ACTIVATION":
        return tensor, None, []
    for x, mask in (node.inputs, node.inputs[::-1]):
        inner = _scaled(graph, x)[0]
        if graph.shape(x) == graph.shape(tensor) and _plain_product(graph, inner, True) is not None:
            return (x, mask, [node]) if graph.is_float(mask) else (tensor, None, [])
    return tensor, None, []


@node_fusion("MultiHeadAttentionFusion", "Reshape")
def multi_head_attention(graph: FileGraph, node: FileNode) -> bool:
    """Heads of query, key and value; softmax of scaled products, perhaps masked; heads together again"""
    back = graph.sole_maker(node.inputs[0], "Transpose")
    weighted = back and _plain_product(graph, back.inputs[0], False)
    softmax = weighted and graph.sole_maker(weighted.inputs[0], "Softmax")
    if not softmax or [a % 4 for a in softmax.op.axis] != [3]:
        return False
    masked, mask, added = _masked(graph, softmax.inputs[0])
    scores, scale, factors = _scaled(graph, masked)
    product = _plain_product(graph, scores, True)
    if product is None:
        return False
    heads = [_heads(graph, tensor) for tensor in (*product.inputs, weighted.inputs[1])]
    if any(h is None for h in heads) or len({(h.order, h.heads) for h in heads}) > 1:
        return False
    q, _, v = heads
    rows, result = q.shape[:2], graph.shape(node.output)
    if v.scale != 1 or tuple(order_of(graph, back) or ()) != _TURNS[q.order]:
        return False
    if result != (*rows, v.shape[2]) or rows.count(-1) > 1:
        return False
    op = custom(
        "multi_head_attention",
        heads=q.heads,
        first=int(q.order[0] == 1),
        scale=float(scale * q.scale * heads[1].scale),
    )
    inputs = [_apart(graph, h, node) for h in heads] + ([] if mask is None else [mask])
    parts = [n for h in heads for n in h.nodes]
    graph.replace(node, op, inputs, [*parts, product, *factors, *added, softmax, weighted, back])
    return True
