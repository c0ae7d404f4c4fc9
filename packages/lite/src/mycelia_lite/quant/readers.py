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


class Homes:
    """In which subgraph each node of a model is; None where there are no subgraphs."""

    def __init__(self, model: Table) -> None:
        self._model = model
        by_number = {int(n): graph for graph in model.subGraph for n in graph.nodeIndices}
        self._of = {id(node): by_number.get(i) for i, node in enumerate(model.nodes)}

    def are_one(self, uses: Uses) -> bool:
        """Whether all that read a tensor are in one subgraph."""
        return len({id(self._of[id(node)]) for node, _ in uses}) == 1

    def prepend(self, made: list[tuple[Table, Uses]]) -> None:
        """Add nodes, each before those that read its result, with the constants that it reads."""
        model = self._model
        for i, (node, uses) in enumerate(made):
            if (graph := self._of[id(uses[0][0])]) is not None:
                graph.nodeIndices = [len(model.nodes) + i, *graph.nodeIndices]
                graph.tensorIndices = [*graph.tensorIndices, *node.inputIndex]
        nodes = [node for node, _ in made]
        model.nodes = [*model.nodes, *nodes] if model.subGraph else [*nodes, *model.nodes]
