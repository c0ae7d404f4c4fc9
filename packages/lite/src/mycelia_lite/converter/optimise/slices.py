"""Slices: read as places of each axis; moved in front of other operators, joined and taken out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.format import Table

Cut = list[tuple[int, int, int]]  # of each axis: (first place, stride, number of places)


def read_slice(graph: FileGraph, node: FileNode) -> Cut | None:
    """What a slice takes of each axis; None if a place is open, or a dimension goes."""
    whole = graph.shape(node.inputs[0])
    if -1 in whole:
        return None
    if node.kind == "SliceFusion":
        return _of_slice(graph, node, whole)
    if node.kind != "StridedSlice" or len(node.inputs) not in (4, 5):
        return None
    op = node.op
    if any((op.ellipsis_mask, op.new_axis_mask, op.shrink_axis_mask)):
        return None
    given = [graph.integers(i) for i in node.inputs[1:]]
    if any(v is None for v in given):
        return None
    begin, end, *axes, stride = given
    named = axes[0] if axes else list(range(len(begin)))
    if not len(begin) == len(end) == len(stride) == len(named) or 0 in stride:
        return None
    cut = [(0, 1, n) for n in whole]
    for i, (axis, b, e, s) in enumerate(zip(named, begin, end, stride)):
        first, last = None if op.begin_mask >> i & 1 else b, None if op.end_mask >> i & 1 else e
        places = range(whole[axis])[first:last:s]
        cut[axis % len(whole)] = (
            (places[0], s if len(places) > 1 else 1, len(places)) if places else (0, 1, 0)
        )
    return cut


def _of_slice(graph: FileGraph, node: FileNode, whole: Sequence[int]) -> Cut | None:
    begin, size = (graph.integers(i) for i in node.inputs[1:3])
    if begin is None or size is None:
        return None
    cut = [(0, 1, n) for n in whole]
    for axis, b, n in zip(node.op.axes or range(len(begin)), begin, size):
        b += whole[axis] if b < 0 else 0
        cut[axis % len(whole)] = (b, 1, whole[axis] - b if n == -1 else n)
    return cut


def is_whole(cut: Cut, whole: Sequence[int]) -> bool:
    return all(c == (0, 1, n) for c, n in zip(cut, whole, strict=True))


def write_slice(
    graph: FileGraph, tensor: int, whole: Sequence[int], cut: Cut, name: str
) -> tuple[Table, list[int]]:
    """A StridedSlice of a tensor of shape `whole`, and its inputs.

    Of an axis that is taken whole it takes all, whatever the model is resized to.
    """
    ends = [b + (n - 1) * s + (1 if s > 0 else -1) if n else b for b, s, n in cut]
    # Right before the first element: -1 would be the last one.
    ends = [e if e >= 0 else np.iinfo(np.int32).min for e in ends]
    op = Table("StridedSlice")
    for i, (one, n) in enumerate(zip(cut, whole, strict=True)):
        if one == (0, 1, n):
            ends[i] = np.iinfo(np.int32).max
            op.end_mask |= 1 << i
    columns = [c[0] for c in cut], ends, [c[1] for c in cut]
    constants = [graph.add_constant(np.asarray(v, np.int32), f"{name}/{i}") for i, v in enumerate(columns)]
    return op, [tensor, *constants]


def _sliced(graph: FileGraph, before: FileNode, tensor: int, cut: Cut) -> int:
    """A tensor cut in front of a node; the tensor itself if all of it is taken."""
    if is_whole(cut, graph.shape(tensor)):
        return tensor
    array = graph.constant(tensor)
    if array is not None:
        index = np.ix_(*(b + s * np.arange(n) for b, s, n in cut)) if cut else ()
        return graph.add_constant(array[index], f"{graph.tensors[tensor].name}_part")
    op, inputs = write_slice(graph, tensor, graph.shape(tensor), cut, before.name)
    return graph.insert(before, op, inputs, [n for _, _, n in cut])


def _cut_of(graph: FileGraph, node: FileNode, *kinds: str) -> tuple[FileNode, Cut] | None:
    """What makes the input of a slice that alone reads it, if it is one of these kinds, and the cut."""
    before = graph.sole_maker(node.inputs[0], *kinds)
    cut = before and read_slice(graph, node)
    return (before, cut) if cut else None


_SLICES = ("StridedSlice", "SliceFusion")


@node_fusion("SliceSliceFusion", *_SLICES)
def slice_slice(graph: FileGraph, node: FileNode) -> bool:
    """A slice of a slice -> one"""
    found = _cut_of(graph, node, *_SLICES)
    first = found and read_slice(graph, found[0])
    if not first:
        return False
    cut = [(b + c * s, s * t if n > 1 else 1, n) for (b, s, _), (c, t, n) in zip(first, found[1])]
    x = found[0].inputs[0]
    graph.replace(node, *write_slice(graph, x, graph.shape(x), cut, node.name), [found[0]])
    return True


_BINARY = ("AddFusion", "SubFusion", "MulFusion", "DivFusion", "RealDiv", "Maximum", "Minimum")
_UNARY = (
    "Activation", "Abs", "Cast", "Ceil", "Clip", "Cos", "Erf", "ExpFusion", "Floor", "Log", "Neg",
    "Reciprocal", "Round",
    "Rsqrt", "Sin", "Sqrt", "Square",
)  # fmt: skip


@node_fusion("SlicePreposeFusion", *_SLICES)
def before_elementwise(graph: FileGraph, node: FileNode) -> bool:
    """A slice of a sum, product or function -> the same of slices"""
    found = _cut_of(graph, node, *_BINARY, *_UNARY)
    if found is None:
        return False
    made, cut = found
    count = 2 if made.kind in _BINARY else 1
    whole = graph.shape(made.output)
    inputs, loads = [], 0
    for i in made.inputs[:count]:
        shape = graph.shape(i)
        own = [
            (0, 1, 1) if n == 1 and m != 1 else c
            for n, m, c in zip(shape, whole[len(whole) - len(shape) :], cut[len(cut) - len(shape) :])
        ]
        if -1 in shape or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(whole))):
            return False
        loads += graph.constant(i) is None and not is_whole(own, shape)
        inputs.append(own)
    if loads > 1 and count == 2 and made.inputs[0] != made.inputs[1] and _uses_whole(graph, made, count):
        return False  # two slices of what others need whole, for one
    more = made.inputs[count:]
    given = [_sliced(graph, made, i, own) for i, own in zip(made.inputs[:count], inputs)]
    graph.replace(node, made.op, [*given, *more], [made])
    return True


def _uses_whole(graph: FileGraph, made: FileNode, count: int) -> bool:
    return any(graph.uses(i) > 1 for i in made.inputs[:count])


@node_fusion("SlicePreposeFusion", *_SLICES)
def before_softmax(graph: FileGraph, node: FileNode) -> bool:
    """A slice along other axes than that of a softmax goes in front of it"""
    found = _cut_of(graph, node, "Softmax", "LogSoftmax")
    if found is None:
        return False
    made, cut = found
    whole = graph.shape(made.output)
    axes = list(made.op.axis) if made.kind == "Softmax" else [made.op.axis]
    if any(cut[a] != (0, 1, whole[a]) for a in axes) or is_whole(cut, whole):
        return False
    graph.replace(node, made.op, [_sliced(graph, made, made.inputs[0], cut)], [made])
    return True


@node_fusion("SlicePreposeFusion", *_SLICES)
def before_transpose(graph: FileGraph, node: FileNode) -> bool:
    """A slice of a Transpose -> the Transpose of a slice"""
    found = _cut_of(graph, node, "Transpose")
    order = found and graph.integers(found[0].inputs[1])
    if not order or is_whole(found[1], graph.shape(node.inputs[0])):
        return False
    made, cut = found
    turned = [cut[order.index(a)] for a in range(len(order))]
    part = _sliced(graph, made, made.inputs[0], turned)
    graph.replace(node, made.op, [part, made.inputs[1]], [made])
    return True


@node_fusion("SlicePreposeFusion", *_SLICES)
def before_reshape(graph: FileGraph, node: FileNode) -> bool:
    """A slice along leading axes that a Reshape leaves alone goes in front of it"""
    found = _cut_of(graph, node, "Reshape")
    if found is None:
        return False
    made, cut = found
    old, new = graph.shape(made.inputs[0]), graph.shape(made.output)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same] and old[same] > 0:
        same += 1
    if not same or -1 in old or is_whole(cut[:same], new[:same]) or not is_whole(cut[same:], new[same:]):
        return False
    if not same < len(new) or 0 in new or any(n == 0 for _, _, n in cut):
        return False
    part = _sliced(graph, made, made.inputs[0], cut[:same] + [(0, 1, n) for n in old[same:]])
    shape = np.asarray([0] * same + [n for _, _, n in cut[same:]], np.int32)  # 0: as in the part
    graph.replace(node, Table("Reshape"), [part, graph.add_constant(shape, f"{made.name}/shape")], [made])
    return True


@node_fusion("SlicePreposeFusion", *_SLICES)
def before_product(graph: FileGraph, node: FileNode) -> bool:
    """A slice of rows or columns of a product -> the product of fewer rows, or by fewer columns"""
    found = _cut_of(graph, node, "MatMulFusion")
    if found is None:
        return False
    made, cut = found
    whole, a, b = graph.shape(made.output), graph.shape(made.inputs[0]), graph.shape(made.inputs[1])
    if len(a) != len(whole) or -1 in a or is_whole(cut, whole) or any(n == 0 for _, _, n in cut):
        return False
    weight = graph.constant(made.inputs[1])
    columns = cut[-1] != (0, 1, whole[-1])
    if columns and (weight is None or weight.ndim != 2):
        return False
    if len(b) != 2 and not is_whole(cut[:-2], whole[:-2]):
        return False
    rows = [*cut[:-1], (0, 1, a[-1])]
    if made.op.transpose_a:
        rows = [*cut[:-2], (0, 1, a[-2]), cut[-2]]
    inputs = list(made.inputs)
    if columns:
        of_weight = [cut[-1], (0, 1, b[1])] if made.op.transpose_b else [(0, 1, b[0]), cut[-1]]
        inputs[1] = _sliced(graph, made, made.inputs[1], of_weight)
        if len(inputs) == 3:
            if graph.constant(inputs[2]) is None:
                return False
            inputs[2] = _sliced(graph, made, inputs[2], [cut[-1]])
    inputs[0] = _sliced(graph, made, made.inputs[0], rows)
    graph.replace(node, made.op, inputs, [made])
    return True


@node_fusion("StridedSliceFusion", "Concat")
def slices_together(graph: FileGraph, node: FileNode) -> bool:
    """Slices that lie side by side, concatenated in their order -> one slice, or what they were cut of"""
    parts = [graph.maker.get(i) for i in node.inputs]
    if len(parts) < 2 or any(p is None or p.kind not in _SLICES for p in parts):
        return False
    x = parts[0].inputs[0]
    cuts = [read_slice(graph, p) for p in parts]
    if any(p.inputs[0] != x for p in parts) or any(c is None for c in cuts):
        return False
    axis = node.op.axis % graph.rank(x)
    first = cuts[0]
    at = first[axis][0]
    for cut in cuts:
        begin, stride, count = cut[axis]
        if begin != at or stride != 1 or cut[:axis] + cut[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            return False
        at += count
    cut = [*first[:axis], (first[axis][0], 1, at - first[axis][0]), *first[axis + 1 :]]
    if is_whole(cut, graph.shape(x)):
        return graph.bypass(node, x)
    graph.replace(node, *write_slice(graph, x, graph.shape(x), cut, node.name), parts)
    return True


@node_fusion("StridedSliceFusion", "Concat")
def split_together(graph: FileGraph, node: FileNode) -> bool:
    """All parts of a Split, concatenated in their order -> what was split"""
    split = graph.maker.get(node.inputs[0])
    if split is None or split.kind != "Split" or node.inputs != split.outputs:
        return False
    rank = graph.rank(split.inputs[0])
    return split.op.axis % rank == node.op.axis % rank and graph.bypass(node, split.inputs[0])
