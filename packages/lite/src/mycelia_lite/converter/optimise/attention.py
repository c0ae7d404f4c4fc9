"""Attention that is spelled by products, scales and turns of heads -> one node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.heads import (
    Heads,
    chains,
    heads_of,
    in_front,
    moved,
    numbers,
    scaled,
    together,
)
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.format import Table

_MOVES = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "ExpandDims")


def _apart(graph: FileGraph, heads: Heads, before: FileNode) -> int:
    """The tensor of `heads` with its shape, in front of a node."""
    if graph.rank(heads.tensor) == 3:
        return heads.tensor
    shape = graph.add_constant(np.array(heads.shape, np.int32), f"{before.name}/shape")
    return graph.insert(before, Table("Reshape"), [heads.tensor, shape], heads.shape)


def _plain_product(graph: FileGraph, tensor: int) -> FileNode | None:
    """A product of two tensors of heads, of which nothing is fused; the second may be transposed."""
    node = graph.sole_maker(tensor, "MatMulFusion")
    if node is None or len(node.inputs) != 2 or node.activation != "NO_ACTIVATION":
        return None
    fits = not node.op.transpose_a and graph.rank(tensor) in (3, 4)
    ranks = {graph.rank(t) for t in (*node.inputs, tensor)}
    return node if fits and len(ranks) == 1 and graph.is_float(*node.inputs, tensor) else None


def _masked(graph: FileGraph, tensor: int) -> tuple[int, int | None, list[FileNode]]:
    """Scores in front of a mask that is added to them, and the mask."""
    node = graph.sole_maker(tensor, "AddFusion")
    if node is None or node.activation != "NO_ACTIVATION":
        return tensor, None, []
    for x, mask in (node.inputs, node.inputs[::-1]):
        inner = scaled(graph, x).tensor
        if graph.shape(x) == graph.shape(tensor) and _plain_product(graph, inner) is not None:
            if graph.rank(tensor) == 3 and graph.rank(mask) > 2:
                break  # a mask of each head of a batch, one behind the other
            return (x, mask, [node]) if graph.is_float(mask) else (tensor, None, [])
    return tensor, None, []


def _fit(heads: Sequence[Heads], first: bool) -> bool:
    """Whether query, key and value have the same heads and batch, which products would broadcast."""
    q, k, v = heads
    rows = 0 if first else 1
    return len({(h.heads, h.shape[1 - rows]) for h in heads}) == 1 and k.shape[rows] == v.shape[rows]


def _goes_back(graph: FileGraph, nodes: list[FileNode], q: Heads, v: Heads, first: bool, flat: bool) -> bool:
    """Whether moves behind an attention bring its heads together, as [B, T, H D] or with rows in one."""
    sizes = numbers((*q.shape[:2], v.shape[2]))
    for rows in sizes:
        apart = in_front(rows, q.heads, first, flat=False)
        start = np.arange(rows.size, dtype=np.int32).reshape(apart.shape)
        end = moved(graph, nodes, start.reshape(-1, *start.shape[2:]) if flat else start)
        wanted = together(start, first)
        if end is None or not any(
            np.array_equal(end, w) for w in (wanted, wanted.reshape(-1, wanted.shape[-1]))
        ):
            return False
    return bool(sizes)


@node_fusion("MultiHeadAttentionFusion", "Reshape")
def multi_head_attention(graph: FileGraph, node: FileNode) -> bool:
    """Heads of query, key and value; softmax of scaled products, perhaps masked; heads together again"""
    back = list(chains(graph, node.inputs[0], _MOVES))[-1]
    weighted = _plain_product(graph, back.tensor)
    if weighted is None or weighted.op.transpose_b:
        return False
    softmax = graph.sole_maker(weighted.inputs[0], "Softmax")
    rank = graph.rank(weighted.output)
    if not softmax or [a % rank for a in softmax.op.axis] != [rank - 1]:
        return False
    masked, mask, added = _masked(graph, softmax.inputs[0])
    scores = scaled(graph, masked)
    product = _plain_product(graph, scores.tensor)
    if product is None or graph.rank(scores.tensor) != rank:
        return False
    found = [
        heads_of(graph, product.inputs[0]),
        heads_of(graph, product.inputs[1], swapped=not product.op.transpose_b),
        heads_of(graph, weighted.inputs[1]),
    ]
    orders = set.intersection(*map(set, found))
    if len(orders) != 1:  # none, or sizes of 1 do not tell which
        return False
    (first,) = orders
    q, k, v = heads = [each[first] for each in found]
    if not _fit(heads, first) or v.scale != 1:
        return False
    if not _goes_back(graph, [node, *back.nodes], q, v, first, rank == 3):
        return False
    op = custom(
        "multi_head_attention", heads=q.heads, first=int(first), scale=float(scores.scale * q.scale * k.scale)
    )
    inputs = [_apart(graph, h, node) for h in heads] + ([] if mask is None else [mask])
    parts = [n for h in heads for n in h.nodes]
    parts += [product, *scores.nodes, *added, softmax, weighted, *back.nodes]
    if graph.rank(node.output) == 3:
        graph.replace(node, op, inputs, parts)
        return True
    made = graph.insert(node, op, inputs, (*q.shape[:2], v.shape[2]))
    graph.reread(node, [made, *node.inputs[1:]])
    return True
