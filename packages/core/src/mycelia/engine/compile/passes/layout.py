"""Layout assignment: images with the channels last wherever that pays.

Each node that has a channels-last form (`ops/layout_rules.py`) gets a label. Convolutions gain or lose by
it; a value that is made in one layout and read in the other costs a transpose; all else is indifferent. The
labels start as channels last everywhere, single nodes change sides while that saves something, and a group
of nodes that saves nothing as a whole goes back. So chains of convolutions, normalizations, activations,
poolings and joins, forward and backward, hold transposes at their ends only, and a lone small convolution
stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.ir.graph import Builder, Graph, Node, Value
from mycelia.engine.ir.interpret import apply
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import find
from mycelia.engine.ops.layout_rules import is_image, keeps_order, nhwc_shape, rule_of
from mycelia.engine.ops.lowered.packed import padded

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # `dims` of the transpose to channels last, and back
_NEEDED = ("conv_pack", "conv_last", "conv_last_input_grad", "conv_last_weight_grad")


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Returns how many nodes got a channels-last form."""
    if not backend.backend.channels_last or not any(node.op.name in _ANCHORS for node in graph.nodes):
        return 0
    if any(backend.kernel(name, ["f32"]) is None for name in _NEEDED):
        return 0
    chosen = _Assignment(graph).choose()
    if not chosen:
        return 0
    rewriter = NHWCRewriter(graph, backend)
    for node in graph.nodes:
        if node in chosen:
            rewriter.take(node)
        else:
            node.inputs = [v if v is None else rewriter.first(v) for v in node.inputs]
            rewriter.nodes.append(node)
    graph.outputs = [rewriter.first(v) for v in graph.outputs]
    graph.nodes = rewriter.nodes
    return len(chosen)


# ---- which nodes -------------------------------------------------------------------------------------------

_ANCHORS = ("conv", "conv_input_grad", "conv_weight_grad")
_TRANSPOSE = 1.0  # ns an element: moved once


def _gain(node: Node) -> float:
    """Nanoseconds that the channels-last form of a convolution saves, roughly."""
    if node.op.name == "conv_weight_grad":
        image, result, weight = *node.inputs, node.outputs[0]
    elif node.op.name == "conv_input_grad":
        image, result, weight = node.outputs[0], node.inputs[0], node.inputs[1]
    elif node.op.name == "conv":
        image, result, weight = node.inputs[0], node.outputs[0], node.inputs[1]
    else:
        return 0.0
    group, kernel = node.attrs["group"], weight.type.shape[2:]
    inputs, outputs = image.type.shape[1] // group, result.type.shape[1] // group
    work = 2 * result.type.size * math.prod(weight.type.shape[1:])
    # What follows a convolution may join it.
    bonus = 0.5 * result.type.size if node.op.name == "conv" else 0.0
    if math.prod(image.type.shape[2:]) == 1:
        return 1.0  # a matrix product either way; channels last has the fused forms
    # Operations a nanosecond, as measured.
    if inputs == outputs == 1 < group:
        return work * (1 / 14 - 1 / 28) + bonus
    made = inputs if node.op.name == "conv_input_grad" else outputs
    usual, last = 62.0 if group == 1 else 40.0, 72.0
    if inputs < 8:
        # Few channels make short inner products, and narrow layers have kernels of their own.
        terms = inputs * math.prod(kernel)
        usual = 45.0 if outputs <= 16 and group == 1 and node.op.name != "conv_input_grad" else usual
        last = 72.0 if terms >= 100 else 52.0 if terms >= 27 else 20.0
    elif tuple(kernel) == (3, 3) and group == 1 and _has_unit_stride(node) and min(inputs, outputs) >= 16:
        last = 120.0  # by Winograd's transforms
    return work * (1 / usual - padded(made) / (made * last)) + bonus


def _has_unit_stride(node: Node) -> bool:
    return {*node.attrs["stride"], *node.attrs["dilation"]} == {1}


