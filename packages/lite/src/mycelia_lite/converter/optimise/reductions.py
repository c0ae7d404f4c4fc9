"""Reductions: of reshaped tensors, of products, and several that are stacked."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode, Shape
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.format import Table

_PLAIN = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll")


def _axes(graph: FileGraph, node: FileNode) -> list[int] | None:
    """The reduced axes, None if they are open or the reduction is of a kind of its own."""
    axes = graph.integers(node.inputs[1]) if len(node.inputs) == 2 else None
    if not axes or node.op.mode.name not in _PLAIN or node.op.reduce_to_end or node.op.coeff not in (0, 1):
        return None
    rank = graph.rank(node.inputs[0])
    return sorted({a % rank for a in axes}) if rank else None


def _groups(old: Shape, new: Shape) -> list[tuple[range, range]] | None:
    """Runs of axes of two shapes that hold as many elements; None if a size is open but at equal places."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            groups.append((range(i, i + 1), range(j, j + 1)))
            i, j = i + 1, j + 1
            continue
        begin = i, j
        left = right = 1
        while True:
            if left <= right and i < len(old):
                left, i = left * old[i], i + 1
            elif j < len(new):
                right, j = right * new[j], j + 1
            elif i < len(old):
                left, i = left * old[i], i + 1
            else:
                break
            if left < 1 or right < 1:
                return None
            if left == right:
                break
        if left != right:
            return None
        groups.append((range(begin[0], i), range(begin[1], j)))
    return groups


@node_fusion("ReshapeReduceFusion", "ReduceFusion")
def reshape_reduce(graph: FileGraph, node: FileNode) -> bool:
    """Reshape, then a reduction of axes that were axes before it, too -> the reduction"""
    before = graph.sole_maker(node.inputs[0], "Reshape")
    axes = before and _axes(graph, node)
    if not axes:
        return False
    old, new = graph.shape(before.inputs[0]), graph.shape(before.output)
    groups = _groups(old, new) if old.count(-1) <= 1 else None
    if groups is None:
        return False
    reduced: list[int] = []
    for left, right in groups:
        inside = [a in axes for a in right]
        if any(inside) != all(inside):
            return False
        reduced += left if inside and all(inside) else ()
    result = [1 if i in reduced else n for i, n in enumerate(old) if node.op.keep_dims or i not in reduced]
    if tuple(result) != graph.shape(node.output) or not reduced:
        return False
    made = graph.add_constant(np.asarray(reduced, np.int32), f"{node.name}/axes")
    graph.replace(node, node.op, [before.inputs[0], made], [before])
    return True


@node_fusion("MulReduceFusion", "ReduceFusion")
def mul_reduce(graph: FileGraph, node: FileNode) -> bool:
    """The sum or mean along the last axis of x times a constant of that axis -> a product of matrices"""
    axes = _axes(graph, node)
    if (
        axes is None
        or node.op.mode.name not in ("ReduceSum", "ReduceMean")
        or not graph.is_float(node.output)
    ):
        return False
    product = graph.sole_maker(node.inputs[0], "MulFusion")
    if product is None or product.activation != "NO_ACTIVATION" or not node.op.keep_dims:
        return False
    shape = graph.shape(product.output)
    if axes != [len(shape) - 1] or len(shape) < 2 or shape[-1] < 1:
        return False
    for x, other in (product.inputs, product.inputs[::-1]):
        factor = graph.float_constant(other)
        if factor is None or factor.shape[-1:] != shape[-1:] or factor.size != shape[-1]:
            continue
        if graph.rank(x) != len(shape) or factor.ndim > len(shape) or not np.isfinite(factor).all():
            continue
        column = factor.reshape(-1, 1) / np.float32(shape[-1] if node.op.mode.name == "ReduceMean" else 1)
        made = graph.add_constant(column, graph.tensors[other].name)
        graph.replace(node, Table("MatMulFusion"), [x, made], [product])
        return True
    return False


@node_fusion("ReduceStackFusion", "Stack")
def reduce_stack(graph: FileGraph, node: FileNode) -> bool:
    """Reductions of one axis, stacked along it -> reductions that keep it, and Concat"""
    made = [graph.sole_maker(i, "ReduceFusion") for i in node.inputs]
    if any(m is None for m in made) or len(set(map(id, made))) < len(made):
        return False
    axis = node.op.axis % graph.rank(node.output)
    if any(m.op.keep_dims or _axes(graph, m) != [axis] for m in made):
        return False
    kept = []
    for m in made:
        op = m.op.copy()
        op.keep_dims = True
        shape = list(graph.shape(m.inputs[0]))
        shape[axis] = 1
        kept.append(graph.insert(m, op, m.inputs, shape))
    graph.replace(node, Table("Concat", axis=axis), kept, made)
    return True
