"""Neighbouring operators that rename, turn or cast elements: merged, or gone."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode, Shape
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table

RESHAPES = ("Reshape", "Squeeze", "ExpandDims", "Unsqueeze", "Flatten")


def same_shape(one: Shape, two: Shape) -> bool:
    """Whether two shapes of as many elements are equal: a single open size follows from the others."""
    return one == two and one.count(-1) <= 1 and 0 not in one


def is_known(shape: Shape) -> bool:
    """Whether a Reshape can name the shape, whatever its open size."""
    return bool(shape) and shape.count(-1) <= 1 and 0 not in shape


def reshape(graph: FileGraph, node: FileNode, x: int, parts: list[FileNode]) -> None:

    shape, whole = list(graph.shape(node.output)), graph.shape(x)
    open_ = shape.index(-1) if -1 in shape else len(shape)
    if (
        open_ < len(whole)
        and whole[open_] == -1
        and whole.count(-1) == 1
        and np.prod(shape) == np.prod(whole)
    ):
        shape[open_] = 0
    target = graph.add_constant(np.asarray(shape, np.int32), f"{node.name}/shape")
    graph.replace(node, Table("Reshape"), [x, target], parts)


def _before(graph: FileGraph, node: FileNode, *kinds: str) -> FileNode | None:
    made = graph.maker.get(node.inputs[0])
    return made if made is not None and made.kind in kinds and node.kind in RESHAPES else None


@node_fusion("AblateReshapeLikeOp", *RESHAPES)
def there_and_back(graph: FileGraph, node: FileNode) -> bool:
    """A chain of Reshapes, Squeezes and the like that ends in the shape it began with -> nothing"""
    made = _before(graph, node, *RESHAPES)
    while made is not None:
        if same_shape(graph.shape(made.inputs[0]), graph.shape(node.output)):
            return graph.bypass(node, made.inputs[0])
        made = _before(graph, made, *RESHAPES)
    return False


@node_fusion("SqueezeExpandDimsFusion", "ExpandDims", "Unsqueeze")
def squeeze_expand(graph: FileGraph, node: FileNode) -> bool:
    """Squeeze, then ExpandDims of the same axis -> nothing"""
    made = _before(graph, node, "Squeeze")
    if made is None or not same_shape(graph.shape(made.inputs[0]), graph.shape(node.output)):
        return False
    return graph.bypass(node, made.inputs[0])


def _one_reshape(graph: FileGraph, node: FileNode, *kinds: str) -> bool:
    made = _before(graph, node, *kinds)
    if made is None or not is_known(graph.shape(node.output)):
        return False
    if not {made.kind, node.kind} & {"Reshape", "Flatten"}:  # other axes keep whatever size they get
        return _ones_together(graph, made, node)
    reshape(graph, node, made.inputs[0], [made])
    return True


def _axes_of_ones(graph: FileGraph, node: FileNode) -> list[int] | None:
    """Axes that a node adds, by their places in its result, or takes away, by those in its input."""
    one = graph.integers(node.inputs[1]) if node.kind == "ExpandDims" else list(node.op.axis)
    rank = graph.rank(node.inputs[0] if node.kind == "Squeeze" else node.output)
    return sorted(int(a) % rank for a in one) if one else None


def _ones_together(graph: FileGraph, first: FileNode, second: FileNode) -> bool:
    """Axes of size 1 that both nodes add, or both take away -> one node."""
    away = [node.kind == "Squeeze" for node in (first, second)]
    one, two = _axes_of_ones(graph, first), _axes_of_ones(graph, second)
    if away[0] != away[1] or one is None or two is None:
        return False
    if away[0]:  # places in the input of the first
        rest = [a for a in range(graph.rank(first.inputs[0])) if a not in one]
        op = Table("Squeeze", axis=sorted([*one, *(rest[a] for a in two)]))
    else:  # places in the result of the second
        rest = [a for a in range(graph.rank(second.output)) if a not in two]
        op = Table("Unsqueeze", axis=sorted([*two, *(rest[a] for a in one)]))
    graph.replace(second, op, [first.inputs[0]], [first])
    return True


@node_fusion("ExpandDimsReshapeFusion", "Reshape")
def expand_reshape(graph: FileGraph, node: FileNode) -> bool:
    """ExpandDims, then Reshape -> Reshape"""
    return _one_reshape(graph, node, "ExpandDims", "Unsqueeze")


@node_fusion("ReshapeReshapeFusion", *RESHAPES)
def reshape_reshape(graph: FileGraph, node: FileNode) -> bool:
    """Two operators that only rename elements -> one Reshape"""
    return _one_reshape(graph, node, *RESHAPES)


_FUNCTIONS = (
    "Abs", "Activation", "Ceil", "Cos", "Erf", "ExpFusion", "Floor", "Log", "Neg", "Reciprocal", "Round",
    "Rsqrt",
    "Sin", "Sqrt", "Square",
)  # fmt: skip


@node_fusion("SqueezeFusion", "ExpandDims", "Unsqueeze")
def squeezed_function(graph: FileGraph, node: FileNode) -> bool:
    """Squeeze, a function of each element, ExpandDims of the same axis -> the function"""
    function = graph.sole_maker(node.inputs[0], *_FUNCTIONS)
    squeeze = function and graph.sole_maker(function.inputs[0], "Squeeze")
    if not squeeze or not same_shape(graph.shape(squeeze.inputs[0]), graph.shape(node.output)):
        return False
    graph.replace(node, function.op, squeeze.inputs[:1], [squeeze, function])
    return True


def order_of(graph: FileGraph, node: FileNode) -> list[int] | None:
    """The permutation of a Transpose; None if it is open."""
    order = graph.integers(node.inputs[1]) if len(node.inputs) > 1 else None
    return order if order is not None and sorted(order) == list(range(len(order))) else None


@node_fusion("ReshapeTransposeFusion", "Transpose")
def transpose_of_ones(graph: FileGraph, node: FileNode) -> bool:
    """A Transpose that moves one axis past axes of size 1 -> Squeeze, Unsqueeze, which move no elements

    One that moves two, as those of an image of one channel, stays: the runtime moves nothing for it, either.
    """
    order, shape = order_of(graph, node), graph.shape(node.inputs[0])
    if order is None or order == list(range(len(order))):
        return False
    long = [a for a in order if shape[a] != 1]
    moved = [place for place, a in enumerate(order) if a != place and shape[a] != 1]
    if not long or long != sorted(long) or len(moved) > 1:
        return False
    ones = [a for a, n in enumerate(shape) if n == 1]
    parts = graph.insert(node, Table("Squeeze", axis=ones), [node.inputs[0]], [shape[a] for a in long])
    places = [place for place, a in enumerate(order) if shape[a] == 1]
    graph.replace(node, Table("Unsqueeze", axis=places), [parts], [])
    return True


@node_fusion("TransposeFusion", "Transpose")
def transpose_transpose(graph: FileGraph, node: FileNode) -> bool:
    """Two Transposes -> one, or none"""
    made = graph.maker.get(node.inputs[0])
    if made is None or made.kind != "Transpose":
        return False
    first, second = order_of(graph, made), order_of(graph, node)
    if first is None or second is None or len(first) != len(second):
        return False
    order = [first[i] for i in second]
    if order == list(range(len(order))):
        return graph.bypass(node, made.inputs[0])
    turn = graph.add_constant(np.asarray(order, np.int32), f"{node.name}/order")
    graph.replace(node, node.op, [made.inputs[0], turn], [made])
    return True


def _numpy(graph: FileGraph, tensor: int) -> np.dtype | None:
    try:
        return np.dtype(DataType(graph.dtype(tensor)).numpy)
    except (KeyError, TypeError, ValueError):
        return None


@node_fusion("CastFusionPass", "Cast")
def cast_cast(graph: FileGraph, node: FileNode) -> bool:
    """A Cast behind one that loses nothing -> one; a Cast to the dtype that is there -> nothing"""
    if graph.dtype(node.inputs[0]) == graph.dtype(node.output):
        return graph.bypass(node, node.inputs[0])
    made = graph.maker.get(node.inputs[0])
    if made is None or made.kind != "Cast":
        return False
    x = made.inputs[0]
    narrow, wide = _numpy(graph, x), _numpy(graph, made.output)
    if narrow is None or wide is None or not np.can_cast(narrow, wide, "safe"):
        return False
    if graph.dtype(x) == graph.dtype(node.output):
        return graph.bypass(node, x)
    graph.replace(node, node.op, [x, *node.inputs[1:]], [made])
    return True


@node_fusion("ConcatConcatFusion", "Concat")
def concat_concat(graph: FileGraph, node: FileNode) -> bool:
    """A Concat among the inputs of one along the same axis -> one"""
    rank = graph.rank(node.output)
    inputs, parts = [], []
    for i in node.inputs:
        made = graph.sole_maker(i, "Concat")
        if made is not None and made.op.axis % rank == node.op.axis % rank and made not in parts:
            parts.append(made)
            inputs += made.inputs
        else:
            inputs.append(i)
    if not parts:
        return False
    graph.replace(node, node.op, inputs, parts)
    return True


@node_fusion("ReshapeShapeFusion", "Reshape")
def reshape_to_own_shape(graph: FileGraph, node: FileNode) -> bool:
    """A Reshape to the shape that the tensor has anyway -> nothing"""
    x = node.inputs[0]
    shape = graph.maker.get(node.inputs[1]) if len(node.inputs) > 1 else None
    while shape is not None and shape.kind == "Cast":
        shape = graph.maker.get(shape.inputs[0])
    own = shape is not None and shape.kind == "Shape" and shape.inputs[0] == x
    return own and graph.bypass(node, x)


@node_fusion("TransposeGatherFusion", "Transpose")
def gather_between(graph: FileGraph, node: FileNode) -> bool:
    """Transpose, Gather by a list, the inverse Transpose -> Gather along the other axis"""
    gather = graph.sole_maker(node.inputs[0], "Gather")
    turn = gather and graph.maker.get(gather.inputs[0])
    if not turn or turn.kind != "Transpose" or graph.rank(gather.inputs[1]) != 1:
        return False
    first, second, axis = order_of(graph, turn), order_of(graph, node), graph.integers(gather.inputs[2])
    if first is None or second is None or not axis or [first[i] for i in second] != sorted(first):
        return False
    along = graph.add_constant(np.asarray(first[axis[0] % len(first)], np.int32), f"{gather.name}/axis")
    graph.replace(node, gather.op, [turn.inputs[0], gather.inputs[1], along], [turn, gather])
    return True