class _Assignment:
    """The labels: `last` holds the nodes that are to work on channels last."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.images: dict[Node, tuple[Value, ...]] = {}  # what a node with a form reads and makes
        self.readers: dict[Value, list[Node]] = {}
        self.fixed: set[Value] = {v for v in graph.outputs if is_image(v)}  # read as they are
        self.sources: dict[Value, Node] = {}
        for node in graph.nodes:
            rule = rule_of(node.op.definition)
            found = None if rule is None else rule.images(node)
            if found is None:
                self.fixed.update(filter(is_image, node.inputs))
                continue
            inputs = dict.fromkeys(node.inputs[i] for i in found[0])
            outputs = [node.outputs[i] for i in found[1]]
            self.nodes.append(node)
            self.images[node] = (*inputs, *outputs)
            for value in inputs:
                self.readers.setdefault(value, []).append(node)
            for value in outputs:
                self.sources[value] = node
            self.fixed.update(v for v in node.inputs if is_image(v) and v not in inputs)
        self.gain = {node: _gain(node) for node in self.nodes if node.op.name in _ANCHORS}
        self.price: dict[Value, float] = {}
        self.last: set[Node] = set()

    def cost(self, value: Value) -> float:
        """What the transposes of one value cost under the present labels."""
        price = self.price.get(value)
        if price is None:
            free = value.is_constant or keeps_order(value.type.shape)
            price = self.price[value] = 0.0 if free else _TRANSPOSE * value.type.size
        if not price:
            return 0.0
        source = self.sources.get(value)
        made_last = source is not None and source in self.last
        if made_last and value in self.fixed:
            return price
        for reader in self.readers.get(value, ()):
            if (reader in self.last) is not made_last:
                return price
        return 0.0

    def choose(self) -> set[Node]:
        self.last = set(self.nodes)
        for _ in range(4):
            if not self.sweep(self.nodes) + self.sweep(self.nodes[::-1]):
                break
        for group in self.groups():
            values = dict.fromkeys(v for node in group for v in self.images[node])
            saved = sum(self.gain.get(node, 0.0) for node in group)
            if saved <= sum(map(self.cost, values)):
                self.last.difference_update(group)
        return self.last

    def sweep(self, nodes: Sequence[Node]) -> int:
        """Moves single nodes to the other side where that is cheaper."""
        moved = 0
        for node in nodes:
            values = self.images[node]
            gain = self.gain.get(node, 0.0)
            before = sum(map(self.cost, values))
            if node in self.last:
                if before <= 0 and gain >= 0:
                    continue
                made = sum(map(self.cost, node.outputs))
                self.last.remove(node)
                after = sum(map(self.cost, values)) + gain
                # On a tie the border moves on from the node's input to its result, perhaps to where a smaller
                # value crosses it; not back, since the node may join the convolution that it follows.
                if after < before or (after == before and sum(map(self.cost, node.outputs)) > made):
                    moved += 1
                else:
                    self.last.add(node)
            else:
                self.last.add(node)
                if sum(map(self.cost, values)) - gain < before:
                    moved += 1
                else:
                    self.last.remove(node)
        return moved

    def groups(self) -> list[list[Node]]:
        """The chosen nodes, those together that exchange images."""
        found, seen = [], set()
        for node in self.nodes:
            if node not in self.last or node in seen:
                continue
            group, pending = [], [node]
            seen.add(node)
            while pending:
                member = pending.pop()
                group.append(member)
                for value in self.images[member]:
                    source = self.sources.get(value)
                    for other in (*self.readers.get(value, ()), *(() if source is None else (source,))):
                        if other in self.last and other not in seen:
                            seen.add(other)
                            pending.append(other)
            found.append(group)
        return found


# ---- the rewritten graph -----------------------------------------------------------------------------------


class NHWCRewriter:
    """The new list of nodes, and the NHWC values of images. What layout rules emit through."""

    def __init__(self, graph: Graph, backend: LoadedBackend) -> None:
        self.backend = backend
        self.nodes: list[Node] = []
        self.lasts: dict[Value, Value] = {}
        self.firsts: dict[Value, Value | None] = {}  # None: only its NHWC value exists so far
        self.builder = Builder(graph)
        self.builder.added = self.nodes
        self.types: list[TensorType] = []  # of what stands for the outputs of the node at hand
        self.transpose, self.reshape = find("transpose"), find("reshape")

    def take(self, node: Node) -> None:
        """Appends the channels-last form of `node`."""
        rule = rule_of(node.op.definition)
        images = rule.images(node)
        self.builder.location = node.location
        self.types = [
            TensorType(v.type.dtype, nhwc_shape(v.type.shape)) if i in images[1] else v.type
            for i, v in enumerate(node.outputs)
        ]
        found = rule.emit(self, node)
        for index, (old, new) in enumerate(zip(node.outputs, found, strict=True)):
            new.name = old.name
            if index in images[1]:
                self.lasts[old] = new
                self.firsts[old] = None
            else:
                self.firsts[old] = new

    def emit(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        attrs: dict[str, Any],
        types: Sequence[TensorType] | None = None,
    ) -> list[Value]:
        return self.builder.emit(find(op) if isinstance(op, str) else op, inputs, attrs, types)

    def first(self, value: Value) -> Value:
        """The value itself, with the channels first."""
        if value not in self.firsts:
            return value
        found = self.firsts[value]
        if found is None:
            found = self.firsts[value] = self.turned(self.lasts[value], TO_FIRST, value.type.shape)
        return found

    def last(self, value: Value) -> Value:
        """The NHWC value of an image tensor."""
        found = self.lasts.get(value)
        if found is None:
            found = self.lasts[value] = self.turned(self.first(value), TO_LAST, nhwc_shape(value.type.shape))
        return found

    def turned(self, value: Value, dims: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        image = shape if dims == TO_FIRST else value.type.shape
        if keeps_order(image):
            return self.moved(self.reshape, value, {"shape": shape})
        return self.moved(self.transpose, value, {"dims": dims})

    def moved(self, op: Any, value: Value, attrs: dict[str, Any]) -> Value:
        """`op`, which only moves elements; of a constant at once."""
        if value.is_constant:
            return self.builder.constant(apply(op, [value.constant], attrs)[0]._detach())
        return self.emit(op, [value], attrs)[0]

    def aligned(self, value: Value | None) -> Value | None:
        """An operand that broadcasts against NHWC values as `value` does against images."""
        if value is None:
            return None
        rank = len(value.type.shape)
        if rank == 4:
            return self.last(value)
        value = self.first(value)
        if value.type.size == 1:
            return value if rank == 0 else self.moved(self.reshape, value, {"shape": ()})
        shape = (1,) * (4 - rank) + tuple(value.type.shape)
        if keeps_order(shape):
            return self.moved(self.reshape, value, {"shape": nhwc_shape(shape)})
        whole = self.moved(self.reshape, value, {"shape": shape})
        return self.turned(whole, TO_LAST, nhwc_shape(shape))
