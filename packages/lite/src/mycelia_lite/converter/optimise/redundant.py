"""What need not be computed when the model runs: equal nodes twice, results that are an input, constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.part import Part
from mycelia_lite.converter.optimise.registry import graph_fusion, node_fusion
from mycelia_lite.converter.optimise.shapes import RESHAPES, order_of, same_shape
from mycelia_lite.converter.optimise.slices import is_whole, read_slice
from mycelia_lite.format import Table

_GROWTH = 1 << 16  # bytes by which a computed constant may be larger than what it is computed from


def _is_pure(node: FileNode) -> bool:
    """Whether equal inputs give equal results, and nothing else happens."""
    words = (
        "Random", "Uniform", "Multinomial", "Dropout", "Assign", "Variable", "Custom", "Partial", "Call",
        "Switch", "TensorArray", "TensorList", "Assert", "Merge", "Hashtable", "Grad", "Adam", "SGD",
        "Momentum",
    )  # fmt: skip
    return not any(word in node.kind for word in words)


# ---- equal nodes ---------------------------------------------------------------------------------------


def _frozen(value: object) -> object:
    if isinstance(value, Table):
        return value.kind, tuple((f.name, _frozen(v)) for f, v in value.items())
    if isinstance(value, list | tuple | range | np.ndarray):
        return tuple(_frozen(v) for v in value)
    return bytes(value) if isinstance(value, memoryview) else value


@graph_fusion("ReduceSameOpInHorizon")
def equal_nodes(graph: FileGraph) -> int:
    """Two equal nodes on equal inputs -> one"""
    fired, seen = 0, {}
    for node in list(graph.nodes):
        if not _is_pure(node):
            continue
        key = _frozen(node.op), tuple(graph.content(i) for i in node.inputs), len(node.outputs)
        first = seen.setdefault(key, node)
        if first is node:
            continue
        if any(o in graph.pinned for o in node.outputs):
            continue  # an output is a tensor of its own
        for old, new in zip(list(node.outputs), first.outputs):
            graph.bypass(node, new, old)
        fired += 1
    graph.drop_unused()
    return fired


# ---- results that are an input -------------------------------------------------------------------------


def _all(graph: FileGraph, tensor: int, number: float, negative: bool | None = None) -> bool:
    """Whether a constant is `number` throughout; `negative`: and has this sign."""
    array = graph.constant(tensor)
    if array is None or not array.size or array.dtype.kind not in "fiu" or not (array == number).all():
        return False
    return negative is None or array.dtype.kind in "iu" or bool((np.signbit(array) == negative).all())


_NEUTRAL: dict[str, Callable[[FileGraph, int], bool]] = {
    "MulFusion": lambda g, t: _all(g, t, 1),
    "DivFusion": lambda g, t: _all(g, t, 1),
    "RealDiv": lambda g, t: _all(g, t, 1),
    "SubFusion": lambda g, t: _all(g, t, 0, negative=False),
    "AddFusion": lambda g, t: _all(g, t, 0) and (_all(g, t, 0, negative=True) or not _shows_sign_of_zero(g)),
}


def _shows_sign_of_zero(graph: FileGraph) -> bool:
    """Whether an operator tells -0 from 0, which adding 0 makes of it."""
    for node in graph.nodes:
        if node.kind in ("DivFusion", "RealDiv") and graph.constant(node.inputs[1]) is None:
            return True
        if node.kind in ("Reciprocal", "Rsqrt", "PowFusion", "Custom", "Call", "PartialFusion"):
            return True
    return False


@node_fusion("RemoveTransitivityOp", *_NEUTRAL)
def neutral(graph: FileGraph, node: FileNode) -> bool:
    """x * 1, x / 1, x + 0, x - 0 -> x"""
    if node.activation != "NO_ACTIVATION":
        return False
    orders = [node.inputs]
    if node.kind in ("MulFusion", "AddFusion"):
        orders.append(node.inputs[::-1])
    for x, other in orders:
        if graph.constant(x) is None and graph.keeps_shape(x, other) and _NEUTRAL[node.kind](graph, other):
            return graph.bypass(node, x)
    return False


def _does_nothing(graph: FileGraph, node: FileNode) -> bool:
    old, new = graph.shape(node.inputs[0]), graph.shape(node.output)
    kind, more = node.kind, [graph.integers(i) for i in node.inputs[1:]]
    if kind in ("Concat", "Split"):
        return len(node.inputs) == len(node.outputs) == 1
    if kind in RESHAPES:
        return same_shape(old, new)
    if kind == "Transpose":
        order = order_of(graph, node)
        return order is not None and order == sorted(order)
    if kind in ("StridedSlice", "SliceFusion"):
        cut = read_slice(graph, node)
        return cut is not None and is_whole(cut, old)
    if kind == "TileFusion":
        return more and more[0] is not None and set(more[0]) <= {1}
    if kind == "PadFusion":
        return len(more) == 1 and more[0] is not None and not any(more[0])
    return kind == "BroadcastTo" and old == new and -1 not in old


@node_fusion(
    "RemoveTransitivityOp", "Concat", "Split", *RESHAPES, "Transpose", "StridedSlice", "SliceFusion",
    "TileFusion", "PadFusion", "BroadcastTo",
)  # fmt: skip
def result_is_input(graph: FileGraph, node: FileNode) -> bool:
    """Concat of one, a slice of everything, a Reshape to the same shape and the like -> nothing"""
    return bool(_does_nothing(graph, node)) and graph.bypass(node, node.inputs[0])


@node_fusion("RemoveTransitivityOp", "Dropout", "Depend", "Load")
def passes_through(graph: FileGraph, node: FileNode) -> bool:
    """Inference leaves what such a node was given as it is."""
    if any(graph.uses(o) for o in node.outputs[1:]):
        return False
    if len(node.outputs) > 1:
        before = graph.bypass(node, node.inputs[0], node.output)
        graph.drop_unused()
        return before
    return graph.bypass(node, node.inputs[0])


# ---- constants -----------------------------------------------------------------------------------------


@graph_fusion("ConstFoldPass")
def constants(graph: FileGraph) -> int:
    """Nodes with only constant inputs -> constants, which the runtime computes"""
    known: set[int] = set()
    found = []
    for node in graph.nodes:
        inputs = [i for i in node.inputs if i not in known]
        if not node.inputs or not _is_pure(node) or any(graph.constant(i) is None for i in inputs):
            continue
        if any(o in graph.pinned for o in node.outputs) or _grows(graph, node):
            continue
        known.update(node.outputs)
        found.append(node)
    if not found:
        return 0
    wanted = sorted(o for o in known if any(r not in found for r in graph.readers.get(o, ())))
    try:
        arrays = Part(graph, [], wanted)([])
    except RuntimeError:  # the runtime refuses one of them
        return 0
    for tensor, array in zip(wanted, arrays):
        made = graph.add_constant(array, graph.tensors[tensor].name)
        graph.bypass(graph.maker[tensor], made, tensor)
    graph.drop_unused()
    return len(found)


def _grows(graph: FileGraph, node: FileNode) -> bool:
    """Whether the results would make the file larger."""
    sizes = [graph.shape(o) for o in node.outputs]
    if any(-1 in s for s in sizes):
        return True
    given = sum(int(np.prod(graph.shape(i), dtype=np.int64)) for i in node.inputs)
    return 8 * (sum(int(np.prod(s, dtype=np.int64)) for s in sizes) - given) > _GROWTH
