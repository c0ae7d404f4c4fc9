"""Slices go in front of what makes what they are cut of, so that nothing is computed that nobody reads.

Node by node backwards from a slice: a node whose readers all take the same part makes that part alone. The
classifier on the first token of a transformer thus needs one row of all but keys and values in its last
layer, although the residual is read by two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.optimise.slices import SLICES, Cut, is_whole, read_selection, write_slice
from mycelia_lite.format import Table

_NODE = 64  # elements that are copied in the time that one more node takes

#: By kind: what a node must have of each input to make a part of its result (None: the input stays as it is);
#: or None if it cannot make a part.
_NEEDS: dict[str, Callable[[FileGraph, FileNode, Cut], list[Cut | None] | None]] = {}


def _needs(*kinds: str) -> Callable:
    def enter(function: Callable) -> Callable:
        _NEEDS.update(dict.fromkeys(kinds, function))
        return function

    return enter


@_needs(
    "Activation", "Abs", "Cast", "Ceil", "Clip", "Cos", "Erf", "ExpFusion", "Floor", "Log", "Neg",
    "Reciprocal", "Round", "Rsqrt", "Sin", "Sqrt", "Square",
)  # fmt: skip
def _of_function(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    same = graph.shape(node.inputs[0]) == graph.shape(node.output)
    return [cut, *[None] * (len(node.inputs) - 1)] if same else None


@_needs("AddFusion", "SubFusion", "MulFusion", "DivFusion", "RealDiv", "Maximum", "Minimum")
def _of_arithmetic(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    whole = graph.shape(node.output)
    found = []
    for i in node.inputs:
        shape = graph.shape(i)
        behind = whole[len(whole) - len(shape) :]
        if len(shape) > len(whole) or any(n not in (1, m) for n, m in zip(shape, behind)):
            return None
        own = cut[len(cut) - len(shape) :]
        found.append([(0, 1, 1) if n == 1 and m != 1 else c for n, m, c in zip(shape, behind, own)])
    return found


@_needs("Softmax", "LogSoftmax")
def _of_softmax(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    whole = graph.shape(node.output)
    axes = node.op.axis if node.kind == "Softmax" else [node.op.axis]
    return [cut] if all(cut[a] == (0, 1, whole[a]) for a in axes) else None


@_needs("LayerNormFusion")
def _of_layer_norm(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    whole = graph.shape(node.output)
    first = min(node.op.begin_norm_axis % len(whole), node.op.begin_params_axis % len(whole))
    return [cut, *[None] * (len(node.inputs) - 1)] if is_whole(cut[first:], whole[first:]) else None


@_needs("Transpose")
def _of_transpose(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    order = graph.integers(node.inputs[1])
    return [[cut[order.index(a)] for a in range(len(order))], None] if order else None


@_needs("Reshape")
def _of_reshape(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    """Leading axes that it leaves alone"""
    old, new = graph.shape(node.inputs[0]), graph.shape(node.output)
    same = _same(old, new)
    rest = new[same:]
    if not rest or rest.count(-1) > 1 or not is_whole(cut[same:], rest) or 0 in new:
        return None
    return [cut[:same] + [(0, 1, n) for n in old[same:]], *[None] * (len(node.inputs) - 1)]


def _same(old: Sequence[int], new: Sequence[int]) -> int:
    """Leading axes of a Reshape that are alike; a lone open one is if the others have as many elements."""
    follows = list(old).count(-1) == list(new).count(-1) == 1 and prod(old) == prod(new)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same] and (old[same] > 0 or follows):
        same += 1
    return same


@_needs("FullConnection")
def _of_full_connection(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    """Rows"""
    whole, a = graph.shape(node.output), graph.shape(node.inputs[0])
    if a[:-1] != whole[:-1] or cut[-1] != (0, 1, whole[-1]):
        return None
    return [[*cut[:-1], (0, 1, a[-1])], *[None] * (len(node.inputs) - 1)]


@_needs("MatMulFusion")
def _of_product(graph: FileGraph, node: FileNode, cut: Cut) -> list[Cut | None] | None:
    """Rows, or columns of constant weights"""
    whole, a, b = (graph.shape(t) for t in (node.output, *node.inputs[:2]))
    if len(a) != len(whole) or len(b) != 2 and not is_whole(cut[:-2], whole[:-2]):
        return None
    of_b: Cut | None = None
    bias: list[Cut | None] = [None] * (len(node.inputs) - 2)
    if cut[-1] != (0, 1, whole[-1]):
        if len(b) != 2 or any(graph.float_constant(i) is None for i in node.inputs[1:]):
            return None
        of_b = [cut[-1], (0, 1, b[1])] if node.op.transpose_b else [(0, 1, b[0]), cut[-1]]
        bias = [[cut[-1]]] * len(bias)
    batch = cut[:-2] if len(b) == 2 else [(0, 1, n) for n in a[:-2]]  # a's own sizes: it may be repeated
    rows = [cut[-2], (0, 1, a[-1])]
    if node.op.transpose_a:
        rows = [(0, 1, a[-2]), cut[-2]]
    return [[*batch, *rows], of_b, *bias]


def _work(graph: FileGraph, node: FileNode) -> int:
    """Operations for one element of the result."""
    if node.kind not in ("MatMulFusion", "FullConnection"):
        return 1
    turned = node.kind == "MatMulFusion" and node.op.transpose_a
    return 2 * _count(graph.shape(node.inputs[0])[-2 if turned else -1 :][:1])


# ---- what is cut


@dataclass
class _Region:
    """Nodes that make a part of their result alone, the last one first; what is cut in front of them."""

    nodes: list[tuple[FileNode, Cut, list[Cut | None]]] = field(default_factory=list)
    slices: list[tuple[int, Cut]] = field(default_factory=list)  # of tensors that are no constants


def _grow(graph: FileGraph, node: FileNode, cut: Cut) -> _Region:
    """All nodes in front of a slice that need make no more than it takes."""
    region = _Region()
    place = {id(n): i for i, n in enumerate(graph.nodes)}
    wanted: dict[int, list[Cut]] = {node.inputs[0]: [cut]}  # by tensor: once for each time that it is read
    while wanted:
        tensor = max(wanted, key=lambda t: place.get(id(graph.maker.get(t)), -1))  # its readers came before
        cuts = wanted.pop(tensor)
        made, whole = graph.maker.get(tensor), graph.shape(tensor)
        alike = len(cuts) == graph.uses(tensor) and all(c == cuts[0] for c in cuts)
        can = alike and made is not None and len(made.outputs) == 1 and made.kind in _NEEDS
        can = can and not len(graph.tensors[tensor].quantParams)
        if can and not is_whole(cuts[0], whole) and all(n for _, _, n in cuts[0]):
            needs = _NEEDS[made.kind](graph, made, cuts[0])
            if needs is not None:
                region.nodes.append((made, cuts[0], needs))
                for i, own in zip(made.inputs, needs):
                    if own is not None and graph.constant(i) is None and not is_whole(own, graph.shape(i)):
                        wanted.setdefault(i, []).append(own)
                continue
        region.slices += [(tensor, c) for i, c in enumerate(cuts) if c not in cuts[:i]]
    return region


def _pays(graph: FileGraph, region: _Region, cut: Cut) -> bool:
    """Whether less is computed and copied, beside the slice that goes."""
    saved = _size(cut) + _NODE
    for made, own, _ in region.nodes:
        saved += _work(graph, made) * (_count(graph.shape(made.output)) - _size(own))
    return saved > sum(_size(own) + _NODE for _, own in region.slices)


def _size(cut: Cut) -> int:
    return _count(n for _, _, n in cut)


def _count(shape: Iterable[int]) -> int:
    """Elements, where open sizes are 1."""
    return abs(prod(shape))


@node_fusion("SlicePreposeFusion", *SLICES, "Gather")
def slice_in_front(graph: FileGraph, node: FileNode) -> bool:
    """A slice behind nodes that nothing else needs whole -> the nodes behind slices"""
    found = read_selection(graph, node)
    if found is None or is_whole(found[0], graph.shape(node.inputs[0])):
        return False
    cut, gone = found
    region = _grow(graph, node, cut)
    if not region.nodes or not _pays(graph, region, cut):
        return False
    parts: dict[tuple[int, tuple], int] = {}
    for made, own, needs in reversed(region.nodes):
        whole, sizes = made.output, [n for _, _, n in own]
        inputs = _inputs(graph, made, own, needs, parts)
        part = graph.add_tensor(f"{graph.tensors[whole].name}_part", whole, sizes)
        graph.rebuild(made, made.op, inputs, [part])
        parts[whole, tuple(own)] = part
    part = parts[node.inputs[0], tuple(cut)]
    if gone:
        graph.replace(node, Table("Squeeze", axis=gone), [part])
        return True
    return graph.bypass(node, part)


def _inputs(
    graph: FileGraph, made: FileNode, cut: Cut, needs: list[Cut | None], parts: dict[tuple[int, tuple], int]
) -> list[int]:
    """What a node reads to make a part of its result; `parts`: tensors by what they are cut of, and how."""
    inputs = [i if own is None else _part(graph, made, i, own, parts) for i, own in zip(made.inputs, needs)]
    if made.kind == "Reshape":
        old, new = graph.shape(made.inputs[0]), graph.shape(made.output)
        same = _same(old, new)
        shape = np.asarray([0] * same + [n for _, _, n in cut[same:]], np.int32)  # 0: as in the part
        inputs[1:] = [graph.add_constant(shape, f"{made.name}/shape")]
    return inputs


def _part(
    graph: FileGraph, before: FileNode, tensor: int, cut: Cut, parts: dict[tuple[int, tuple], int]
) -> int:
    """A tensor cut in front of a node; the tensor itself if all of it is taken."""
    key = tensor, tuple(cut)
    if is_whole(cut, graph.shape(tensor)):
        return tensor
    if key not in parts:
        array = graph.constant(tensor)
        if array is not None:
            index = np.ix_(*(b + s * np.arange(n) for b, s, n in cut)) if cut else ()
            parts[key] = graph.add_constant(array[index], f"{graph.tensors[tensor].name}_part")
        else:
            op, inputs = write_slice(graph, tensor, graph.shape(tensor), cut, before.name)
            parts[key] = graph.insert(before, op, inputs, [n for _, _, n in cut])
    return parts[key]
