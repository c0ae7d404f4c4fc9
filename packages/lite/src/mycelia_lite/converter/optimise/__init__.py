"""The offline optimiser: rules on the nodes of a file, by the names of MindSpore Lite's passes.

`RULES` has the names in the order in which they run; `run` repeats them until nothing changes. A rule stands
in the file of its family, registered by a decorator of `registry`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mycelia_lite.converter.optimise import (  # noqa: F401
    activations,
    attention,
    cells,
    convolution,
    layers,
    layout,
    normalization,
    products,
    reductions,
    redundant,
    scale,
    shapes,
    slice_forward,
    slices,
)
from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import PASSES
from mycelia_lite.format import Table

#: Names of the rules, in the order in which they run.
RULES = (
    "ConstFoldPass", "RemoveTransitivityOp", "ReduceSameOpInHorizon",
    # loops
    "TfLstmCellFusion", "TfliteLstmCellFusion", "TfBidirectionGruFusion",
    # spellings of one operator by several
    "SigmoidMulFusion", "HardSwishFusion", "OnnxGeLUFusion", "TfGeLUFusion", "OnnxLayerNormFusion",
    "OnnxLayerNormFusion2",
    "TfNormFusion", "GroupNormFusion", "GLUFusion", "PReLUFusion",
    # what only renames or moves elements
    "SqueezeExpandDimsFusion", "AblateReshapeLikeOp", "SqueezeFusion", "ExpandDimsReshapeFusion",
    "ReshapeReshapeFusion",
    "ReshapeShapeFusion", "TransposeGatherFusion", "TransposeFusion", "ReshapeTransposeFusion",
    "CastFusionPass",
    "ConcatConcatFusion", "StridedSliceFusion", "SliceSliceFusion", "SlicePreposeFusion",
    # convolutions and products
    "ConvPadFusion", "ConvBiasaddFusion", "ConvBatchNormFusion", "ConvScaleFusion", "ConvConvFusion",
    "TensorDotFusion",
    "BatchMatMulFusion", "TransposeMatMulFusion", "TileMatMulFusion", "MatMulAddFusion",
    "FullconnectedAddFusion",
    "MatMulMulFusion", "FullConnectedFusion", "AffineFusion",
    "ReshapeReduceFusion", "MulReduceFusion", "ReduceStackFusion",
    "MultiHeadAttentionFusion",
    # what is left of normalizations, and activations
    "BatchNormToScaleFusion", "MulAddFusion", "ScaleScaleFusion", "ActivationFusion", "ConvActivationFusion",
    "MatMulActivationFusion", "ScaleActivationFusion", "AddConcatActivationFusion", "AddActivationFusion",
    "MulActivationFusion", "AffineActivationFusion",
    "EncoderLayerFusion", "DecoderLayerFusion",
)  # fmt: skip

#: Rules that run once, when no other fires any more.
_LAST = ("EncoderLayerFusion", "DecoderLayerFusion")

_TUPLES = "values of tuples are tensors of their own"
_SHAPES = "importers compute what depends on shapes"
_ATTENTION = "attention is one node by MultiHeadAttentionFusion; there is none of relative positions"
#: Passes of MindSpore Lite that are no rules here, and why: a list of rules to leave out may name them.
ABSENT = {
    "ConvTupleGetItemFusion": _TUPLES,
    "ConvTupleActivationFusion": _TUPLES,
    "ResizeFusion1": _SHAPES,
    "ResizeFusion2": _SHAPES,
    "TfliteRelPosMultiHeadAttentionFusion": _ATTENTION,
}

#: Rules that run only where `optimizeTransformer` asks for them.
TRANSFORMER = ("MultiHeadAttentionFusion", *_LAST)

#: Rules that look at no shapes between the nodes, which files of unknown origin may lack.
SHAPELESS = {
    "ActivationFusion", "ConvActivationFusion", "MatMulActivationFusion", "ScaleActivationFusion",
    "AddConcatActivationFusion", "AddActivationFusion", "MulActivationFusion", "AffineActivationFusion",
    "ConvBiasaddFusion",
    "MatMulAddFusion", "FullconnectedAddFusion",
}  # fmt: skip

_ROUNDS = 8  # rules feed one another; each makes the graph smaller, so few rounds are ever needed


@dataclass
class Optimised:
    fired: dict[str, int]
    transposes: tuple[int, int]
    parts: dict[str, tuple[str, ...]]


def run(model: Table, without: Collection[str] = (), known: int | None = None) -> Optimised:
    """Apply all rules but those named, in place.

    `known`: how many of the first subgraphs have tensors with right shapes, all if it is None.
    Errors: ValueError for unknown names.
    """
    unknown = sorted(set(without) - set(RULES) - set(ABSENT))
    if unknown:
        raise ValueError(f"no fusion is called {unknown}: there are {sorted(RULES)}")
    before = _transposes(model)
    fired = dict.fromkeys(RULES, 0)
    graphs = _graphs(model)
    for i, graph in enumerate(graphs):
        graph.drop_unused()
        here = RULES if known is None or i < known else [name for name in RULES if name in SHAPELESS]
        for _ in range(_ROUNDS):
            total = sum(fired.values())
            for name in here:
                if name not in without and name not in _LAST:
                    fired[name] += sum(one(graph) for one in PASSES[name])
            if sum(fired.values()) == total:
                break
        for name in _LAST:
            if name in here and name not in without:
                fired[name] += sum(one(graph) for one in PASSES[name])
    for graph in graphs[len(model.subGraph) :]:  # that rules have made
        made = Table("SubGraph", name=graph.name, inputIndices=graph.parameters, outputIndices=graph.results)
        model.subGraph = [*model.subGraph, made]
    graphs = _drop_released(model, graphs)
    _write_back(model, graphs)
    parts = {n.name: n.parts for g in graphs for n in g.nodes if n.parts}
    return Optimised(fired, (before, _transposes(model)), parts)


def _transposes(model: Table) -> int:
    return sum(n.primitive.kind == "Transpose" for n in model.nodes)


def _graphs(model: Table) -> list[FileGraph]:
    """The subgraphs of a model; what one of them reads of another stays there."""
    if not model.subGraph:
        whole = Table("SubGraph", inputIndices=model.inputIndex, outputIndices=model.outputIndex)
        whole.nodeIndices = list(range(len(model.nodes)))
        model.subGraph = [whole]
    subgraphs, tensors = model.subGraph, model.allTensors
    nodes = [[model.nodes[int(i)] for i in s.nodeIndices] for s in subgraphs]
    named = [
        {int(t) for n in part for t in (*n.inputIndex, *n.outputIndex)}
        | {int(t) for t in (*s.inputIndices, *s.outputIndices)}
        for s, part in zip(subgraphs, nodes)
    ]
    border = {int(t) for t in (*model.inputIndex, *model.outputIndex)}
    graphs = []
    for k, (s, part) in enumerate(zip(subgraphs, nodes)):
        others = set().union(*(n for i, n in enumerate(named) if i != k))
        pinned = {int(t) for t in s.outputIndices} | border | others
        graph = FileGraph(tensors, part, [*s.inputIndices, *model.inputIndex], pinned)
        graph.parameters, graph.results = ([int(t) for t in ts] for ts in (s.inputIndices, s.outputIndices))
        graph.siblings, graph.framework = graphs, int(model.fmkType)
        graphs.append(graph)
    return graphs


def _drop_released(model: Table, graphs: list[FileGraph]) -> list[FileGraph]:
    """The subgraphs without those that nodes called and call no more; calls get the new numbers."""
    gone = set().union(*(g.released for g in graphs))
    if not gone:
        return graphs
    work = [i for i in range(len(graphs)) if i not in gone]
    reached = set(work)
    while work:
        called = {number for node in graphs[work.pop()].nodes for number in _calls(node)} - reached
        reached |= called
        work += called
    kept = sorted(reached)
    place = {old: new for new, old in enumerate(kept)}
    for i in kept:
        for node in graphs[i].nodes:
            _renumber(node, place)
    model.subGraph = [model.subGraph[i] for i in kept]
    return [graphs[i] for i in kept]


def _calls(node: FileNode) -> list[int]:
    """Numbers of the subgraphs that a node names."""
    if node.kind == "PartialFusion":
        return [int(node.op.sub_graph_index)]
    if node.kind == "Custom" and node.op.type == "Loop":
        return [int.from_bytes(bytes(a.data), "little") for a in node.op.attr if a.name == "body"]
    return []


def _renumber(node: FileNode, place: dict[int, int]) -> None:
    numbers = _calls(node)
    if not numbers or place[numbers[0]] == numbers[0]:
        return
    node.op = node.op.copy()
    if node.kind == "PartialFusion":
        node.op.sub_graph_index = place[numbers[0]]
    else:
        for attribute in node.op.attr:
            if attribute.name == "body":
                attribute.data = place[numbers[0]].to_bytes(8, "little")


def _write_back(model: Table, graphs: list[FileGraph]) -> None:
    """The nodes that are left, and the tensors that they use, under new numbers."""
    nodes = [n for g in graphs for n in g.nodes]
    used = {i for n in nodes for i in (*n.inputs, *n.outputs)}
    used |= {int(i) for i in (*model.inputIndex, *model.outputIndex)}
    for s in model.subGraph:
        used |= {int(i) for i in (*s.inputIndices, *s.outputIndices)}
    place = {old: new for new, old in enumerate(sorted(used))}

    def moved(tensors):
        return [place[int(i)] for i in tensors]

    model.allTensors = [t for i, t in enumerate(graphs[0].tensors) if i in used]
    written = []
    for s, g in zip(model.subGraph, graphs):
        s.nodeIndices = list(range(len(written), len(written) + len(g.nodes)))
        s.inputIndices, s.outputIndices = moved(s.inputIndices), moved(s.outputIndices)
        own = {place[i] for n in g.nodes for i in (*n.inputs, *n.outputs)}
        s.tensorIndices = sorted(own | set(s.inputIndices) | set(s.outputIndices))
        for n in g.nodes:
            n.inputs, n.outputs = moved(n.inputs), moved(n.outputs)
            written.append(n.written())
    model.nodes = written
    model.inputIndex, model.outputIndex = moved(model.inputIndex), moved(model.outputIndex)
