"""Slices: read as places of each axis and written; joined and taken out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.format import Table

Cut = list[tuple[int, int, int]]  # of each axis: (first place, stride, number of places)


def read_slice(graph: FileGraph, node: FileNode) -> Cut | None:
    """What a slice takes of each axis; None if a place is open, or a dimension goes."""
    found = None if -1 in graph.shape(node.inputs[0]) else read_selection(graph, node)
    return found[0] if found and not found[1] else None


def read_selection(graph: FileGraph, node: FileNode) -> tuple[Cut, list[int]] | None:
    """What a slice, or a Gather of one known place, takes of each axis, and the axes that go.

    Axes of open size (-1) are whole; None if they are not, or a place is open.
    """
    whole = graph.shape(node.inputs[0])
    if node.kind == "SliceFusion":
        cut = _of_slice(graph, node, whole)
        return cut and (cut, [])
    if node.kind == "Gather":
        return _of_gather(graph, node, whole)
    if node.kind != "StridedSlice" or len(node.inputs) not in (4, 5):
        return None
    op = node.op
    if op.ellipsis_mask or op.new_axis_mask:
        return None
    given = [graph.integers(i) for i in node.inputs[1:]]
    if any(v is None for v in given):
        return None
    begin, end, *axes, stride = given
    named = axes[0] if axes else list(range(len(begin)))
    if not len(begin) == len(end) == len(stride) == len(named) or 0 in stride:
        return None
    cut, gone = [(0, 1, n) for n in whole], []
    for i, (axis, b, e, s) in enumerate(zip(named, begin, end, stride)):
        axis %= len(whole)
        if whole[axis] < 0:
            if op.shrink_axis_mask >> i & 1 or not _takes_all(op, i, b, e, s):
                return None
            continue
        if op.shrink_axis_mask >> i & 1:
            if not -whole[axis] <= b < whole[axis]:
                return None
            cut[axis] = (b % whole[axis], 1, 1)
            gone.append(axis)
            continue
        first, last = None if op.begin_mask >> i & 1 else b, None if op.end_mask >> i & 1 else e
        places = range(whole[axis])[first:last:s]
        cut[axis] = (places[0], s if len(places) > 1 else 1, len(places)) if places else (0, 1, 0)
    return cut, sorted(gone)


def _takes_all(op: Table, i: int, begin: int, end: int, stride: int) -> bool:
    """Whether the i-th columns of a StridedSlice take all of an axis, whatever its size is."""
    from_start = op.begin_mask >> i & 1 or begin == 0
    to_end = op.end_mask >> i & 1 or end >= np.iinfo(np.int32).max
    return bool(from_start and to_end and stride == 1)


def _of_gather(graph: FileGraph, node: FileNode, whole: Sequence[int]) -> tuple[Cut, list[int]] | None:
    places, axes = (graph.integers(i) for i in node.inputs[1:3])
    rank = graph.rank(node.inputs[1])
    if not places or not axes or len(places) != 1 or rank > 1:
        return None
    axis = axes[0] % len(whole)
    if not -whole[axis] <= places[0] < whole[axis]:
        return None
    cut = [(0, 1, n) for n in whole]
    cut[axis] = (places[0] % whole[axis], 1, 1)
    return cut, [axis] * (rank == 0)


def _of_slice(graph: FileGraph, node: FileNode, whole: Sequence[int]) -> Cut | None:
    begin, size = (graph.integers(i) for i in node.inputs[1:3])
    if begin is None or size is None:
        return None
    cut = [(0, 1, n) for n in whole]
    for axis, b, n in zip(node.op.axes or range(len(begin)), begin, size):
        if whole[axis] < 0:
            if (b, n) != (0, -1):
                return None
            continue
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


def _cut_of(graph: FileGraph, node: FileNode, *kinds: str) -> tuple[FileNode, Cut] | None:
    """What makes the input of a slice that alone reads it, if it is one of these kinds, and the cut."""
    before = graph.sole_maker(node.inputs[0], *kinds)
    cut = before and read_slice(graph, node)
    return (before, cut) if cut else None


SLICES = ("StridedSlice", "SliceFusion")


@node_fusion("SliceSliceFusion", *SLICES)
def slice_slice(graph: FileGraph, node: FileNode) -> bool:
    """A slice of a slice -> one"""
    found = _cut_of(graph, node, *SLICES)
    first = found and read_slice(graph, found[0])
    if not first:
        return False
    cut = [(b + c * s, s * t if n > 1 else 1, n) for (b, s, _), (c, t, n) in zip(first, found[1])]
    x = found[0].inputs[0]
    graph.replace(node, *write_slice(graph, x, graph.shape(x), cut, node.name), [found[0]])
    return True


@node_fusion("StridedSliceFusion", "Concat")
def slices_together(graph: FileGraph, node: FileNode) -> bool:
    """Slices that lie side by side, concatenated in their order -> one slice, or what they were cut of"""
    parts = [graph.maker.get(i) for i in node.inputs]
    if len(parts) < 2 or any(p is None or p.kind not in SLICES for p in parts):
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
