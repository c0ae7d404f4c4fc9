"""Layers of transformers -> subgraphs of their own: attention, feed-forward, what is added and normalized."""

from __future__ import annotations

from dataclasses import dataclass, field

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import graph_fusion

_CHAIN = 6  # nodes from an attention to the sum that ends it: a product, its bias, turns


@dataclass
class Layer:
    """Parts of a layer, each of them with a sum at its end: how many inputs of its attention follow from
    its own input, 3 of self-attention, 1 of cross-attention; 0 of a feed-forward part.
    """

    parts: list[int] = field(default_factory=list)
    nodes: set[FileNode] = field(default_factory=set)
    output: int = -1


def _is_attention(node: FileNode) -> bool:
    return node.kind == "Custom" and node.op.type == "multi_head_attention"


def _region(graph: FileGraph, start: int, end: int) -> tuple[set[FileNode], set[int]]:
    """The nodes on the ways from a tensor to another, and the tensors that follow from the first."""
    follows, nodes = {start}, set()
    seen: set[int] = {start}
    work = [(end, False)]
    while work:  # makers before those that read them
        tensor, ready = work.pop()
        made = graph.maker.get(tensor)
        if made is None or (tensor in seen and not ready):
            continue
        seen.add(tensor)
        if not ready:
            work += [(tensor, True), *((i, False) for i in made.inputs)]
        elif follows.intersection(made.inputs):
            follows.update(made.outputs)
            nodes.add(made)
    return nodes, follows


def _first_sum(graph: FileGraph, attention: FileNode) -> tuple[FileNode, int, int] | None:
    """The sum behind an attention, what of it follows from the attention, and the other operand."""
    tensor = attention.output
    for _ in range(_CHAIN):
        reader = graph.sole_reader(tensor)
        if reader is None:
            return None
        if reader.kind == "AddFusion" and not any(graph.constant(i) is not None for i in reader.inputs):
            others = [i for i in reader.inputs if i != tensor]
            return (reader, tensor, others[0]) if len(others) == 1 else None
        tensor = reader.output
    return None


def _next_sum(graph: FileGraph, start: int) -> tuple[FileNode, int] | None:
    """A sum of a tensor and of what follows from it, which is told, too."""
    for reader in graph.readers.get(start, ()):
        others = [i for i in reader.inputs if i != start]
        if reader.kind == "AddFusion" and len(others) == 1 and _region(graph, start, others[0])[0]:
            return reader, others[0]
    return None


def _add(graph: FileGraph, layer: Layer, start: int, sum_: FileNode, end: int) -> bool:
    """Enters the part of a layer that begins with a tensor and ends in a sum, or in its normalization."""
    nodes, follows = _region(graph, start, end)
    attentions = [n for n in nodes if _is_attention(n)]
    products = sum(n.kind in ("MatMulFusion", "FullConnection") for n in nodes)
    if len(attentions) > 1 or sum_.activation != "NO_ACTIVATION" or products < 2:
        return False
    if any(n.kind == "Softmax" for n in nodes):
        return False  # an attention that is not one node
    layer.parts.append(sum(i in follows for i in attentions[0].inputs[:3]) if attentions else 0)
    layer.nodes |= {*nodes, sum_}
    layer.output = sum_.output
    norm = graph.sole_reader(sum_.output)
    if norm is not None and norm.kind == "LayerNormFusion":
        layer.nodes.add(norm)
        layer.output = norm.output
    return True


def _layer(graph: FileGraph, attention: FileNode) -> Layer | None:
    """The layer that begins with an attention."""
    first = _first_sum(graph, attention)
    layer = Layer()
    if first is None or not _add(graph, layer, first[2], first[0], first[1]):
        return None
    if attention not in layer.nodes:
        return None
    while layer.parts[-1] and len(layer.parts) < 3:
        found = _next_sum(graph, layer.output)
        if found is None or not _add(graph, layer, layer.output, *found):
            return None
    return layer


def _outlined(graph: FileGraph, kinds: list[list[int]], name: str) -> int:
    """Layers whose parts are of one of these kinds become subgraphs; how many."""
    fired = 0
    if graph.name:
        return 0  # such a subgraph itself
    for attention in [n for n in graph.nodes if _is_attention(n)]:
        if graph.maker.get(attention.output) is not attention:
            continue  # it is in a layer
        layer = _layer(graph, attention)
        if layer is None or layer.parts not in kinds:
            continue
        nodes = [n for n in graph.nodes if n in layer.nodes]
        inner = {o for n in nodes for o in n.outputs} - {layer.output}
        if inner & graph.pinned or any(r not in layer.nodes for t in inner for r in graph.readers.get(t, ())):
            continue  # something else reads what lies within
        read = dict.fromkeys(i for n in nodes for i in n.inputs if i in graph.maker or i in graph.inputs)
        inputs = [i for i in read if i not in inner and i != layer.output]
        graph.outline(f"{name}_{len(graph.siblings)}", nodes, inputs, layer.output)
        fired += 1
    return fired


@graph_fusion("EncoderLayerFusion")
def encoder_layers(graph: FileGraph) -> int:
    """Self-attention, sum, feed-forward, sum, each with a normalization before or behind it -> a subgraph"""
    return _outlined(graph, [[3, 0]], "encoder_layer")


@graph_fusion("DecoderLayerFusion")
def decoder_layers(graph: FileGraph) -> int:
    """The same with an attention to other rows between the two -> a subgraph"""
    return _outlined(graph, [[3, 1, 0]], "decoder_layer")
