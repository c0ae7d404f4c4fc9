"""Which operators read weights that may be integers, and along which axis their scales lie."""

from __future__ import annotations

from collections import defaultdict

from mycelia_lite.format import Table

#: CNode.quantType of a node whose weights are integers that stand for float32.
WEIGHT_QUANT = 4
#: Operator -> places of weights that may have scales.
PLACES = {
    "Conv2DFusion": (1,), "Conv2dTransposeFusion": (1,), "MatMulFusion": (1,), "FullConnection": (1,),
    "Gather": (0,), "LSTM": (1, 2), "GRU": (1, 2),
}  # fmt: skip

Uses = list[tuple[Table, int]]


def readers(model: Table) -> dict[int, Uses]:
    """Nodes by the tensor that they read, with the place of the input."""
    found: dict[int, Uses] = defaultdict(list)
    for node in model.nodes:
        for place, tensor in enumerate(node.inputIndex):
            found[int(tensor)].append((node, place))
    return found


def borders(model: Table) -> set[int]:
    """Tensors that are inputs or outputs of the model or of a subgraph."""
    found = {int(i) for i in (*model.inputIndex, *model.outputIndex)}
    return found | {int(i) for graph in model.subGraph for i in (*graph.inputIndices, *graph.outputIndices)}


def axis_of(node: Table, place: int, rank: int) -> int | None:
    """The axis of several scales for MindSpore Lite's runtime and ours; None where its versions differ."""
    operator = node.primitive
    if operator.kind == "Conv2dTransposeFusion":
        return None
    if operator.kind != "MatMulFusion":
        return 0
    transposed = operator.transpose_b if place else operator.transpose_a
    return rank - 2 if bool(transposed) == (place > 0) else rank - 1


def common_axis(uses: Uses, rank: int) -> int | None:
    """The axis of several scales if it is one for all that read the weights."""
    axes = {axis_of(node, place, rank) for node, place in uses}
    return axes.pop() if len(axes) == 1 else None
